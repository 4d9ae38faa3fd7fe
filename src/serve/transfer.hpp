// Running a kernel on a device whose memory its caller's tensors do not lie in.
#pragma once

#include "contract/descriptor.hpp"

namespace assay::contract {

/// Runs the kernel on dense copies of host tensors in the device's memory, and writes the outputs back when all of them
/// have arrived: a failure before that leaves the host's tensors as they were. Only elements are read and written,
/// never the gaps between rows. On a device that shares the host's memory the kernel runs where the tensors lie.
/// Throws what the device and the kernel throw.
void run_with_copies(const OpDescriptor& op, const Kernel& kernel, const Call& host, Device& device);

}  // namespace assay::contract
