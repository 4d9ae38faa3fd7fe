// Passes a call of a contract to a function with the interface of assay/plugin.h.
#pragma once

#include <cstddef>

#include "contract/descriptor.hpp"
#include "runtime/device.hpp"

namespace assay::plugin {

/// Calls `function`, an assay_kernel, with tensors that live on `device`. Returns its result; it may write text to
/// `message`.
int call_dlpack(void* function, const OpDescriptor& op, const Call& call, Device& device, char* message,
                std::size_t message_bytes);

/// Returns the stream that orders the work of this device; null on the host.
void* stream_of(Device& device);

}  // namespace assay::plugin
