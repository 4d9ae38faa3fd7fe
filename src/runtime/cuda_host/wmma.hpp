// Tensor cores in software: what shim/mma.h stands on.
#pragma once

#include <source_location>

namespace assay::cuda_host {

/// D[16,16] = A[16,8] · B[8,16] + C. Every lane gives its parts: element e of lane l is element 32 e + l of the
/// row-major matrix. (No hardware's order: kernels must not rely on one.) Inputs lose their low 13 bits, as in a tensor
/// core. Four products and the accumulator are aligned to the largest of them, truncated to 24 bits, added exactly and
/// truncated: the coarsest of what is known of tensor cores for TF32 (Fasi, Higham, Mikaitis & Pranesh, PeerJ Comput.
/// Sci. 7 (2021) e330: blocks of 4 on A100, with further bits kept; Hopper's blocks are not shorter).
struct MmaOperand {
  const float* a;  ///< 4, or 8 of mma_16_bits
  const float* b;  ///< likewise
  const float* c;  ///< 8
  float* d;        ///< 8; may be c
};
void mma_tf32(MmaOperand operand, std::source_location site);
/// D[16,16] = A[16,16] · B[16,16] + C for binary16 or bfloat16, widened: their products are exact in float32. Truncated in
/// blocks of four, as above.
void mma_16_bits(MmaOperand operand, std::source_location site);

/// Fails the kernel unless a fragment may be loaded from or stored to `memory`: 32 bytes aligned, leading dimension a
/// multiple of 4.
void check_fragment(const void* memory, unsigned leading_dimension, std::source_location site);

/// x rounded to TF32: to nearest, ties away from zero (PTX: cvt.rna.tf32.f32). NaN becomes the canonical one.
float to_tf32(float x);

}  // namespace assay::cuda_host
