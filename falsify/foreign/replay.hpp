// Foreign kernels in reports and replay files: writes their location, and loads them again.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "falsify/engine/case.hpp"
#include "falsify/engine/obligation.hpp"
#include "plugin/foreign.hpp"

namespace assay::falsify {

/// Adds the location of the foreign kernel to every kernel of the report and to its replay files.
void name_foreign(nlohmann::json& report, const plugin::Source& source);

/// A parsed replay file.
struct Replay {
  const OpDescriptor* op = nullptr;
  const Kernel* kernel = nullptr;
  const Obligation* obligation = nullptr;
  Case the_case;
  std::optional<std::uint64_t> other_order{};      ///< second thread order, if the finding is a race
  std::unique_ptr<plugin::ForeignKernel> foreign;  ///< owns `kernel` if it is foreign
};
/// Reads a replay file. `library`, if not empty, replaces the foreign kernel's path.
/// Throws InputError naming the file, the key and the remedy.
Replay read_replay(const std::filesystem::path& file, const std::string& library = {});

}  // namespace assay::falsify
