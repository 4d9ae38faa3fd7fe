#include "serve/select.hpp"

#include <algorithm>

namespace assay {
namespace {

bool eligible(const Kernel& kernel, std::string_view op, Backend backend) {
  // Names last: they take the time, and most kernels are mutants.
  return kernel.backend == backend && kernel.role == KernelRole::kernel && kernel.op == op;
}

[[noreturn]] void none(std::string_view op, Backend backend, const Call& call) {
  std::string refusals;
  for (const Kernel& kernel : kernels())
    if (eligible(kernel, op, backend))
      refusals += (refusals.empty() ? "" : "; ") + std::string(kernel.id) + ": " + refuses(kernel, call).value_or("");
  throw Unavailable("a " + std::string(name(backend)) + " kernel for " + std::string(op),
                    refusals.empty() ? "none is part of this program" : refusals);
}

}  // namespace

std::vector<const Kernel*> candidate_kernels(std::string_view op, Backend backend, const Call& call) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : kernels())
    if (eligible(kernel, op, backend) && !refuses(kernel, call)) found.push_back(&kernel);
  if (found.empty()) none(op, backend, call);
  std::ranges::stable_sort(found, std::ranges::greater{}, &Kernel::priority);
  return found;
}

const Kernel& select_kernel(std::string_view op, Backend backend, const Call& call) {
  const Kernel* best = nullptr;
  for (const Kernel& kernel : kernels())
    if (eligible(kernel, op, backend) && (best == nullptr || kernel.priority > best->priority) &&
        !refuses(kernel, call))
      best = &kernel;
  if (best == nullptr) none(op, backend, call);
  return *best;
}

}  // namespace assay
