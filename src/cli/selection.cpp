#include "cli/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "contract/reader.hpp"
#include "core/errors.hpp"
#include "falsify/program/system.hpp"

namespace assay::cli {

const OpDescriptor& operation_named(const std::string& name) {
  std::vector<std::string_view> names;
  for (const OpDescriptor* op : operations()) names.push_back(op->name);
  if (std::ranges::find(names, name) == names.end()) {
    for (const falsify::System& system : falsify::systems()) names.push_back(system.op.name);
    throw InputError("operation '" + name + "'", "there is no contract of this name",
                     contract::suggestion(name, names));
  }
  return operation(name);
}

std::vector<const Kernel*> selected_kernels(const std::vector<std::string>& ops, const std::string& backend,
                                            const std::string& kernel, const plugin::ForeignKernel* foreign) {
  if (!backend.empty()) backend_from(backend);
  for (const std::string& op : ops) operation_named(op);
  if (foreign != nullptr) return {&foreign->kernel()};
  if (!kernel.empty()) return {&assay::kernel(kernel)};
  std::vector<const Kernel*> chosen;
  for (const Kernel& k : kernels()) {
    if (k.role == KernelRole::mutant) continue;
    if (!ops.empty() && std::ranges::find(ops, k.op) == ops.end()) continue;
    if (!backend.empty() && name(k.backend) != backend) continue;
    chosen.push_back(&k);
  }
  if (chosen.empty() && !backend.empty()) device(backend_from(backend));  // throws with the reason if it is missing
  if (chosen.empty()) throw InputError("selection", "no kernel matches it", "`assay list` prints what there is");
  return chosen;
}

KernelOfSteps::KernelOfSteps(const std::string& id, const Device& device, const std::string& remedy)
    : kernel_(id.empty() ? nullptr : &kernel(id)) {
  if (kernel_ != nullptr && kernel_->backend != device.backend())
    throw InputError("--kernel " + id, fmt::format("runs on {}", name(kernel_->backend)), remedy);
}

const Kernel* KernelOfSteps::operator()(const program::Step& step) {
  const bool its = kernel_ != nullptr && step.op->name == kernel_->op;
  taken_ = taken_ || its;
  return its ? kernel_ : nullptr;
}

void KernelOfSteps::expect_taken(const std::string& what, const std::string& remedy) const {
  if (kernel_ != nullptr && !taken_)
    throw InputError(fmt::format("--kernel {}", kernel_->id), fmt::format("no step of the {} is {}", what, kernel_->op),
                     remedy);
}

}  // namespace assay::cli
