#include "runtime/registry.hpp"

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

namespace assay {
namespace {

// a wrong kernel; one for the CPU that is no copy of a right one
constexpr std::string_view kMutant = "mutant", kAdversarial = "adversarial";

std::vector<Kernel>& all() {
  static std::vector<Kernel> kernels;
  return kernels;
}

/// Fills in what the id says.
void identify(Kernel& kernel) {
  const std::string_view id = kernel.id;
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(id, '/')) parts.emplace_back(part.begin(), part.end());
  const auto is_name = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) {
      return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_' || c == '-';
    });
  };
  const bool mutant = !parts.empty() && parts.front() == kMutant;
  if (parts.size() != (mutant ? 4 : 3) || !std::ranges::all_of(parts, is_name))
    throw InputError("kernel id '" + std::string(id) + "'",
                     "is neither op/backend/algorithm nor mutant/backend/op/fault",
                     "write lower-case letters, digits, '_' and '-' between the slashes");
  if (mutant) kernel.role = KernelRole::mutant;
  kernel.op = parts[mutant ? 2 : 0];
  kernel.backend = mutant && parts[1] == kAdversarial ? Backend::cpu : backend_from(parts[1]);
}

}  // namespace

KernelRegistration::KernelRegistration(const Kernel& kernel, std::source_location where) {
  Kernel row = kernel;
  identify(row);
  row.source = where.file_name();  // -fmacro-prefix-map (AssayOptions.cmake) makes it relative
  auto& list = all();
  list.insert(std::ranges::upper_bound(list, row.id, {}, &Kernel::id), std::move(row));
}

std::optional<std::string> refuses_storage(const Kernel& kernel, const Call& call) {
  bool narrow = false;
  for (const Tensor& tensor : call.tensors) {
    if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) continue;
    narrow = true;
    if (tensor.dtype != kernel.storage)
      return "it stores " + std::string(name(kernel.storage)) + " and the call holds " +
             std::string(name(tensor.dtype));
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
  throw InputError("kernel '" + std::string(id) + "'", "there is no kernel of this id", "`assay list` prints the ids");
}

}  // namespace assay
