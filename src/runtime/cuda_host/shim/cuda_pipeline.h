// Replaces CUDA's cuda_pipeline.h: the primitives (CUDA programming guide, "Pipeline Primitives Interface").
#pragma once

#include "cuda_runtime.h"

namespace assay::cuda_host::toolkit {

inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_bytes = 0,
                                    Site site = Site::current()) {
  copy_async(shared, global, bytes, zero_bytes, site);
}
inline void __pipeline_commit() { commit_async(); }
inline void __pipeline_wait_prior(std::size_t batches) { wait_async(batches); }

}  // namespace assay::cuda_host::toolkit
