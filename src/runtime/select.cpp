#include "runtime/select.hpp"

namespace assay {

const Kernel& select_kernel(std::string_view op, Backend backend, const Call& call) {
  const Kernel* best = nullptr;
  std::string refusals;
  for (const Kernel& candidate : kernels()) {
    if (candidate.op != op || candidate.backend != backend || candidate.role != KernelRole::kernel) continue;
    if (best != nullptr && candidate.priority <= best->priority) continue;
    const std::optional<std::string> refusal = refuses(candidate, call);
    if (refusal) refusals += (refusals.empty() ? "" : "; ") + std::string(candidate.id) + ": " + *refusal;
    else best = &candidate;
  }
  if (best != nullptr) return *best;
  throw Unavailable("a " + std::string(name(backend)) + " kernel for " + std::string(op),
                    refusals.empty() ? "none is part of this program" : refusals);
}

}  // namespace assay
