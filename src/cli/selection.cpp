#include "cli/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "contract/reader.hpp"
#include "core/errors.hpp"
#include "falsify/program/check.hpp"
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

KernelOfSteps::KernelOfSteps(const std::string& id, Device& device, const std::string& remedy)
    : kernel_(id.empty() ? nullptr : &kernel(id)), device_(device) {
  if (kernel_ != nullptr && kernel_->backend != device.backend())
    throw InputError("--kernel " + id, fmt::format("runs on {}", name(kernel_->backend)), remedy);
}

const Kernel* KernelOfSteps::operator()(const program::Step& step) {
  if (kernel_ == nullptr || step.op->name != kernel_->op) return nullptr;
  if (std::pair call{step.dims, step.params}; std::ranges::find(tried_, call) == tried_.end()) {
    falsify::expect_in_its_place(step, *kernel_, device_);
    tried_.push_back(std::move(call));
  }
  return kernel_;
}

void KernelOfSteps::expect_taken(std::span<const program::Session* const> sessions, const std::string& what,
                                 const std::string& remedy) const {
  if (kernel_ == nullptr) return;
  bool of_its_operation = false;
  for (const program::Session* session : sessions) {
    if (session == nullptr) continue;
    for (std::size_t s = 0; s < session->program().steps.size(); ++s) {
      if (&session->kernel(s) == kernel_) return;
      of_its_operation = of_its_operation || session->program().steps[s].op->name == kernel_->op;
    }
  }
  throw InputError(fmt::format("--kernel {}", kernel_->id),
                   of_its_operation ? fmt::format("it stores {}, which no {} of the {} does", name(kernel_->storage),
                                                  kernel_->op, what)
                                    : fmt::format("no step of the {} is {}", what, kernel_->op),
                   of_its_operation ? "name a kernel of their format" : remedy);
}

}  // namespace assay::cli
