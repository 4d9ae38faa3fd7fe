// The registered kernels. A kernel registers itself with a namespace-scope `KernelRegistration`; there is no second
// list.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "core/arithmetic.hpp"
#include "runtime/call.hpp"
#include "runtime/device.hpp"

namespace assay {

/// Role of a kernel: offered to callers, a peer for comparison, or wrong on purpose.
enum class KernelRole { kernel, peer, mutant };

struct Limits;

/// One implementation of an operation. A registration leaves out `op`, `backend` and `source`, and the role of a
/// mutant: they follow from its id and its place.
struct Kernel {
  std::string_view op{};  ///< name of the contract, such as "matmul"
  /// op/backend/algorithm, such as "matmul/vulkan/tiled64"; of a mutant mutant/backend/op/fault
  std::string_view id;
  Backend backend = Backend::cpu;
  Arithmetic arithmetic{};      ///< declared; bounds are derived from it and the audit compares it
  DType storage = DType::f32;   ///< storage type of the tensors that its contract leaves open
  bool deterministic = true;    ///< two runs on the same input give the same bits
  bool batch_invariant = true;  ///< the bits of a row do not depend on the other rows or on their number
  std::string_view source{};    ///< file that registers it, relative to the top of the repository
  std::string_view summary;     ///< one line: the algorithm, its tiles
  KernelRole role = KernelRole::kernel;
  std::string_view fault{};        ///< of a mutant: description of the fault
  std::string_view fault_class{};  ///< of a mutant: one of the classes of falsify/mutation/faults.py
  bool scored = false;             ///< a mutant of the set `scored` (falsify/mutation/faults.py), which may survive

  /// Runs on tensors that live on `device`. The outputs may be read after device.synchronize().
  std::function<void(const Call& call, Device& device)> run{};
  /// Returns why the kernel cannot take this call (empty: it takes every call its contract admits).
  std::function<std::optional<std::string>(const Call& call)> refuse{};
  int priority = 0;  ///< among kernels that take a call, the highest serves callers who name none
  /// Automatic dispatch (serve/dispatch.hpp) of operands in host memory does not use this kernel for calls whose
  /// product of dims is at most this: moving the operands would take longer than the work.
  double automatic_above = -1;
  /// Limits within the calls that the contract admits (runtime/limits.hpp); null: none.
  const Limits* limits = nullptr;
  /// Message for the first failing call of a function that may not support its arguments.
  std::string_view advice{};
};

/// For kernels that only move elements: transferring the elements to a device and back costs more than the kernel.
inline constexpr double kNeverAutomatic = std::numeric_limits<double>::infinity();

/// Returns the kernel with a priority of 1: the default of its back end for callers who name no kernel.
inline Kernel preferred(Kernel kernel) {
  kernel.priority = 1;
  return kernel;
}

/// Returns the kernel marked as using another code path for few rows.
inline Kernel varying_with_batch(Kernel kernel) {
  kernel.batch_invariant = false;
  return kernel;
}

/// Returns why the kernel cannot take this call: its own refusal, or tensors stored in a format it does not handle.
std::optional<std::string> refuses(const Kernel& kernel, const Call& call);
std::optional<std::string> refuses_storage(const Kernel& kernel, const Call& call);

/// Returns every registered kernel, sorted by id.
std::span<const Kernel> kernels();
/// Returns the kernels of one operation, without mutants.
std::vector<const Kernel*> kernels_of(std::string_view op);
/// Throws InputError if no kernel has this id.
const Kernel& kernel(std::string_view id);

struct KernelRegistration {
  /// Throws InputError for an id of another form, or of a back end that does not exist.
  explicit KernelRegistration(const Kernel& kernel, std::source_location where = std::source_location::current());
};

/// Adapts a typed kernel `void f(const MatmulArgs&, Device&)` to Kernel::run.
template <class Args, void (*F)(const Args&, Device&)>
void run_typed(const Call& call, Device& device) {
  F(Args::unpack(call), device);
}
/// Adapts `std::optional<std::string> f(const MatmulArgs&)` to Kernel::refuse.
template <class Args, std::optional<std::string> (*F)(const Args&)>
std::optional<std::string> refuse_typed(const Call& call) {
  return F(Args::unpack(call));
}

}  // namespace assay
