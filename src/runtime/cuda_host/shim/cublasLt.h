// Replaces CUDA's cublasLt.h: its names, so that files compile. A product ends the call with a sentence.
#pragma once

#include <cstdint>

#include "cublas_v2.h"

namespace assay::cuda_host::toolkit {

using cublasLtHandle_t = struct cublasLtContext*;
struct cublasLtOpaque {};
using cublasLtMatmulDesc_t = cublasLtOpaque*;
using cublasLtMatrixLayout_t = cublasLtOpaque*;
using cublasLtMatmulPreference_t = cublasLtOpaque*;
struct cublasLtMatmulAlgo_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
};
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 };

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
ASSAY_ABSENT(cublasLtMatmul)
ASSAY_ABSENT(cublasLtMatmulAlgoGetHeuristic)
ASSAY_ABSENT(cublasLtMatmulDescCreate)
ASSAY_ABSENT(cublasLtMatmulDescDestroy)
ASSAY_ABSENT(cublasLtMatmulDescSetAttribute)
ASSAY_ABSENT(cublasLtMatmulPreferenceCreate)
ASSAY_ABSENT(cublasLtMatmulPreferenceDestroy)
ASSAY_ABSENT(cublasLtMatmulPreferenceSetAttribute)
ASSAY_ABSENT(cublasLtMatrixLayoutCreate)
ASSAY_ABSENT(cublasLtMatrixLayoutDestroy)
ASSAY_ABSENT(cublasLtMatrixLayoutSetAttribute)

}  // namespace assay::cuda_host::toolkit
