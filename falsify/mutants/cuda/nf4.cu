// Wrong codecs of NF4 and products with a matrix in its codes: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/nf4_dequantize.cuh"
#include "kernels/cuda/nf4_product.cuh"
#include "kernels/cuda/nf4_quantize.cuh"
#include "ops/nf4_matmul.hpp"
#include "ops/nf4_matmul_nt.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4 {
namespace {

using F = Nf4Fault;

template <void (*run)(const ops::Nf4DequantizeArgs&, Device&)>
KernelRegistration decoder(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(nf4_dequantize_kernel<run>("", ""), id, fault));
}
template <void (*run)(const ops::Nf4QuantizeArgs&, Device&)>
KernelRegistration encoder(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(nf4_quantize_kernel<run>("", ""), id, fault));
}

template <void (*run)(const Product&, const Nf4Matrix&, Device&)>
KernelRegistration product_nt(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(nf4_product_kernel<ops::Nf4MatmulNtArgs, run>("nf4_matmul_nt", "", ""), id, fault));
}
template <void (*run)(const Product&, const Nf4Matrix&, Device&)>
KernelRegistration product_plain(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(nf4_product_kernel<ops::Nf4MatmulArgs, run>("nf4_matmul", "", ""), id, fault));
}

const KernelRegistration rows[] = {
    decoder<&nf4_vectors<F::nibbles_swapped>>(ASSAY_MUTANT("nf4_dequantize", "nibbles_swapped"),
                                              "the earlier element in the low bits (bug 83)"),
    decoder<&nf4_elementwise<F::blocks_over_rows>>(ASSAY_MUTANT("nf4_dequantize", "blocks_over_rows"),
                                                   "blocks counted over rows (bug 7)"),
    decoder<&nf4_vectors<F::scale_of_32>>(ASSAY_MUTANT("nf4_dequantize", "scale_of_32"), "a scale for 32 elements (bug 86)"),
    decoder<&nf4_vectors<F::tail_unwritten>>(ASSAY_MUTANT("nf4_dequantize", "tail_unwritten"),
                                             "columns past the last whole group of four unwritten (bug 8)"),
    decoder<&nf4_vectors<F::first_row_only>>(ASSAY_MUTANT("nf4_dequantize", "first_row_only"),
                                             "one row is launched for a matrix (bug 43)"),
    decoder<&nf4_vectors<F::small_scale_kept>>(ASSAY_MUTANT("nf4_dequantize", "small_scale_kept"),
                                               "scales below 2^-120 multiply"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    decoder<&nf4_vectors<F::no_barrier>>(ASSAY_MUTANT("nf4_dequantize", "no_barrier"),
                                         "no __syncthreads before the codebook is read (bug 28)"),
    encoder<&nf4_warp_per_block<F::early_return>>(ASSAY_MUTANT("nf4_quantize", "early_return"),
                                                  "lanes behind the row's end return before the shuffle (bugs 14, 44)"),
#endif
    encoder<&nf4_warp_per_block<F::quotient_compared>>(ASSAY_MUTANT("nf4_quantize", "quotient_compared"),
                                                       "x times 1 / absmax is compared with the midpoint"),
    encoder<&nf4_thread_per_block<F::tie_goes_up>>(ASSAY_MUTANT("nf4_quantize", "tie_goes_up"), "a tie takes the upper code"),
    encoder<&nf4_warp_per_block<F::nan_swallowed>>(ASSAY_MUTANT("nf4_quantize", "nan_swallowed"),
                                                   "the maximum is fmaxf, which leaves NaN out"),
    encoder<&nf4_warp_per_block<F::half_the_lanes_lost>>(ASSAY_MUTANT("nf4_quantize", "half_the_lanes_lost"),
                                                         "the maximum over lanes leaves out its first step"),
    encoder<&nf4_warp_per_block<F::zero_divided>>(ASSAY_MUTANT("nf4_quantize", "zero_divided"), "0 / 0 in a block of zeros"),
    encoder<&nf4_warp_per_block<F::nibbles_swapped>>(ASSAY_MUTANT("nf4_quantize", "nibbles_swapped"),
                                                     "the earlier element in the low bits (bug 83)"),
    encoder<&nf4_warp_per_block<F::padding_zero>>(ASSAY_MUTANT("nf4_quantize", "padding_zero"),
                                                  "codes behind the row's end are 0, which is -1"),
    product_nt<&nf4_by_rows<F::nibbles_swapped>>(ASSAY_MUTANT("nf4_matmul_nt", "nibbles_swapped"),
                                                 "the earlier element in the low bits (bug 84)"),
    product_nt<&nf4_gemv<F::scale_of_32>>(ASSAY_MUTANT("nf4_matmul_nt", "scale_of_32"), "a scale for 32 elements (bug 86)"),
    product_nt<&nf4_naive<true, F::blocks_over_rows>>(ASSAY_MUTANT("nf4_matmul_nt", "blocks_over_rows"),
                                                      "blocks counted over rows (bug 7)"),
    product_nt<&nf4_gemv<F::half_the_lanes_lost>>(ASSAY_MUTANT("nf4_matmul_nt", "half_the_lanes_lost"),
                                                  "the sum over lanes leaves out a step"),
    product_nt<&nf4_gemv<F::tail_of_k_dropped>>(ASSAY_MUTANT("nf4_matmul_nt", "tail_of_k_dropped"),
                                                "floor instead of ceiling of k / 64 (bug 8)"),
    product_nt<&nf4_gemv<F::scale_behind_the_end>>(ASSAY_MUTANT("nf4_matmul_nt", "scale_behind_the_end"),
                                                   "lanes behind the row's end multiply a scale, infinite at times, with 0"),
    product_nt<&nf4_gemv<F::pass_overwritten>>(ASSAY_MUTANT("nf4_matmul_nt", "pass_overwritten"),
                                               "the second pass over a long row overwrites the sums of the first"),
    product_nt<&nf4_by_rows<F::first_row_only>>(ASSAY_MUTANT("nf4_matmul_nt", "first_row_only"),
                                                "the kernel of one row is launched for a batch (bug 43)"),
    product_nt<&nf4_naive<false>>(ASSAY_MUTANT("nf4_matmul_nt", "transposed"), "x · W instead of x · Wᵀ (bugs 3, 4)"),
    product_plain<&nf4_naive<true>>(ASSAY_MUTANT("nf4_matmul", "transposed"), "dy · Wᵀ instead of dy · W (bug 3)"),
    product_plain<&nf4_tiled<false, F::scale_behind_the_end>>(ASSAY_MUTANT("nf4_matmul", "scale_behind_the_end"),
                                                              "a tile's rows behind the last multiply its scale, infinite at times, with 0"),
    product_plain<&nf4_tiled<false, F::blocks_over_rows>>(ASSAY_MUTANT("nf4_matmul", "blocks_over_rows"),
                                                          "blocks counted over rows (bug 7)"),
    product_plain<&nf4_tiled<false, F::nibbles_swapped>>(ASSAY_MUTANT("nf4_matmul", "nibbles_swapped"),
                                                         "the earlier element in the low bits (bug 84)"),
    product_plain<&nf4_tiled<false, F::small_scale_kept>>(ASSAY_MUTANT("nf4_matmul", "small_scale_kept"),
                                                          "scales below 2^-120 multiply"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    product_nt<&nf4_gemv<F::no_barrier_between>>(ASSAY_MUTANT("nf4_matmul_nt", "no_barrier_between"),
                                                 "no __syncthreads before the sums of the warps are read (bug 28)"),
    product_plain<&nf4_tiled<false, F::no_barrier>>(ASSAY_MUTANT("nf4_matmul", "no_barrier"),
                                                    "no __syncthreads before the codebook is read (bug 28)"),
#endif
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4
