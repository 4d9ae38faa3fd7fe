// The kernels that exist. A kernel registers itself with a namespace-scope `KernelRegistration`; there is no
// second list.
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

/// Whether a kernel is offered to callers, is a peer to compare with, or is wrong on purpose.
enum class KernelRole { kernel, peer, mutant };

struct Limits;

/// One implementation of an operation. A registration leaves out `op`, `backend` and `source`, and the role of a mutant: they follow from
/// its id and its place.
struct Kernel {
  std::string_view op{};     ///< name of the contract, such as "matmul"
  std::string_view id;       ///< op/backend/algorithm, such as "matmul/vulkan/tiled64"; of a mutant mutant/backend/op/fault
  Backend backend = Backend::cpu;
  Arithmetic arithmetic{};   ///< declared; bounds follow from it and the audit compares it
  DType storage = DType::f32; ///< how it stores the tensors that its contract leaves open
  bool deterministic = true; ///< two runs on the same input give the same bits
  bool batch_invariant = true; ///< a row has the same bits whatever rows are beside it, and however many
  std::string_view source{}; ///< file that registers it, relative to the top of the repository
  std::string_view summary;  ///< one line: the algorithm, its tiles
  KernelRole role = KernelRole::kernel;
  std::string_view fault{};  ///< of a mutant: what is wrong, with its number in the bug list if it has one
  std::string_view fault_class{};  ///< of a mutant: one of the classes of falsify/mutation/faults.py
  bool scored = false;       ///< a mutant of the set `scored` (falsify/mutation/faults.py), which may survive

  /// Runs on tensors that live on `device`; returns when the outputs may be read after device.synchronize().
  std::function<void(const Call& call, Device& device)> run{};
  /// Why the kernel cannot take this call (empty: it takes every call its contract admits).
  std::function<std::optional<std::string>(const Call& call)> refuse{};
  int priority = 0;          ///< among those that take a call, the highest serves callers who name no kernel
  /// Automatic dispatch (runtime/dispatch.hpp) of operands in host memory does not offer this kernel calls whose dims
  /// multiply to this or less: moving them would take longer than the work.
  double automatic_above = -1;
  /// Of the calls that its contract admits (runtime/limits.hpp); null: it takes and gives everything.
  const Limits* limits = nullptr;
  /// Of a function that may not take what it is called with: what to say where its first call goes wrong.
  std::string_view advice{};
};

/// Of kernels that only move elements: moving these to a device and back is more work than theirs.
inline constexpr double kNeverAutomatic = std::numeric_limits<double>::infinity();

/// The row with a priority of 1: what its back end gives callers who name no kernel.
inline Kernel preferred(Kernel kernel) {
  kernel.priority = 1;
  return kernel;
}

/// The row of a kernel that takes another path where rows are few.
inline Kernel varying_with_batch(Kernel kernel) {
  kernel.batch_invariant = false;
  return kernel;
}

/// Why the kernel cannot take this call: its own refusal, or tensors stored in another format than it handles.
std::optional<std::string> refuses(const Kernel& kernel, const Call& call);
std::optional<std::string> refuses_storage(const Kernel& kernel, const Call& call);

/// Every registered kernel, sorted by id.
std::span<const Kernel> kernels();
/// Those of one operation that are not mutants.
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
