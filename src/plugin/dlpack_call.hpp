// A call of a contract handed to a function of the interface of assay/plugin.h.
#pragma once

#include <cstddef>

#include "contract/descriptor.hpp"
#include "runtime/device.hpp"

namespace assay::plugin {

/// Calls `function`, an assay_kernel, with tensors that live on `device`. Gives what it returns; it may leave text in
/// `message`.
int call_dlpack(void* function, const OpDescriptor& op, const Call& call, Device& device, char* message,
                std::size_t message_bytes);

/// The stream on which the work of this device happens in order; null on the host.
void* stream_of(Device& device);

}  // namespace assay::plugin
