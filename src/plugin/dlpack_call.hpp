// Passes a call of a contract to a function with the interface of assay/plugin.h.
#pragma once

#include <cstddef>
#include <functional>

#include "assay/plugin.h"
#include "contract/descriptor.hpp"
#include "runtime/device.hpp"

namespace assay::plugin {

/// Calls `function` with tensors that live on `device`. Returns its result; it may write text to
/// `message`.
int call_dlpack(const std::function<int(const assay_call&)>& function, const OpDescriptor& op, const Call& call,
                Device& device, char* message, std::size_t message_bytes);

/// Returns the stream that orders the work of this device; null on the host.
void* stream_of(Device& device);

}  // namespace assay::plugin
