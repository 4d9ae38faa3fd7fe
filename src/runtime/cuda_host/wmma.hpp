// Tensor cores in software: what shim/mma.h stands on.
#pragma once

#include <source_location>

namespace assay::cuda_host {

/// D[16,16] = A[16,8] · B[8,16] + C. Every lane gives its parts: element e of lane l is element 32 e + l of the
/// row-major matrix. (No hardware's order: kernels must not rely on one.) Inputs lose their low 13 bits, as in a tensor
/// core. Four products and the accumulator are aligned to the largest of them, truncated to 24 bits, added exactly and
/// truncated: the coarsest of what is known of tensor cores for TF32 (Fasi, Higham, Mikaitis & Pranesh, PeerJ Comput.
/// Sci. 7 (2021) e330: blocks of 4 on A100, with further bits kept; Hopper's blocks are not shorter). A product with a subnormal factor is aligned as if
/// that were the smallest normal number of its format, as on H100; a product of zero is not aligned to.
struct WmmaOperand {
  const float* a;  ///< 4
  const float* b;  ///< 4
  const float* c;  ///< 8
  float* d;        ///< 8; may be c
};
void wmma_tf32(WmmaOperand operand, std::source_location site);

/// mma.sync.aligned of PTX, m16n8k8 for tf32 and m16n8k16 for the 16-bit formats: d += A · B, A [16, depth] by rows, B [depth, 8]
/// by columns, in the registers that the PTX ISA names ("Matrix Fragments for mma"). Products of 16-bit numbers are exact in
/// float32; sums are truncated as above.
enum class MmaInputs { tf32, f16, bf16 };
void mma(MmaInputs inputs, const unsigned (&a)[4], const unsigned (&b)[2], float (&d)[4], std::source_location site);
/// ldmatrix.sync.aligned.m8n8.x4.b16 of PTX, with .trans: four 8x8 matrices of 16-bit numbers, whose rows' addresses the lanes
/// give. Fails the kernel unless they are aligned to 16 bytes.
void load_matrices(unsigned (&to)[4], const void* row, bool transposed, std::source_location site);

/// Fails the kernel unless a fragment may be loaded from or stored to `memory`: 32 bytes aligned, leading dimension a
/// multiple of 4.
void check_fragment(const void* memory, unsigned leading_dimension, std::source_location site);

/// x rounded to TF32: to nearest, ties away from zero (PTX: cvt.rna.tf32.f32). NaN becomes the canonical one.
float to_tf32(float x);

}  // namespace assay::cuda_host
