// Probe of a foreign library before the first call: does it load, does it have the function, what does it declare.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "plugin/foreign.hpp"

namespace assay::falsify {

/// Opens the library in a process of its own, which is ended afterwards. Returns the declarations of
/// `<symbol>_declares`; nothing if there is no such function. Throws InputError if the library cannot be loaded, dies
/// or hangs while loading, or lacks the symbol.
std::optional<std::string> probe(const plugin::Source& source, std::chrono::milliseconds limit);

}  // namespace assay::falsify
