// Which kernel serves a caller who names none.
#pragma once

#include <string_view>

#include "runtime/registry.hpp"

namespace assay {

/// The kernel of the back end with the highest priority that does not refuse the call; among equals the first
/// by id. Peers and mutants are never chosen, nor is another back end. Throws Unavailable with each refusal.
const Kernel& select_kernel(std::string_view op, Backend backend, const Call& call);

}  // namespace assay
