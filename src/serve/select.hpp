// Choice of the kernel for callers who name none.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/registry.hpp"

namespace assay {

/// Returns the kernels of the back end that do not refuse the call, by descending priority, then by id. Excludes peers,
/// mutants and other back ends. Throws Unavailable with each refusal if none is left.
std::vector<const Kernel*> candidate_kernels(std::string_view op, Backend backend, const Call& call);
/// Returns the first candidate.
const Kernel& select_kernel(std::string_view op, Backend backend, const Call& call);

}  // namespace assay
