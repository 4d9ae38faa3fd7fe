// Run-time enforcement of contracts, called by generated entry points. Boost.Contract does the checking, and only
// enforce.cpp includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"
#include "runtime/device.hpp"
#include "runtime/registry.hpp"

namespace assay::contract {

struct Certified;

/// off: nothing is checked. pre: requires clauses. full: ensures clauses and certificates too.
enum class Level { off, pre, full };

/// Returns the current level of this process; `pre` until set. A build with ASSAY_CONTRACTS=OFF always returns `off`.
Level level();
/// Throws Unavailable for a level other than `off` if contracts are compiled out.
void set_level(Level level);

/// Evaluation of one clause on an operation's argument struct.
struct ClauseCheck {
  bool (*holds)(const void* args) = nullptr;
  std::string (*values)(const void* args) = nullptr;  ///< values of both sides of a false clause
  Certified (*certify)(const void* args) = nullptr;   ///< for a certificate, instead of `holds` and `values`
};

/// Returns the ids of an operation's clauses that were never evaluated.
std::vector<std::string_view> never_evaluated(const OpDescriptor& op);

/// One contract as provided by generated code.
struct EnforcedContract {
  const OpDescriptor* op = nullptr;
  std::span<const ClauseCheck> checks;  ///< in the order of op->clauses
  std::uint64_t* counts = nullptr;      ///< evaluation count of each clause, updated atomically
  /// Unpacks a call with all tensors in host memory and calls check_ensures with it.
  void (*ensure)(const Call& host, const Kernel& kernel) = nullptr;
  /// Unpacks a call in which the tensors read by a clause are in host memory, and evaluates that clause.
  void (*require)(const Call& host, std::size_t clause) = nullptr;
};

/// Runs the kernel under the contract at the current level. Throws ContractViolation for the first false clause;
/// exceptions of the kernel pass through.
void enforce(const EnforcedContract& contract, const void* args, const Call& call, const Kernel& kernel,
             Device& device);

/// The kernel that served a call, and where its tensors are.
struct Ran {
  const Kernel* kernel = nullptr;
  Device* device = nullptr;
};
/// Checks the requires clauses, then calls `execute`, which runs a kernel of its choice and returns it and the device
/// that holds the call's tensors, then checks the ensures clauses. `device_of_call` returns that device before the
/// call; it is asked only if a condition reads elements.
void guard(const EnforcedContract& contract, const void* args, const Call& call,
           const std::function<Device&()>& device_of_call, const std::function<Ran()>& execute);

/// Evaluates one clause. Throws ContractViolation if it is false.
void evaluate(const EnforcedContract& contract, std::size_t clause, const void* args);
/// Evaluates the requires clauses on host tensors.
void check_requires(const EnforcedContract& contract, const void* args);
/// Evaluates ensures clauses and certificates on host tensors, under the arithmetic that the kernel declares.
void check_ensures(const EnforcedContract& contract, const void* args, const Kernel& kernel);

/// Returns a tensor whose element type is known at run time.
template <class T>
Tensor erase(const View<T>& v) {
  return {dtype_of<std::remove_const_t<T>>, const_cast<void*>(static_cast<const void*>(v.data())), v.shape(),
          v.strides()};
}
inline Tensor erase(const StorageView& v) { return {v.dtype(), v.data(), v.shape(), v.strides()}; }

}  // namespace assay::contract
