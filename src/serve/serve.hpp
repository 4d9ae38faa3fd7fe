// Calls of generated entry points: the choice of a kernel, spans and copies around enforced contracts
// (contract/enforce.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "contract/enforce.hpp"
#include "runtime/span.hpp"
#include "serve/dispatch.hpp"

namespace assay::serve {

/// Runs this kernel behind the contract, inside a span. Throws what enforce() throws.
void call(const contract::EnforcedContract& contract, const void* args, const Call& call, const Kernel& kernel,
          Device& device);
/// Uses the back end's preferred kernel (serve/select.hpp), chosen after the requires clauses hold.
void call(const contract::EnforcedContract& contract, const void* args, const Call& call, Backend backend);
/// Uses the back end that automatic dispatch chooses (serve/dispatch.hpp). Copies tensors in host memory to its
/// device and back. Returns the kernel that served the call and the candidates passed over.
Dispatched call(const contract::EnforcedContract& contract, const void* args, const Call& call, Automatic);

/// Returns how many calls of this process the back end has served.
std::uint64_t calls(Backend backend);
/// Sets a function that is called with one sentence when CUDA or Vulkan has served its first call of this process, and
/// at each 10,000th. An empty function removes it.
void set_call_sink(std::function<void(const std::string& message)> sink);

/// Attributes of the span of a kernel's run: "shape" with the dims as "m=3 k=4 n=5", "kernel" and "backend".
std::vector<trace::Attribute> attributes(const OpDescriptor& op, const Call& call, const Kernel& kernel,
                                         const Device& device);

}  // namespace assay::serve
