// Times kernels on a CUDA device by events.
#pragma once

#include <cuda_runtime.h>

#include "runtime/cuda/cuda_device.hpp"
#include "runtime/registry.hpp"

namespace assay::bench {

/// Returns the milliseconds of one f(), from a run of `repeats`.
template <class F>
float time_once(CudaDevice& device, int repeats, F f) {
  cudaEvent_t begin = nullptr, end = nullptr;
  device.check("cudaEventCreate", cudaEventCreate(&begin));
  device.check("cudaEventCreate", cudaEventCreate(&end));
  device.check("cudaEventRecord", cudaEventRecord(begin, device.stream()));
  for (int r = 0; r < repeats; ++r) f();
  device.check("cudaEventRecord", cudaEventRecord(end, device.stream()));
  device.check("cudaEventSynchronize", cudaEventSynchronize(end));
  float milliseconds = 0;
  device.check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, begin, end));
  device.check("cudaEventDestroy", cudaEventDestroy(begin));
  device.check("cudaEventDestroy", cudaEventDestroy(end));
  return milliseconds / static_cast<float>(repeats);
}

}  // namespace assay::bench
