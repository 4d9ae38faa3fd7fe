// The process in which kernels run. The driver lays a call out in shared memory, sends one byte, and waits with a time
// limit: a crash, a hang or an exit of the kernel is a regular reply, and the next call gets a fresh worker. Devices
// are opened inside the worker only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/enforce.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/kernel_output.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

/// End of a call.
struct Reply {
  enum class Status {
    done,         ///< outputs may be read
    refused,      ///< the kernel declined the call
    unavailable,  ///< device or memory missing
    invalid,      ///< a requires clause was false: the case is not a valid call of this operation
    violated,     ///< an ensures clause or certificate was false
    failed,       ///< the kernel threw, or its device reported an error or a validation message
    crashed,      ///< the process died
    hung,         ///< no answer within the limit; keep last
  } status = Status::done;
  std::string detail;  ///< the reason, clause text, error, or signal
};

/// Activity in the process during a call of a host back end: `load` runs threads that keep its processors busy
/// intermittently.
enum class BackgroundLoad { nothing, load };

/// Thrown if set_deadline() cut a call short: its result is unknown.
struct DeadlineReached {};

class Worker {
 public:
  /// Bytes for the tensors of a call and their surroundings.
  static constexpr std::size_t kArenaBytes = std::size_t{1} << 31;

  /// `limit`: time after which a call counts as a hang.
  explicit Worker(std::chrono::milliseconds limit, std::size_t arena_bytes = kArenaBytes);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Arena& arena() { return arena_; }

  /// Runs the kernel on tensors placed in the arena. Checks the contract around the call, in this process, at the given
  /// level; level off skips the check, for calls that the contract forbids. The kernel must have existed when the
  /// process started, as registered ones have: call restart() before using another kernel. Throws DeadlineReached.
  Reply run(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims, std::span<const double> params,
            std::span<const Placed> tensors, contract::Level level = contract::Level::full);
  /// Returns the violation of a requires clause by a call, evaluated in this process; empty if there is none.
  std::optional<std::string> forbids(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims,
                                     std::span<const double> params, std::span<const Placed> tensors) const;
  /// Applies to the next call only.
  void beside(BackgroundLoad what) { beside_ = what; }
  /// True if a call of a kernel under test has returned normally.
  bool has_returned() const { return has_returned_; }
  /// Sets the time at which a running call is abandoned even if its limit is later.
  void set_deadline(std::chrono::steady_clock::time_point time) { deadline_ = time; }
  /// Sets the thread order on cuda-host, from the next process on (Case::order).
  void set_order(std::uint64_t seed) { order_ = seed; }
  /// Ends the process, so that the next call starts a fresh one.
  void restart();
  /// Returns the evaluations of the clauses of `op` in calls that returned so far.
  std::vector<std::uint64_t> clause_counts(const OpDescriptor& op) const;
  /// Returns the description of the device of the last process, taken before any kernel ran there (empty before the
  /// first).
  const std::string& device() const { return device_; }
  /// Starts the kernel's device and returns its Device::largest_buffer(); 0 if the device is missing.
  std::size_t largest_buffer(const Kernel& kernel);

 private:
  struct Mailbox;
  Reply run_there(const Kernel& kernel, std::span<const Index> dims, std::span<const double> params,
                  std::span<const Placed> tensors, BackgroundLoad beside);
  void start(Backend backend);
  /// Reads the worker's reply. The reply is untrusted: every field is read within its bounds, and none of them can make
  /// a wrong result pass.
  Reply wait(std::chrono::milliseconds limit);
  /// Handles a process that has ended, or has closed its end.
  Reply ended();
  /// Makes the worker act on the mailbox.
  Reply ask(std::chrono::milliseconds limit);
  /// Starts the process and its device, outside the time limit of calls. Returns the reason if there is no device.
  std::optional<Reply> start_device(const Kernel& kernel);
  [[noreturn]] void serve(int channel);
  void close_ends();

  Arena arena_;
  Arena post_;  ///< of the mailbox, between two inaccessible pages
  Mailbox* mailbox_;
  std::chrono::milliseconds limit_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::string device_;
  std::size_t largest_buffer_ = 0;
  std::map<const OpDescriptor*, std::vector<std::uint64_t>> evaluated_;
  std::uint64_t order_ = 0;
  bool has_returned_ = false;
  BackgroundLoad beside_ = BackgroundLoad::nothing;
  pid_t pid_ = -1;
  std::unique_ptr<KernelOutput> output_;
  int channel_ = -1, process_ = -1;  ///< descriptors: of the other end, and of the process itself
};

}  // namespace assay::falsify
