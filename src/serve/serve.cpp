#include "serve/serve.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/errors.hpp"
#include "runtime/registry.hpp"
#include "serve/select.hpp"
#include "serve/transfer.hpp"

namespace assay::serve {
namespace {

using contract::EnforcedContract;
using contract::Ran;

constexpr std::uint64_t kSaidEvery = 10000;
std::array<std::atomic<std::uint64_t>, std::size(kBackends)> call_counts{};
std::mutex sink_mutex;
std::function<void(const std::string&)> call_sink;

std::string shape_of(const OpDescriptor& op, const Call& call) {
  std::string shape;
  for (std::size_t d = 0; d < call.dims.size(); ++d)
    shape += fmt::format("{}{}={}", d == 0 ? "" : " ", op.dims[d].name, call.dims[d]);
  return shape;
}

void count(const OpDescriptor& op, const Call& call, Backend backend) {
  const std::uint64_t calls =
      1 + call_counts[static_cast<std::size_t>(backend)].fetch_add(1, std::memory_order_relaxed);
  if (backend == Backend::cpu || backend == Backend::cuda_host || (calls != 1 && calls % kSaidEvery != 0)) return;
  std::function<void(const std::string&)> sink;
  {
    const std::scoped_lock lock(sink_mutex);
    sink = call_sink;
  }
  if (!sink) return;
  sink(calls == 1
           ? fmt::format("back end {} has served its first call: {} ({})", name(backend), op.name, shape_of(op, call))
           : fmt::format("back end {} has served {} calls", name(backend), calls));
}

/// Calls `run`, which runs this kernel on this device, inside a span, and counts it once it has returned.
template <class Run>
void traced(const OpDescriptor& op, const Call& call, const Kernel& kernel, Device& device, const Run& run) {
  const trace::Scope span(op.name, [&](trace::Span& s) { s.attributes = attributes(op, call, kernel, device); });
  run();
  if (span.recording()) device.synchronize();
  count(op, call, device.backend());
}

Ran run_here(const EnforcedContract& contract, const Call& call, const Kernel& kernel, Device& device) {
  if (const auto why = refuses_storage(kernel, call)) throw Unavailable(std::string(kernel.id), *why);
  traced(*contract.op, call, kernel, device, [&] { kernel.run(call, device); });
  return {&kernel, &device};
}

}  // namespace

void set_call_sink(std::function<void(const std::string&)> sink) {
  const std::scoped_lock lock(sink_mutex);
  call_sink = std::move(sink);
}

std::uint64_t calls(Backend backend) { return call_counts[static_cast<std::size_t>(backend)].load(); }

std::vector<trace::Attribute> attributes(const OpDescriptor& op, const Call& call, const Kernel& kernel,
                                         const Device& device) {
  return {{"shape", shape_of(op, call)},
          {"kernel", std::string(kernel.id)},
          {"backend", std::string(name(device.backend()))}};
}

void call(const EnforcedContract& contract, const void* args, const Call& call, const Kernel& kernel, Device& device) {
  guard(
      contract, args, call, [&]() -> Device& { return device; },
      [&] { return run_here(contract, call, kernel, device); });
}

void call(const EnforcedContract& contract, const void* args, const Call& call, Backend backend) {
  guard(
      contract, args, call, [&]() -> Device& { return device(backend); },
      [&] { return run_here(contract, call, select_kernel(contract.op->name, backend, call), device(backend)); });
}

Dispatched call(const EnforcedContract& contract, const void* args, const Call& call, Automatic) {
  Dispatched dispatched;
  const auto where = [&]() -> Device& {
    Device* const home = residence(call);
    return home != nullptr ? *home : device(Backend::cpu);
  };
  guard(contract, args, call, where, [&] {
    Device* const home = residence(call);
    dispatched = dispatch(contract.op->name, call, home, [&](const Kernel& kernel, Device& device) {
      traced(*contract.op, call, kernel, device, [&] {
        if (home != nullptr) kernel.run(call, device);
        else contract::run_with_copies(*contract.op, kernel, call, device);
      });
    });
    return Ran{dispatched.kernel, home != nullptr ? home : &device(Backend::cpu)};
  });
  return dispatched;
}

}  // namespace assay::serve
