// Wrong codecs of double quantization: the right kernels, each with one fault.
#include "falsify/mutants/cuda/mutant.cuh"
#include "kernels/cuda/nf4_absmax_dequantize.cuh"
#include "kernels/cuda/nf4_absmax_quantize.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax {
namespace {

using F = AbsmaxFault;

template <void (*run)(const ops::Nf4AbsmaxDequantizeArgs&, Device&)>
KernelRegistration decoder(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(absmax_dequantize_kernel<run>("", ""), id, fault));
}
template <void (*run)(const ops::Nf4AbsmaxQuantizeArgs&, Device&)>
KernelRegistration encoder(std::string_view id, std::string_view fault) {
  return KernelRegistration(mutant(absmax_quantize_kernel<run>("", ""), id, fault));
}

const KernelRegistration rows[] = {
    decoder<&absmax_vectors<F::table_off_by_one>>(ASSAY_MUTANT("nf4_absmax_dequantize", "table_off_by_one"), "entry q + 1"),
    decoder<&absmax_elementwise<F::unsigned_map>>(ASSAY_MUTANT("nf4_absmax_dequantize", "unsigned_map"), "q / 255: a map without a sign"),
    decoder<&absmax_vectors<F::group_of_64>>(ASSAY_MUTANT("nf4_absmax_dequantize", "group_of_64"), "a scale for 64 elements (bug 86)"),
    decoder<&absmax_elementwise<F::groups_per_row>>(ASSAY_MUTANT("nf4_absmax_dequantize", "groups_per_row"),
                                                    "every row begins a group (bug 7)"),
    decoder<&absmax_vectors<F::dense_assumed>>(ASSAY_MUTANT("nf4_absmax_dequantize", "dense_assumed"),
                                               "rows of absmax are taken to follow each other (bug 39)"),
    decoder<&absmax_vectors<F::tail_unwritten>>(ASSAY_MUTANT("nf4_absmax_dequantize", "tail_unwritten"),
                                                "elements past the last whole word unwritten (bug 8)"),
    decoder<&absmax_vectors<F::offset_left_out>>(ASSAY_MUTANT("nf4_absmax_dequantize", "offset_left_out"), "offset is not added"),
    decoder<&absmax_elementwise<F::truncated>>(ASSAY_MUTANT("nf4_absmax_dequantize", "truncated"), "the scale is held with 11 bits (bug 87)"),
    encoder<&absmax_block_per_group<F::table_off_by_one>>(ASSAY_MUTANT("nf4_absmax_quantize", "table_off_by_one"),
                                                          "midpoint m + 1 for m"),
    encoder<&absmax_thread_per_group<F::unsigned_map>>(ASSAY_MUTANT("nf4_absmax_quantize", "unsigned_map"),
                                                       "midpoints of q / 255: a map without a sign"),
    encoder<&absmax_block_per_group<F::group_of_64>>(ASSAY_MUTANT("nf4_absmax_quantize", "group_of_64"),
                                                     "a maximum for 64 values (bug 86)"),
    encoder<&absmax_block_per_group<F::groups_per_row>>(ASSAY_MUTANT("nf4_absmax_quantize", "groups_per_row"),
                                                        "a group's maximum ends with the row in which it begins (bug 7)"),
    encoder<&absmax_block_per_group<F::dense_assumed>>(ASSAY_MUTANT("nf4_absmax_quantize", "dense_assumed"),
                                                       "rows of absmax are taken to follow each other (bug 39)"),
    encoder<&absmax_block_per_group<F::tail_unwritten>>(ASSAY_MUTANT("nf4_absmax_quantize", "tail_unwritten"),
                                                        "codes behind the last value are unwritten"),
    encoder<&absmax_block_per_group<F::offset_not_subtracted>>(ASSAY_MUTANT("nf4_absmax_quantize", "offset_not_subtracted"),
                                                               "codes are of absmax, not of absmax - offset"),
    encoder<&absmax_thread_per_group<F::tie_goes_up>>(ASSAY_MUTANT("nf4_absmax_quantize", "tie_goes_up"), "a tie takes the upper code"),
    encoder<&absmax_block_per_group<F::garbage_in_tail>>(ASSAY_MUTANT("nf4_absmax_quantize", "garbage_in_tail"),
                                                         "a ragged group's maximum counts zeros behind its end"),
    encoder<&absmax_block_per_group<F::half_the_lanes_lost>>(ASSAY_MUTANT("nf4_absmax_quantize", "half_the_lanes_lost"),
                                                             "the maximum over lanes leaves out its first step"),
    encoder<&absmax_block_per_group<F::half_the_sum_lost>>(ASSAY_MUTANT("nf4_absmax_quantize", "half_the_sum_lost"),
                                                           "the sum over lanes leaves out its first step"),
    encoder<&absmax_block_per_group<F::level_lost>>(ASSAY_MUTANT("nf4_absmax_quantize", "level_lost"),
                                                    "the second level adds the first 256 sums alone"),
    encoder<&absmax_block_per_group<F::negative_kept>>(ASSAY_MUTANT("nf4_absmax_quantize", "negative_kept"),
                                                       "negative values are encoded like others"),
    encoder<&absmax_thread_per_group<F::small_kept>>(ASSAY_MUTANT("nf4_absmax_quantize", "small_kept"),
                                                     "values below 2^-120 and absmax2 below 2^-100 are kept"),
#if !defined(__CUDACC__)  // forgiven by the device: mutant.cuh
    decoder<&absmax_vectors<F::no_barrier>>(ASSAY_MUTANT("nf4_absmax_dequantize", "no_barrier"),
                                            "no __syncthreads before the codebook is read (bug 28)"),
    encoder<&absmax_block_per_group<F::no_barrier>>(ASSAY_MUTANT("nf4_absmax_quantize", "no_barrier"),
                                                    "no __syncthreads before limits and terms of others are read (bug 28)"),
#endif
};

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_nf4_absmax
