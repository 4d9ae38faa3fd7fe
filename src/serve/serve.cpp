#include "serve/serve.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "runtime/registry.hpp"
#include "runtime/span.hpp"
#include "serve/select.hpp"
#include "serve/transfer.hpp"

namespace assay::serve {
namespace {

using contract::EnforcedContract;
using contract::Ran;

/// Returns the dims as "m=3 k=4 n=5".
std::string shape_text(const OpDescriptor& op, const Call& call) {
  std::string text;
  for (std::size_t d = 0; d < call.dims.size(); ++d)
    text += fmt::format("{}{}={}", d == 0 ? "" : " ", op.dims[d].name, call.dims[d]);
  return text;
}

/// Calls `run`, which runs this kernel on this device, inside a span.
template <class Run>
void traced(const OpDescriptor& op, const Call& call, const Kernel& kernel, Device& device, const Run& run) {
  const trace::Scope span(op.name, [&](trace::Span& s) {
    s.attributes = {{"shape", shape_text(op, call)},
                    {"kernel", std::string(kernel.id)},
                    {"backend", std::string(name(device.backend()))}};
  });
  run();
  if (span.recording()) device.synchronize();
}

Ran run_here(const EnforcedContract& contract, const Call& call, const Kernel& kernel, Device& device) {
  if (const auto why = refuses_storage(kernel, call)) throw Unavailable(std::string(kernel.id), *why);
  traced(*contract.op, call, kernel, device, [&] { kernel.run(call, device); });
  return {&kernel, &device};
}

}  // namespace

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
