// What a foreign library says before the first call: whether it loads, has the function, and what it declares.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "plugin/foreign.hpp"

namespace assay::falsify {

/// Opens the library in a process of its own, which is ended afterwards. Gives what `<symbol>_declares` declares; nothing
/// where there is no such function. Throws InputError where the library cannot be loaded, dies or hangs while it is, or
/// lacks the symbol.
std::optional<std::string> probe(const plugin::Source& source, std::chrono::milliseconds limit);

}  // namespace assay::falsify
