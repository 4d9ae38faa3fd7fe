// What reports say of foreign kernels, and replay files read back, with foreign kernels found again.
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

/// Writes into every kernel of the report, and into its replay files, what it takes to find the foreign kernel again.
void name_foreign(nlohmann::json& report, const plugin::Source& source);

/// A replay file read back.
struct Replay {
  const OpDescriptor* op = nullptr;
  const Kernel* kernel = nullptr;
  const Obligation* obligation = nullptr;
  Case the_case;
  std::optional<std::uint64_t> other_order{};  ///< of threads, where the finding is a race
  std::unique_ptr<plugin::ForeignKernel> foreign;  ///< owns `kernel`, where that is foreign
};
/// `library`, if not empty, takes the place of the foreign kernel's. Throws InputError naming the file, the key and the
/// remedy.
Replay read_replay(const std::filesystem::path& file, const std::string& library = {});

}  // namespace assay::falsify
