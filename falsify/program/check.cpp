#include "falsify/program/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "core/errors.hpp"
#include "core/half.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/program/execute.hpp"

namespace assay::falsify {
namespace {

using program::Kind;
using program::Session;
using program::Value;
using Bytes = std::vector<std::byte>;

std::size_t stretch_of(const Tensor& tensor) {
  return static_cast<std::size_t>(View<const float>(nullptr, tensor.shape, tensor.strides).extent()) *
         size_of(tensor.dtype);
}

float element(DType dtype, const std::byte* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32: return as(0.0F);
    case DType::f16: return widen(as(Half{}));
    case DType::bf16: return widen(as(BFloat16{}));
    case DType::i32: return static_cast<float>(as(std::int32_t{0}));
    case DType::u8: return static_cast<float>(as(std::uint8_t{0}));
  }
  return 0;
}

/// The byte of a tensor's stretch at which element n begins.
std::size_t byte_of(const Tensor& tensor, Index n) {
  return static_cast<std::size_t>(offset_of(tensor.shape, tensor.strides, n)) * size_of(tensor.dtype);
}

bool is_dense(const Tensor& tensor) { return View<const float>(nullptr, tensor.shape, tensor.strides).contiguous(); }

std::vector<float> floats(const Tensor& tensor, const std::byte* bytes) {
  if (tensor.dtype == DType::f32 && is_dense(tensor)) {
    const auto* const first = reinterpret_cast<const float*>(bytes);
    return {first, first + tensor.shape.size()};
  }
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.size()));
  for (std::size_t n = 0; n < values.size(); ++n)
    values[n] = element(tensor.dtype, bytes + byte_of(tensor, static_cast<Index>(n)));
  return values;
}

/// The first element whose bits differ between two stretches of a tensor.
std::optional<Index> difference(const Tensor& tensor, const std::byte* a, const std::byte* b) {
  if (const std::size_t bytes = stretch_of(tensor); bytes == 0 || std::memcmp(a, b, bytes) == 0) return {};
  for (Index n = 0; n < tensor.shape.size(); ++n)
    if (const std::size_t at = byte_of(tensor, n); !std::equal(a + at, a + at + size_of(tensor.dtype), b + at))
      return n;
  return {};  // gaps between rows belong to others
}

/// Work for every core. Memory that work holds is bounded: beyond twice as many items as cores, adding waits.
class Crew {
 public:
  Crew() {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t n = 0; n < cores; ++n) threads_.emplace_back([this] { work(); });
  }
  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void add(std::function<void()> item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.size() < 2 * threads_.size(); });
    items_.push_back(std::move(item));
    changed_.notify_all();
  }
  /// Waits for all of it. Throws what an item threw.
  void finish() {
    end();
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    threads_.clear();
  }
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ended_ || !items_.empty(); });
      if (items_.empty()) return;
      const std::function<void()> item = std::move(items_.front());
      items_.pop_front();
      changed_.notify_all();
      lock.unlock();
      try {
        item();
      } catch (...) {
        const std::lock_guard failing(mutex_);
        failed_ = std::current_exception();
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> items_;
  std::exception_ptr failed_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;
};

/// Seconds of the oracle below which a step is judged at once.
constexpr double kShort = 1e-4;
/// Elements that a step reads above which it is judged before the next one runs, for want of memory.
constexpr std::size_t kMany = std::size_t{1} << 24;
/// Bytes around each tensor of a rehearsal, and their number: a kernel that counts rows for columns writes far from its
/// results.
constexpr std::byte kSentinel{0x5b};
constexpr std::size_t kSlack = std::size_t{1} << 16, kAlignment = 256;
/// Bytes of an operand that is not copied: those of tables of whole models, whose copies would cost more than the step.
constexpr std::size_t kTable = std::size_t{1} << 26;

/// Runs a step on copies of its tensors, between sentinels.
class Rehearsal {
 public:
  explicit Rehearsal(Device& device) : device_(device) {}

  struct Stray {
    std::size_t tensor;
    Finding finding;
  };
  /// Returns what the step does besides writing its results. `contents` gives the bytes of a tensor, null for zeros.
  std::optional<Stray> run(const OpDescriptor& op, const Kernel& kernel, const Call& of,
                           const std::function<const std::byte*(const Tensor&)>& contents) {
    Call call = of;
    std::vector<std::size_t> places;
    std::size_t bytes = kSlack;
    const auto stays = [&](std::size_t t) {
      const Tensor& tensor = of.tensors[t];
      return tensor.shape.size() == 0 ||
             (op.tensors[t].role == Role::in && tensor.data != nullptr && stretch_of(tensor) > kTable);
    };
    for (std::size_t t = 0; t < call.tensors.size(); ++t) {
      const Tensor& tensor = call.tensors[t];
      places.push_back(bytes);
      if (stays(t)) continue;
      bytes += (stretch_of(tensor) + kAlignment - 1) / kAlignment * kAlignment + kSlack;
    }
    if (bytes > device_.largest_buffer() || !reserve(bytes)) return {};
    // All is sentinels between two rehearsals: to fill it again would cost more than a small step.
    std::byte* const memory = static_cast<std::byte*>(memory_.address());
    std::byte* const staged = device_.host_visible() ? memory : staged_.data();
    std::vector<Bytes> read(call.tensors.size());
    for (std::size_t t = 0; t < call.tensors.size(); ++t) {
      Tensor& tensor = call.tensors[t];
      if (stays(t)) continue;
      const std::byte* const now = contents(tensor);
      const std::size_t size = size_of(tensor.dtype);
      const bool reads = op.tensors[t].role == Role::in,
                 flips = reads && tensor.dtype != DType::i32;  // these are places
      std::byte* const first = staged + places[t];
      each_stretch(tensor, [&](std::size_t at, std::size_t count) {
        if (now != nullptr) std::copy_n(now + at, count, first + at);
        else std::fill_n(first + at, count, std::byte{});
        for (std::size_t sign = size - 1; flips && sign < count; sign += size) first[at + sign] ^= std::byte{0x80};
      });
      if (reads) read[t].assign(first, first + stretch_of(tensor));
      tensor.data = memory + places[t];
    }
    if (!device_.host_visible()) device_.upload(memory, staged, bytes);
    kernel.run(call, device_);
    device_.synchronize();
    std::byte* after = memory;
    if (!device_.host_visible()) {
      after_.resize(bytes);
      device_.download(after = after_.data(), memory, bytes);
    }
    std::optional<Stray> stray;
    for (std::size_t t = 0; t < call.tensors.size(); ++t) {
      const Tensor& tensor = call.tensors[t];
      if (stays(t)) continue;
      std::byte* const now = after + places[t];
      if (const auto at = read[t].empty() ? std::nullopt : difference(tensor, now, read[t].data()); at && !stray)
        stray = changed(t, tensor, *at, now, read[t].data());
      for (std::byte* all : {after, staged})
        each_stretch(tensor,
                     [&](std::size_t at, std::size_t count) { std::fill_n(all + places[t] + at, count, kSentinel); });
    }
    if (after[0] == kSentinel && std::memcmp(after, after + 1, bytes - 1) == 0) return stray;
    const std::byte* const begin = after;
    const auto at = std::find_if(begin, begin + bytes, [](std::byte b) { return b != kSentinel; }) - begin;
    std::fill_n(after, bytes, kSentinel);
    std::optional<std::size_t> nearest;  // the last result that begins before it, or the first one
    for (std::size_t t = 0; t < call.tensors.size(); ++t)
      if (op.tensors[t].role != Role::in && (!nearest || std::cmp_less_equal(places[t], at))) nearest = t;
    if (stray || !nearest) return stray;
    const auto distance = at - static_cast<std::ptrdiff_t>(places[*nearest]);
    return Stray{*nearest,
                 named(Finding::Kind::out_of_bounds,
                       fmt::format("it writes outside of its results, {} bytes {} the first element of {}",
                                   std::abs(distance), distance < 0 ? "before" : "behind", op.tensors[*nearest].name))};
  }

 private:
  static Finding named(Finding::Kind kind, std::string message) { return {kind, std::move(message), {}, {}}; }

  static Stray changed(std::size_t t, const Tensor& tensor, Index n, const std::byte* now, const std::byte* want) {
    const std::size_t at = byte_of(tensor, n);
    Finding finding = named(Finding::Kind::out_of_bounds, "");
    finding.index = index_of(tensor.shape, static_cast<std::size_t>(n));
    finding.got = element(tensor.dtype, now + at), finding.want = element(tensor.dtype, want + at);
    finding.message =
        fmt::format("it changed what it only reads (of a copy; got {}, want {})", finding.got, finding.want);
    return {t, std::move(finding)};
  }

  /// Calls f(first byte, number) for each stretch without a gap.
  template <class F>
  static void each_stretch(const Tensor& tensor, F f) {
    if (is_dense(tensor)) return f(std::size_t{0}, stretch_of(tensor));
    for (Index n = 0; n < tensor.shape.size(); ++n) f(byte_of(tensor, n), size_of(tensor.dtype));
  }

  /// Returns false where the device has no memory beside the session's.
  bool reserve(std::size_t bytes) {
    if (memory_.bytes() >= bytes) return true;
    memory_ = {};
    try {
      memory_ = device_.allocate(bytes);
    } catch (const Unavailable&) {
      return false;
    }
    if (device_.host_visible()) std::fill_n(static_cast<std::byte*>(memory_.address()), bytes, kSentinel);
    else staged_.assign(bytes, kSentinel);
    return true;
  }

  Device& device_;
  Buffer memory_;
  Bytes staged_, after_;  ///< of a device that the host does not see
};

/// A storage as the last checked run found it.
struct Seen {
  bool any = false;
  std::uint64_t changes = 0;  ///< Session::changes()
  std::uint64_t digest = 0;
};

std::uint64_t digest(const Bytes& bytes) {
  std::uint64_t all = bytes.size(), word = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    all = scramble(all ^ word);
  }
  return all;
}

class Checker {
 public:
  /// `seen` is of the last checked run, and becomes that of this one.
  Checker(Session& session, std::uint64_t seed, std::vector<Seen>* seen = nullptr)
      : session_(session), device_(session.device()), seed_(seed), seen_(seen) {
    const program::Program& program = session_.program();
    for (const program::Storage& storage : program.storages)
      memory_.emplace_back(static_cast<std::size_t>(storage.elements) * size_of(storage.dtype));
    written_by_.assign(program.storages.size(), "the host"), is_written_.resize(program.storages.size());
    for (const program::Step& step : program.steps)
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role != Role::in) is_written_[storage(step.tensors[t])] = true;
  }

  CheckedRun run() {
    each_value_that_lasts([&](Value v, const Tensor& tensor) { remember(v, tensor, bytes_of(tensor)); });
    const std::size_t steps = session_.program().steps.size();
    if (seen_ != nullptr) expect_as_seen();
    for (std::size_t s = 0; s < steps && !checked_.fault; ++s) rehearse(s);
    each_value_that_lasts([&](Value v, const Tensor& tensor) { restore(v, tensor); });
    if (checked_.fault) return checked_;
    session_.run();
    std::vector<Bytes> whole;
    each_value_that_lasts([&](Value v, const Tensor& tensor) {
      const std::byte* const bytes = bytes_of(tensor);
      whole.emplace_back();
      if (is_written_[storage(v)] || difference(tensor, bytes, recorded(v)))
        whole.back().assign(bytes, bytes + stretch_of(tensor));
    });
    each_value_that_lasts([&](Value v, const Tensor& tensor) { restore(v, tensor); });
    judged_.resize(steps);
    for (std::size_t s = 0; s < steps && s < first_wrong_; ++s) check(s);
    crew_.finish();
    for (std::size_t s = 0; s < steps && s <= first_wrong_; ++s) take(s);
    if (checked_.fault) return checked_;
    std::size_t next = 0;
    each_value_that_lasts([&](Value v, const Tensor& tensor) {
      const Bytes& once = whole[next++];
      const std::byte* const now = bytes_of(tensor);
      expect_same(steps, v, tensor, now, recorded(v), Finding::Kind::out_of_bounds,
                  "a step wrote here, although it is no result of it");
      if (deterministic_ && !once.empty())
        expect_same(steps, v, tensor, once.data(), now, Finding::Kind::bits,
                    "the whole run and the run step by step differ");
    });
    return checked_;
  }

 private:
  /// Calls f once for each value of a step that outlives the run.
  template <class F>
  void each_value_that_lasts(F f) {
    const program::Program& program = session_.program();
    std::vector<bool> seen(program.values.size());
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      for (std::size_t t = 0; t < program.steps[s].tensors.size(); ++t) {
        const Value v = program.steps[s].tensors[t];
        const bool lasts =
            program.storage_of(v).kind != Kind::temporary || std::ranges::any_of(program.outputs, [&](Value output) {
              return program[output].storage == program[v].storage;
            });
        if (!lasts || seen[static_cast<std::size_t>(v.id)]) continue;
        seen[static_cast<std::size_t>(v.id)] = true;
        f(v, session_.call(s).tensors[t]);
      }
  }

  /// A tensor's elements as they are, with the gaps between its rows; of a device that the host does not see, until the
  /// next call.
  const std::byte* bytes_of(const Tensor& tensor) {
    if (device_.host_visible()) return static_cast<const std::byte*>(tensor.data);
    const std::size_t bytes = stretch_of(tensor);
    if (downloaded_.size() < bytes) downloaded_.resize(bytes);
    if (bytes != 0) device_.download(downloaded_.data(), tensor.data, bytes);
    return downloaded_.data();
  }

  std::size_t storage(Value v) const { return static_cast<std::size_t>(session_.program()[v].storage); }
  /// The first byte of a value in a copy of its storage.
  std::size_t begin(Value v) const {
    return static_cast<std::size_t>(session_.program()[v].offset) * size_of(session_.program().storage_of(v).dtype);
  }
  const std::byte* recorded(Value v) const { return memory_[storage(v)].data() + begin(v); }

  /// Notes a value's elements, and nothing of the gaps between its rows.
  void remember(Value v, const Tensor& tensor, const std::byte* bytes) {
    std::byte* const to = memory_[storage(v)].data() + begin(v);
    if (is_dense(tensor)) {
      std::copy_n(bytes, stretch_of(tensor), to);
      return;
    }
    for (Index n = 0; n < tensor.shape.size(); ++n) {
      const std::size_t at = byte_of(tensor, n);
      std::memcpy(to + at, bytes + at, size_of(tensor.dtype));
    }
  }
  void restore(Value v, const Tensor& tensor) {
    if (const std::size_t bytes = stretch_of(tensor); bytes != 0) device_.upload(tensor.data, recorded(v), bytes);
  }

  /// Overwrites a tensor's elements with NaN: the whole run has left the right ones there.
  void poison(const Tensor& tensor) {
    const std::size_t bytes = stretch_of(tensor);
    if (bytes == 0) return;
    const std::byte* const now = bytes_of(tensor);
    Bytes poisoned(now, now + bytes);
    for (Index n = 0; n < tensor.shape.size(); ++n)
      std::fill_n(poisoned.data() + byte_of(tensor, n), size_of(tensor.dtype), std::byte{0xff});
    device_.upload(tensor.data, poisoned.data(), bytes);
  }

  /// Fails with this kind and meaning if the stretches differ.
  void expect_same(std::size_t step, Value v, const Tensor& tensor, const std::byte* now, const std::byte* want,
                   Finding::Kind kind, std::string_view meaning) {
    if (step >= first_wrong_) return;
    const auto at = difference(tensor, now, want);
    if (!at) return;
    const std::size_t byte = byte_of(tensor, *at);
    Finding finding{kind,
                    "",
                    session_.program()[v].name,
                    index_of(tensor.shape, static_cast<std::size_t>(*at)),
                    element(tensor.dtype, now + byte),
                    element(tensor.dtype, want + byte),
                    0};
    finding.message = fmt::format("{} (got {}, want {})", meaning, finding.got, finding.want);
    fail(step, v, std::move(finding));
  }

  void fail(std::size_t step, Value v, Finding finding) {
    const program::Program& program = session_.program();
    StepFault fault{step, step < program.steps.size() ? program::describe(program.steps[step]) : "the whole run",
                    program[v].name, std::move(finding)};
    const std::lock_guard lock(mutex_);
    if (step >= first_wrong_) return;
    first_wrong_ = step;
    checked_.fault = std::move(fault);
  }

  /// Fails for a storage that has changed since the last checked run, although nothing may have changed it.
  void expect_as_seen() {
    const program::Program& program = session_.program();
    seen_->resize(program.storages.size());
    for (std::size_t i = 0; i < program.storages.size(); ++i) {
      if (program.storages[i].kind == Kind::temporary || is_written_[i]) continue;
      const Seen now{true, session_.changes(i), digest(memory_[i])};
      Seen& last = (*seen_)[i];
      if (last.any && last.changes == now.changes && last.digest != now.digest && !checked_.fault)
        checked_.fault = {program.steps.size(), "a run since the last checked one", program.storages[i].name,
                          Finding{Finding::Kind::out_of_bounds,
                                  "a step wrote here, although it is no result of it: set it anew",
                                  {},
                                  {}}};
      else last = now;
    }
  }

  /// Adds what was found of a step.
  void take(std::size_t s) {
    const Outcome& outcome = judged_[s];
    checked_.elements += outcome.elements;
    checked_.nonzero += outcome.nonzero;
    checked_.worst = std::max(checked_.worst, outcome.worst);
    checked_.steps += s < first_wrong_;
  }

  void judge(std::size_t s, const Problem& problem, const Run& results) {
    const program::Step& step = session_.program().steps[s];
    Case c;
    c.dims = step.dims, c.params = step.params, c.seed = derive(seed_, step.label);
    const Trial trial(*step.op, session_.kernel(s), c, idle_);
    judged_[s] = trial.against_oracle(trial.strictest(), problem, results);
    if (!judged_[s].finding) return;
    const auto wrong = std::ranges::find(step.op->tensors, judged_[s].finding->tensor, &TensorInfo::name);
    fail(s, step.tensors[static_cast<std::size_t>(wrong - step.op->tensors.begin())], *judged_[s].finding);
  }

  /// Before the whole run, since a write beyond the results may end this process there. What a step only reads has the
  /// other sign, so that a kernel that has put a number of its own there in an earlier run changes it again.
  void rehearse(std::size_t s) {
    const program::Step& step = session_.program().steps[s];
    const auto stray = rehearsal_.run(*step.op, session_.kernel(s), session_.call(s),
                                      [&](const Tensor& tensor) { return bytes_of(tensor); });
    if (stray) fail(s, step.tensors[stray->tensor], stray->finding);
  }

  void check(std::size_t s) {
    const program::Step& step = session_.program().steps[s];
    const Call& call = session_.call(s);
    const Kernel& kernel = session_.kernel(s);
    const OpDescriptor& op = *step.op;
    deterministic_ &= kernel.deterministic;
    Problem problem{&op, step.dims, step.params, {}, kernel.storage};
    for (std::size_t t = 0; t < call.tensors.size(); ++t) {
      problem.values.emplace_back();
      if (op.tensors[t].role == Role::out) continue;
      const std::byte* const now = bytes_of(call.tensors[t]);
      expect_same(s, step.tensors[t], call.tensors[t], now, recorded(step.tensors[t]), Finding::Kind::out_of_bounds,
                  fmt::format("it reads what is no longer as {} left it", written_by_[storage(step.tensors[t])]));
      problem.values.back() = floats(call.tensors[t], now);
    }
    if (s >= first_wrong_) return;
    for (std::size_t t = 0; t < call.tensors.size(); ++t)
      if (op.tensors[t].role == Role::out) poison(call.tensors[t]);
    kernel.run(call, device_);
    device_.synchronize();
    Run results;
    for (std::size_t t = 0; t < call.tensors.size(); ++t) {
      const Value v = step.tensors[t];
      const std::byte* const now = bytes_of(call.tensors[t]);
      if (op.tensors[t].role == Role::in) {
        expect_same(s, v, call.tensors[t], now, recorded(v), Finding::Kind::out_of_bounds,
                    "it changed what it only reads");
        continue;
      }
      results.outputs.push_back(floats(call.tensors[t], now));
      remember(v, call.tensors[t], now);
      written_by_[storage(v)] = program::describe(step);
    }
    if (s >= first_wrong_) return;
    std::size_t elements = 0;
    for (const std::vector<float>& values : problem.values) elements += values.size();
    if (oracle_cost(op, step.dims) < kShort || elements > kMany) return judge(s, problem, results);
    crew_.add([this, s, problem = std::move(problem), results = std::move(results)] { judge(s, problem, results); });
  }

  Session& session_;
  Device& device_;
  std::uint64_t seed_;
  std::vector<Seen>* seen_;
  Bytes downloaded_;
  Rehearsal rehearsal_{device_};
  std::vector<Bytes> memory_;            ///< of each storage: what the host and the steps so far have put there
  std::vector<bool> is_written_;         ///< of each storage: some step writes to it
  std::vector<std::string> written_by_;  ///< of each storage: its last writer
  bool deterministic_ = true;
  Worker idle_{std::chrono::seconds(1), 4096};  ///< judges run no kernel
  std::mutex mutex_;
  CheckedRun checked_;
  std::atomic<std::size_t> first_wrong_ = SIZE_MAX;
  std::vector<Outcome> judged_;  ///< of each step
  Crew crew_;                    ///< the last member: it ends before what it works on
};

}  // namespace

std::string describe(const StepFault& fault, std::size_t steps) {
  if (fault.step >= steps) return fault.label;
  return fmt::format("step {} of {}, {}", fault.step + 1, steps, fault.label);
}

CheckedRun check_steps(Session& session, std::uint64_t seed) { return Checker(session, seed).run(); }

WrongStep::WrongStep(const StepFault& of)
    : std::runtime_error(fmt::format("{}: {}: {}", of.label, of.value, of.finding.message)), fault(of) {}

void expect_in_its_place(const program::Step& step, const Kernel& kernel, Device& device) {
  Call call{step.dims, step.params, {}};
  for (const TensorInfo& t : step.op->tensors) {
    const Shape shape = t.shape(step.dims);
    call.tensors.push_back({t.storage ? kernel.storage : t.dtype, nullptr, shape, row_major_strides(shape)});
  }
  const auto stray = Rehearsal(device).run(*step.op, kernel, call, [](const Tensor&) { return nullptr; });
  if (!stray) return;
  throw WrongStep({0, program::describe(step), std::string(step.op->tensors[stray->tensor].name), stray->finding});
}

std::function<void(Session&)> steps_within_bounds(CheckedRun& all, std::uint64_t seed) {
  return [&all, seed, seen = std::vector<Seen>()](Session& session) mutable {
    const CheckedRun run = Checker(session, seed, &seen).run();
    all.steps += run.steps, all.elements += run.elements, all.nonzero += run.nonzero;
    all.worst = std::max(all.worst, run.worst);
    if (!run.fault) return;
    if (!all.fault) all.fault = run.fault;
    throw WrongStep(*run.fault);
  };
}

}  // namespace assay::falsify
