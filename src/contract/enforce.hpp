// Run-time enforcement of contracts. Generated entry points call it; the checking itself is Boost.Contract's,
// which this header keeps to enforce.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"
#include "runtime/device.hpp"
#include "runtime/dispatch.hpp"

namespace assay::contract {

struct Certified;

/// off: nothing is checked. pre: requires clauses. full: ensures clauses and certificates too.
enum class Level { off, pre, full };

/// The level in force in this process; `pre` until set. A build with ASSAY_CONTRACTS=OFF knows only `off`.
Level level();
/// Throws Unavailable for a level other than `off` where contracts are compiled out.
void set_level(Level level);

/// How one clause is evaluated on an operation's argument struct.
struct ClauseCheck {
  bool (*holds)(const void* args) = nullptr;
  std::string (*values)(const void* args) = nullptr;  ///< what a false clause's sides evaluate to
  Certified (*certify)(const void* args) = nullptr;   ///< of a certificate, in place of the two
};

/// Ids of the clauses of one operation whose count is zero.
std::vector<std::string_view> never_evaluated(const OpDescriptor& op);

/// One contract as generated code hands it over.
struct Enforced {
  const OpDescriptor* op = nullptr;
  std::span<const ClauseCheck> checks;  ///< in the order of op->clauses
  std::uint64_t* counts = nullptr;      ///< evaluations of each clause, atomically increased
  /// Unpacks a call whose tensors are host memory and calls check_ensures with it.
  void (*ensure)(const Call& host, const Kernel& kernel) = nullptr;
  /// Unpacks a call in which the tensors that a clause reads are host memory, and evaluates that clause.
  void (*require)(const Call& host, std::size_t clause) = nullptr;
};

/// Runs the kernel behind the contract at the level in force. Throws ContractViolation for the first clause
/// that is false; what the kernel throws passes through.
void enforce(const Enforced& contract, const void* args, const Call& call, const Kernel& kernel, Device& device);
/// The same with the back end's preferred kernel (runtime/select.hpp), chosen once the requires clauses hold.
void enforce(const Enforced& contract, const void* args, const Call& call, Backend backend);
/// The same by the back end that automatic dispatch chooses (runtime/dispatch.hpp); tensors in host memory are copied to
/// its device and back. Returns what served the call and what was passed over.
Dispatched enforce(const Enforced& contract, const void* args, const Call& call, Automatic);

/// Evaluates one clause; throws ContractViolation where it is false.
void evaluate(const Enforced& contract, std::size_t clause, const void* args);
/// Evaluates the requires clauses on host tensors.
void check_requires(const Enforced& contract, const void* args);
/// Evaluates ensures clauses and certificates on host tensors, under the arithmetic the kernel declares.
void check_ensures(const Enforced& contract, const void* args, const Kernel& kernel);

/// A tensor whose element type is data.
template <class T>
Tensor erase(const View<T>& v) {
  return {dtype_of<std::remove_const_t<T>>, const_cast<void*>(static_cast<const void*>(v.data())), v.shape(), v.strides()};
}
inline Tensor erase(const StorageView& v) { return {v.dtype(), v.data(), v.shape(), v.strides()}; }

}  // namespace assay::contract
