// Tensor cores in software: the basis of shim/mma.h.
#pragma once

#include <source_location>

namespace assay::cuda_host {

/// D[16,16] = A[16,8] · B[8,16] + C. Every lane gives its parts: element e of lane l is element 32 e + l of the
/// row-major matrix. (No hardware uses this order: kernels must not rely on any.) Inputs lose their low 13 bits, as in
/// a tensor core. Four products and the accumulator are aligned to the largest of them, truncated to 24 bits, added
/// exactly and truncated. This is the coarsest behaviour known of tensor cores for TF32 (Fasi, Higham, Mikaitis &
/// Pranesh, PeerJ Comput. Sci. 7 (2021) e330: blocks of 4 on A100, with further bits kept; Hopper's blocks are not
/// shorter). A product with a subnormal factor is aligned as if the factor were the smallest normal number of its
/// format, as on H100. Products of zero do not take part in alignment.
struct WmmaOperand {
  const float* a;  ///< 4
  const float* b;  ///< 4
  const float* c;  ///< 8
  float* d;        ///< 8; may be c
};
void wmma_tf32(WmmaOperand operand, std::source_location site);

/// mma.sync.aligned of PTX, m16n8k8 for tf32 and m16n8k16 for the 16-bit formats: d += A · B, A [16, depth] by rows, B
/// [depth, 8] by columns, in the registers defined by the PTX ISA ("Matrix Fragments for mma"). Products of 16-bit
/// numbers are exact in float32; sums are truncated as above.
enum class MmaInputs { tf32, f16, bf16 };
void mma(MmaInputs inputs, const unsigned (&a)[4], const unsigned (&b)[2], float (&d)[4], std::source_location site);
/// ldmatrix.sync.aligned.m8n8.x4.b16 of PTX, with .trans: four 8x8 matrices of 16-bit numbers; the lanes give the
/// addresses of the rows. Fails the kernel unless the addresses are aligned to 16 bytes.
void load_matrices(unsigned (&to)[4], const void* row, bool transposed, std::source_location site);

/// Fails the kernel unless `memory` is suitable for loading or storing a fragment: 32-byte alignment, leading dimension
/// a multiple of 4.
void check_fragment(const void* memory, unsigned leading_dimension, std::source_location site);

/// Returns x rounded to TF32: to nearest, ties away from zero (PTX: cvt.rna.tf32.f32). NaN becomes the canonical NaN.
float to_tf32(float x);

}  // namespace assay::cuda_host
