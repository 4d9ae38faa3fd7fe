// A program on a device: planned, prepared and checked once, then run any number of times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "program/plan.hpp"
#include "program/program.hpp"
#include "runtime/registry.hpp"

namespace assay::program {

class Session;

/// A run holds its own steps to their bounds, or none.
enum class Check { none, steps };

struct SessionOptions {
  bool reuse = true;  ///< temporaries share slots (plan.hpp)
  /// The kernel of a step, of its operation and for the device's back end; null, a null result, or one that stores
  /// another format: the preferred one.
  std::function<const Kernel*(const Step&)> choose{};
  /// Another one, whose parameters, states and gradients of the same name are shared. It outlives the new one, and is
  /// on the same device.
  const Session* shares = nullptr;
  /// Makes the runs that are checked: falsify::steps_within_bounds() (falsify/program/check.hpp). Runs within it are
  /// not checked.
  std::function<void(Session&)> check{};
  Index check_every = 0;  ///< so many runs, of which the last one is checked; 0: those of Check::steps alone
  /// Labels of steps whose parameters set_param() changes between runs. Devices that record a program record each of
  /// them alone, so that a change costs little and allocates nothing.
  std::vector<std::string> adjusted{};
};

/// Throws Unavailable, with the bytes that are needed and those that are there, unless sessions of these programs fit on
/// the device together, of which each shares with the first. Allocates nothing, and leaves scratch to the sessions.
void expect_room(Device& device, std::span<const Program* const> programs, const SessionOptions& options);

/// Sessions may be used by several threads, each by one at a time. Those of one device take turns, on every back end:
/// whatever a function does on the device, a whole run among it, it does alone.
class Session {
 public:
  /// Chooses a kernel for each step and prepares it, then reserves the plan's memory and allocates it. Parameters
  /// and states hold zeros. Throws Unavailable where the memory does not fit, before any of it is allocated, or
  /// where no kernel takes a step; InputError where a precondition reads elements that a step computes, where a shared
  /// storage has another layout, or where the kernel that was chosen is another operation's or back end's.
  Session(Program program, Device& device, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Copies dense elements of the value's type to its place, or from there as the last run left it. Throws InputError
  /// for a value whose memory serves another one by the end of a run, and, of elements that have a type, for another one.
  /// Infinities and NaN are taken: every contract says how they propagate.
  void set(Value v, std::span<const std::byte> bytes);
  void get(Value v, std::span<std::byte> bytes);
  /// Likewise of a value in f16 or bf16 as well: to it numbers are rounded to nearest even, and from it they are exact.
  void set(Value v, std::span<const float> elements);
  void get(Value v, std::span<float> elements);
  template <class T>
  void set(Value v, const std::vector<T>& elements) {
    if constexpr (std::is_same_v<T, float>) {
      set(v, std::span(elements));
    } else {
      expect_type<T>(v);
      set(v, std::as_bytes(std::span(elements)));
    }
  }
  template <class T>
  std::vector<T> get(Value v) {
    expect_type<T>(v);
    std::vector<T> elements(static_cast<std::size_t>(program_[v].shape.size()));
    if constexpr (std::is_same_v<T, float>) get(v, std::span(elements));
    else get(v, std::as_writable_bytes(std::span(elements)));
    return elements;
  }
  /// Changes a parameter of the step that has this label, such as a learning rate. Records the step again, and all steps
  /// with it unless SessionOptions::adjusted names it. Throws InputError if there is none.
  void set_param(std::string_view label, std::string_view param, double value);
  /// How often a storage was set, here or by a session that shares it, or its steps have run that write to it. As long
  /// as that stays, so do its elements.
  std::uint64_t changes(std::size_t storage) const { return *changes_[storage]; }
  /// Sets the gradients to zero.
  void clear_gradients();

  /// Runs every step, and returns when the results may be read. Allocates nothing. Evaluates the contracts'
  /// preconditions, those of inputs alone only after a set(). Throws InputError for an input that steps read and of
  /// which an element was never set; ContractViolation, which names the step and the first element that is out of
  /// range; or what the device throws. While spans are recorded (serve/trace.hpp), each step runs alone, in a span of
  /// its own inside the span "program". A checked run, which allocates, costs more and throws what
  /// SessionOptions::check throws, leaves the same results.
  void run(Check check = Check::none);
  /// Returns the seconds that the device took for the last run without spans: by the device's clock, or by the host's
  /// where kernels run on the host. Throws Unavailable if the device has no clock.
  double seconds() const;
  /// Runs each step alone and returns the seconds of each, as seconds() does. Values and gradients are undefined
  /// afterwards.
  std::vector<double> step_seconds();

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  Device& device() const { return device_; }
  const Kernel& kernel(std::size_t step) const { return *kernels_[step]; }
  const Call& call(std::size_t step) const { return calls_[step]; }

 private:
  /// A step's preconditions, on elements that the host can read.
  struct Precondition {
    /// Elements that they read, of a device that the host cannot read.
    struct Copy {
      std::int32_t storage;
      const std::byte* device;
      std::vector<std::byte> bytes;
      bool current = false;
    };
    std::size_t step;
    Call call;
    std::vector<std::int32_t> storages;  ///< that they read
    std::vector<Copy> copies;
    bool lasts = true;  ///< all of it is inputs, which set() alone changes: evaluated again only after a change
    bool due = true;
    bool repeats =
        false;  ///< an earlier one evaluates the same clauses on the same elements, such as that of a layer before
  };

  void open(const SessionOptions& options);
  void close() noexcept;
  void choose_kernels(const std::function<const Kernel*(const Step&)>& choose);
  void allocate(std::size_t bytes, const std::vector<bool>& own);
  /// Steps that one recording runs; none where the device runs kernels at once.
  struct Piece {
    std::size_t begin, end;
    std::unique_ptr<RecordedWork> recording;
  };
  void cut(const std::vector<std::string>& adjusted);
  void record(Piece& piece);
  void run_step(std::size_t step);
  void share(const Session& other, std::vector<bool>& own);
  void add_preconditions(std::size_t step);
  bool repeats(const Step& step, const Step& earlier) const;
  void check(Precondition& precondition);
  void clear(std::size_t slot);
  std::size_t slot(std::size_t storage) const { return static_cast<std::size_t>(plan_.slot_of[storage]); }
  void run_unchecked();
  void run_in_spans();
  Tensor tensor(Value v) const;
  void expect_readable(Value v, std::size_t bytes) const;
  template <class T>
  void expect_type(Value v) const {
    if constexpr (std::is_same_v<T, float>) expect_type(v, DType::f32);
    else if constexpr (std::is_same_v<T, std::int32_t>) expect_type(v, DType::i32);
    else if constexpr (std::is_same_v<T, std::uint8_t>) expect_type(v, DType::u8);
  }
  void expect_type(Value v, DType dtype) const;
  void expect_inputs() const;
  void note_set(Value v);
  void note_writes();
  [[noreturn]] void refuse(const ContractViolation& violation, const Precondition& p) const;

  Program program_;
  Device& device_;
  std::recursive_mutex& turn_;  ///< of the device
  Plan plan_;
  std::vector<Buffer> buffers_;
  std::vector<std::byte*> slots_;                        ///< addresses
  std::vector<std::shared_ptr<std::uint64_t>> changes_;  ///< of each storage; sessions that share it have one
  std::vector<bool> is_written_;                         ///< of each storage: a step writes to it
  std::span<std::byte> scratch_;                         ///< of host kernels
  std::vector<Call> calls_;
  std::vector<const Kernel*> kernels_;
  std::vector<std::int32_t> last_user_;  ///< of each slot: the storage that holds it after a run
  std::vector<Piece> pieces_;            ///< all steps, in order
  double seconds_ = 0;                   ///< of the last run on the host
  std::vector<Precondition> preconditions_;
  std::function<void(Session&)> check_;
  Index check_every_, runs_ = 0;
  bool checking_ = false;
  struct Stretch {
    Index begin, end;
  };
  std::map<std::int32_t, std::vector<Stretch>> unset_;  ///< elements of storages of inputs that steps read
};

}  // namespace assay::program
