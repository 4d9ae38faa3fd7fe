// Probe of a foreign library before the first call: does it load, does it have the function, what does it declare.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "plugin/foreign.hpp"

namespace assay::falsify {

struct Probed {
  std::optional<std::string> declares;  ///< what `<symbol>_declares` returns; empty if there is no such function
  bool of_cuda_host = false;            ///< built with the execution model of cuda-host (assay_cuda_host_library)
};

/// Opens the library in a process of its own, which is ended afterwards. Throws InputError if the library cannot be
/// loaded, dies or hangs while loading, or lacks the symbol.
Probed probe(const plugin::Source& source, std::chrono::milliseconds limit);

}  // namespace assay::falsify
