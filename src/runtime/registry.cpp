#include "runtime/registry.hpp"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

std::vector<Kernel>& all() {
  static std::vector<Kernel> kernels;
  return kernels;
}

}  // namespace

KernelRegistration::KernelRegistration(const Kernel& kernel) {
  auto& list = all();
  list.insert(std::ranges::upper_bound(list, kernel.id, {}, &Kernel::id), kernel);
}

std::span<const Kernel> kernels() { return all(); }

std::vector<const Kernel*> kernels_of(std::string_view op) {
  std::vector<const Kernel*> found;
  for (const Kernel& k : all())
    if (k.op == op && k.role != KernelRole::mutant) found.push_back(&k);
  return found;
}

const Kernel& kernel(std::string_view id) {
  for (const Kernel& k : all())
    if (k.id == id) return k;
  throw InputError("kernel '" + std::string(id) + "'", "there is no kernel of this id",
                   "`assay list` prints the ids");
}

}  // namespace assay
