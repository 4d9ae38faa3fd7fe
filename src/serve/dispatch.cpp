#include "serve/dispatch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "serve/select.hpp"

namespace assay {
namespace {

using Why = SkippedCandidate::Why;
constexpr Backend kAccelerators[] = {Backend::cuda, Backend::vulkan};

/// Back ends that are switched off, and the sink for the messages.
struct State {
  std::mutex mutex;
  std::array<std::string, std::size(kBackends)> off;
  std::function<void(const std::string&)> sink;
};
State& state() {
  static State one;
  return one;
}

std::atomic<std::uint64_t> fallback_count{0};
thread_local int layer_passes = 0;

/// Devices are not thread-safe: a mutex per back end serializes automatic calls of several threads.
std::mutex& turn(Backend backend) {
  static std::array<std::mutex, std::size(kBackends)> mutexes;
  return mutexes[static_cast<std::size_t>(backend)];
}

/// For a device that is missing or throws DeviceError. Unavailable from a device that is there (memory, a limit) passes
/// over one call only.
void switch_off(Backend backend, const std::string& why) {
  std::function<void(const std::string&)> sink;
  {
    const std::scoped_lock lock(state().mutex);
    std::string& reason = state().off[static_cast<std::size_t>(backend)];
    if (!reason.empty()) return;
    reason = why;
    sink = state().sink;
  }
  if (sink) sink("back end " + std::string(name(backend)) + " is switched off for this process: " + why);
}

double volume_of(const Call& call) {
  double volume = 1;
  // A dim of 0 means an absent tensor.
  for (const Index dim : call.dims) volume *= static_cast<double>(std::max<Index>(dim, 1));
  return volume;
}

/// Returns why an accelerator is not tried. Empty if it is tried: then `kernel` is set.
std::optional<SkippedCandidate> passed_over(std::string_view op, Backend backend, const Call& call,
                                            const Kernel*& kernel) {
  const auto pass = [backend](Why reason, std::string says) {
    return SkippedCandidate{backend, reason, std::move(says)};
  };
  const auto offers = [&](const Kernel& k) {
    return k.op == op && k.backend == backend && k.role == KernelRole::kernel;
  };
  if (std::ranges::none_of(kernels(), offers)) return pass(Why::absent, "this program has no kernel of it");
  if (layer_passes > 0) return pass(Why::suppressed, "a pass over a whole layer is active on this thread");
  if (auto off = switched_off(backend)) return pass(Why::switched_off, *std::move(off));
  try {
    kernel = &select_kernel(op, backend, call);
  } catch (const Unavailable& e) {
    return pass(Why::refused, e.why);
  }
  if (volume_of(call) > kernel->automatic_above) return std::nullopt;
  return pass(Why::too_small, "moving operands to " + std::string(kernel->id) + " costs more than so small a call");
}

/// Returns whether the accelerator served the call.
bool try_accelerator(std::string_view op, Backend backend, const Call& call,
                     const std::function<void(const Kernel&, Device&)>& attempt, Dispatched& result) {
  const Kernel* kernel = nullptr;
  if (auto passed = passed_over(op, backend, call, kernel)) {
    result.passed_over.push_back(*std::move(passed));
    return false;
  }
  const auto fail = [&](const std::string& why) {
    switch_off(backend, why);
    result.passed_over.push_back({backend, Why::switched_off, why});
    return false;
  };
  const std::scoped_lock lock(turn(backend));
  Device* target = nullptr;
  try {
    target = &device(backend);
  } catch (const Unavailable& e) {
    return fail(e.why);
  }
  try {
    attempt(*kernel, *target);
    result.kernel = kernel;
    return true;
  } catch (const Unavailable& e) {  // out of memory or beyond a device limit: the device itself works
    result.passed_over.push_back({backend, Why::refused, e.what()});
    return false;
  } catch (const DeviceError& e) {
    return fail(e.what());
  }
}

void run_on_cpu(std::string_view op, const Call& call, const std::function<void(const Kernel&, Device&)>& attempt,
                Dispatched& result) {
  const std::vector<const Kernel*> candidates = candidate_kernels(op, Backend::cpu, call);
  for (std::size_t i = 0;; ++i) {
    try {
      attempt(*candidates[i], device(Backend::cpu));
      result.kernel = candidates[i];
      return;
    } catch (const Unavailable& e) {
      if (i + 1 == candidates.size()) throw;
      result.passed_over.push_back({Backend::cpu, Why::refused, std::string(candidates[i]->id) + ": " + e.what()});
    }
  }
}

}  // namespace

bool Dispatched::fell_back() const { return std::ranges::any_of(passed_over, &SkippedCandidate::fallback); }

void set_dispatch_sink(std::function<void(const std::string&)> sink) {
  const std::scoped_lock lock(state().mutex);
  state().sink = std::move(sink);
}

std::optional<std::string> switched_off(Backend backend) {
  const std::scoped_lock lock(state().mutex);
  const std::string& reason = state().off[static_cast<std::size_t>(backend)];
  return reason.empty() ? std::nullopt : std::optional(reason);
}

std::uint64_t fallbacks() { return fallback_count.load(); }

LayerPass::LayerPass() { ++layer_passes; }
LayerPass::~LayerPass() { --layer_passes; }

Device* residence(const Call& call) {
  Device* home = nullptr;
  bool first = true;
  for (const Tensor& tensor : call.tensors) {
    if (tensor.data == nullptr || tensor.shape.size() == 0) continue;
    Device* owner = nullptr;
    for (const Backend backend : kAccelerators)
      if (Device* d = started_device(backend); d != nullptr && d->owns(tensor.data)) owner = d;
    if (!first && owner != home)
      throw InputError("automatic dispatch", "the call's tensors lie in the memory of different devices",
                       "move them to one device or to the host");
    home = owner;
    first = false;
  }
  return home;
}

Dispatched dispatch(std::string_view op, const Call& call, Device* home,
                    const std::function<void(const Kernel&, Device&)>& attempt) {
  Dispatched result;
  if (home != nullptr) {
    const Backend backend = home->backend();
    result.kernel = &select_kernel(op, backend, call);
    const std::scoped_lock lock(turn(backend));
    try {
      attempt(*result.kernel, *home);
    } catch (const DeviceError& e) {
      switch_off(backend, e.what());
      throw;
    }
    return result;
  }
  for (const Backend backend : kAccelerators)
    if (try_accelerator(op, backend, call, attempt, result)) break;
  if (result.kernel == nullptr) run_on_cpu(op, call, attempt, result);
  if (result.fell_back()) ++fallback_count;
  return result;
}

}  // namespace assay
