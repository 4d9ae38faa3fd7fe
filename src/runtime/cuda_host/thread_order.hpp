// The order of threads on cuda-host, from outside the process that runs them.
#pragma once

namespace assay::cuda_host {

/// Environment variable: the seed from which a process draws the order of its threads, unless set_seed() gives one. Read at the first launch;
/// shared libraries that hold an execution model of their own read it too.
inline constexpr const char* kThreadOrder = "ASSAY_THREAD_ORDER";

}  // namespace assay::cuda_host
