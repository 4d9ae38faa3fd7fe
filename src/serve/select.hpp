// Which kernel serves a caller who names none.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/registry.hpp"

namespace assay {

/// The kernels of the back end that do not refuse the call, the highest priority first, among equals by id. Peers and
/// mutants are never among them, nor are other back ends'. Throws Unavailable with each refusal where none is left.
std::vector<const Kernel*> candidate_kernels(std::string_view op, Backend backend, const Call& call);
/// The first of them.
const Kernel& select_kernel(std::string_view op, Backend backend, const Call& call);

}  // namespace assay
