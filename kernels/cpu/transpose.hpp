// Transposition of a whole matrix, for transpose and for tensor_layout between a matrix and its transposed view.
#pragma once

#include "core/shape.hpp"

namespace assay::cpu {

/// dst[j * dst_ld + i] = src[i * src_ld + j] for i < m, j < n, bit for bit; the two share no memory. Blocks of 32x32
/// whose strips of 16x4 (AVX-512), 8x4 (AVX2) or 4x4 are transposed in registers.
void transpose_blocked(Index m, Index n, const float* src, Index src_ld, float* dst, Index dst_ld);

}  // namespace assay::cpu
