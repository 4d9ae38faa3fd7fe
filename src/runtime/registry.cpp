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

std::optional<std::string> refuses_storage(const Kernel& kernel, const Call& call) {
  bool narrow = false;
  for (const Tensor& tensor : call.tensors) {
    if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) continue;
    narrow = true;
    if (tensor.dtype != kernel.storage)
      return "it stores " + std::string(name(kernel.storage)) + " and the call holds " + std::string(name(tensor.dtype));
  }
  if (!narrow && kernel.storage != DType::f32)
    return "it stores " + std::string(name(kernel.storage)) + " and the call holds f32";
  return std::nullopt;
}

std::optional<std::string> refuses(const Kernel& kernel, const Call& call) {
  if (auto why = refuses_storage(kernel, call)) return why;
  return kernel.refuse != nullptr ? kernel.refuse(call) : std::nullopt;
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
