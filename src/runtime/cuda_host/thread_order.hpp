// Control of the thread order on cuda-host from outside its process.
#pragma once

namespace assay::cuda_host {

/// Environment variable with the seed of a process's thread order, unless set_seed() gives one. Read at the first
/// launch, also by shared libraries with their own execution model.
inline constexpr const char* kThreadOrder = "ASSAY_THREAD_ORDER";

}  // namespace assay::cuda_host
