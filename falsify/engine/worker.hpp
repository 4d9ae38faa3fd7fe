// The process in which kernels run. The driver lays a call out in shared memory, sends one byte, and waits
// with a time limit: a crash, a hang or an exit of the kernel is an answer like any other, and the next
// call gets a fresh worker. Devices are opened inside the worker only.
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

/// How a call ended.
struct Reply {
  enum class Status {
    done,         ///< outputs may be read
    refused,      ///< the kernel says that it cannot take the call
    unavailable,  ///< device or memory missing
    invalid,      ///< a requires clause was false: the case is no call of this operation
    violated,     ///< an ensures clause or certificate was false
    failed,       ///< the kernel threw, or its device reported an error or a validation message
    crashed,      ///< the process died
    hung,         ///< no answer within the limit: keep it last
  } status = Status::done;
  std::string detail;  ///< the reason, clause text, error, or signal
};

/// What goes on in the process while a call of a host back end runs: `load`, threads that keep its processors busy, off and on.
enum class Beside { nothing, load };

/// A call was cut short by give_up_at(): nothing is known about it.
struct TimeIsUp {};

class Worker {
 public:
  /// Bytes for the tensors of a call, and what lies around them.
  static constexpr std::size_t kArenaBytes = std::size_t{1} << 31;

  /// Time a call may take before it counts as a hang.
  explicit Worker(std::chrono::milliseconds limit, std::size_t arena_bytes = kArenaBytes);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Arena& arena() { return arena_; }

  /// Runs the kernel on tensors placed in the arena. The contract is checked around the call, in this process, at the level
  /// given; at level off it is not asked: the call may be one that it forbids. The kernel must have existed when the process
  /// started, as registered ones have: call restart() before the first use of another. Throws TimeIsUp.
  Reply run(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims, std::span<const double> params,
            std::span<const Placed> tensors, contract::Level level = contract::Level::full);
  /// What the contract's requires clauses have against a call, evaluated in this process.
  std::optional<std::string> forbids(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims,
                                     std::span<const double> params, std::span<const Placed> tensors) const;
  /// Of the next call alone.
  void beside(Beside what) { beside_ = what; }
  /// A call of a kernel under test has returned normally.
  bool has_returned() const { return has_returned_; }
  /// A call that would have time beyond this, but does not return until then, is given up.
  void give_up_at(std::chrono::steady_clock::time_point time) { give_up_at_ = time; }
  /// Of the threads on cuda-host, from the next process on (Case::order).
  void set_order(std::uint64_t seed) { order_ = seed; }
  /// Ends the process, so that the next call starts in a fresh one.
  void restart();
  /// Evaluations of the clauses of `op` in calls that returned so far.
  std::vector<std::uint64_t> clause_counts(const OpDescriptor& op) const;
  /// Description of the device the last process ran on, as it was before any kernel ran there (empty before the first).
  const std::string& device() const { return device_; }
  /// Device::largest_buffer() of the kernel's device, which is started; 0 where it is not here.
  std::size_t largest_buffer(const Kernel& kernel);

 private:
  struct Mailbox;
  Reply run_there(const Kernel& kernel, std::span<const Index> dims, std::span<const double> params, std::span<const Placed> tensors,
                  Beside beside);
  void start(Backend backend);
  /// What its process answers is the word of whatever ran there: every field is read within its bounds, and nothing in it
  /// makes a wrong result right.
  Reply wait(std::chrono::milliseconds limit);
  /// The process has ended, or has closed its end.
  Reply ended();
  /// Has the worker act on the mailbox.
  Reply ask(std::chrono::milliseconds limit);
  /// Starts the process and its device, which takes as long as it takes. Gives the reason where there is none.
  std::optional<Reply> start_device(const Kernel& kernel);
  [[noreturn]] void serve(int channel);
  void close_ends();

  Arena arena_;
  Arena post_;  ///< of the mailbox, between two pages that nobody may touch
  Mailbox* mailbox_;
  std::chrono::milliseconds limit_;
  std::optional<std::chrono::steady_clock::time_point> give_up_at_;
  std::string device_;
  std::size_t largest_buffer_ = 0;
  std::map<const OpDescriptor*, std::vector<std::uint64_t>> evaluated_;
  std::uint64_t order_ = 0;
  bool has_returned_ = false;
  Beside beside_ = Beside::nothing;
  pid_t pid_ = -1;
  std::unique_ptr<KernelOutput> output_;
  int channel_ = -1, process_ = -1;  ///< descriptors: of the other end, and of the process itself
};

}  // namespace assay::falsify
