// Runs a kernel on a device other than the one that holds the caller's tensors.
#pragma once

#include "contract/descriptor.hpp"

namespace assay::contract {

/// Runs the kernel on dense copies of host tensors in the device's memory, and writes the outputs back after all of
/// them have arrived: an earlier failure leaves the host's tensors unchanged. Only elements are read and written, never
/// the gaps between rows. On a device that shares the host's memory the kernel runs on the tensors in place. Throws the
/// exceptions of the device and the kernel.
void run_with_copies(const OpDescriptor& op, const Kernel& kernel, const Call& host, Device& device);

}  // namespace assay::contract
