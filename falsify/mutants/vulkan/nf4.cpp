// Wrong codecs of NF4 and products with a matrix in its codes: their shaders compiled with a FAULT_* macro.
#include "falsify/mutants/vulkan/shader_mutant.hpp"
#include "kernels/vulkan/nf4_dequantize.hpp"
#include "kernels/vulkan/nf4_product.hpp"
#include "kernels/vulkan/nf4_quantize.hpp"
#include "ops/nf4_matmul.hpp"
#include "ops/nf4_matmul_nt.hpp"
#include "shaders/mutant_nf4_dequantize_blocks_over_rows.hpp"
#include "shaders/mutant_nf4_dequantize_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_dequantize_whole_words.hpp"
#include "shaders/mutant_nf4_matmul_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_matmul_not_transposed.hpp"
#include "shaders/mutant_nf4_matmul_nt_blocks_over_rows.hpp"
#include "shaders/mutant_nf4_matmul_nt_gemv_last_partials_lost.hpp"
#include "shaders/mutant_nf4_matmul_nt_gemv_ragged_k_dropped.hpp"
#include "shaders/mutant_nf4_matmul_nt_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_matmul_nt_ragged_k_dropped.hpp"
#include "shaders/mutant_nf4_matmul_stale_accumulator.hpp"
#include "shaders/mutant_nf4_quantize_last_partials_lost.hpp"
#include "shaders/mutant_nf4_quantize_nibbles_swapped.hpp"
#include "shaders/mutant_nf4_quantize_tie_goes_up.hpp"
#include "shaders/mutant_nf4_quantize_zero_block_unchecked.hpp"

namespace assay::falsify::nf4_mutants {
namespace {

namespace shaders = vulkan::shaders;
constexpr std::string_view kSource = "falsify/mutants/vulkan/nf4.cpp";

template <const vulkan::Shader& shader>
KernelRegistration decoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_dequantize_row<shader>("", kSource, ""), id, fault);
}
template <const vulkan::Shader& shader>
KernelRegistration encoder(std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_quantize_row<shader>("", kSource, ""), id, fault);
}

template <class Args, const vulkan::Shader& shader, Index tile>
KernelRegistration product(std::string_view op, std::string_view id, std::string_view fault) {
  return shader_mutant(vulkan::nf4_product_kernel<Args, &vulkan::run_nf4_product<Args, shader, tile>>(op, "", kSource, ""), id,
                       fault);
}
template <const vulkan::Shader& shader, Index tile>
KernelRegistration product_nt(std::string_view id, std::string_view fault) {
  return product<ops::Nf4MatmulNtArgs, shader, tile>("nf4_matmul_nt", id, fault);
}
template <const vulkan::Shader& shader, Index tile>
KernelRegistration product_plain(std::string_view id, std::string_view fault) {
  return product<ops::Nf4MatmulArgs, shader, tile>("nf4_matmul", id, fault);
}

const KernelRegistration registrations[] = {
    decoder<shaders::mutant_nf4_dequantize_nibbles_swapped>("mutant/vulkan/nf4_dequantize/nibbles_swapped",
                                                            "BUG 83: the earlier element in the low bits"),
    decoder<shaders::mutant_nf4_dequantize_blocks_over_rows>("mutant/vulkan/nf4_dequantize/blocks_over_rows",
                                                             "BUG 7: blocks counted over rows"),
    decoder<shaders::mutant_nf4_dequantize_whole_words>("mutant/vulkan/nf4_dequantize/whole_words",
                                                        "BUG 16: all eight elements of the last word are stored"),
    encoder<shaders::mutant_nf4_quantize_nibbles_swapped>("mutant/vulkan/nf4_quantize/nibbles_swapped",
                                                          "BUG 83: the earlier element in the low bits"),
    encoder<shaders::mutant_nf4_quantize_tie_goes_up>("mutant/vulkan/nf4_quantize/tie_goes_up", "a tie takes the upper code"),
    encoder<shaders::mutant_nf4_quantize_zero_block_unchecked>("mutant/vulkan/nf4_quantize/zero_block_unchecked",
                                                               "a block of zeros is compared with limits of 0"),
    encoder<shaders::mutant_nf4_quantize_last_partials_lost>("mutant/vulkan/nf4_quantize/last_partials_lost",
                                                             "BUG 44: the maximum leaves out the last eight elements"),
    product_nt<shaders::mutant_nf4_matmul_nt_nibbles_swapped, 64>("mutant/vulkan/nf4_matmul_nt/nibbles_swapped",
                                                                  "BUG 84: the earlier element in the low bits"),
    product_nt<shaders::mutant_nf4_matmul_nt_blocks_over_rows, 16>("mutant/vulkan/nf4_matmul_nt/blocks_over_rows",
                                                                   "BUG 7: blocks counted over rows"),
    product_nt<shaders::mutant_nf4_matmul_nt_ragged_k_dropped, 64>("mutant/vulkan/nf4_matmul_nt/ragged_k_dropped",
                                                                   "BUG 8: floor instead of ceiling of k / 16"),
    product_nt<shaders::mutant_nf4_matmul_nt_gemv_last_partials_lost, 0>("mutant/vulkan/nf4_matmul_nt/last_partials_lost",
                                                                         "BUG 44: the reduction stops before its last step"),
    product_nt<shaders::mutant_nf4_matmul_nt_gemv_ragged_k_dropped, 0>("mutant/vulkan/nf4_matmul_nt/ragged_block_dropped",
                                                                       "BUG 8: floor instead of ceiling of k / 64"),
    product_plain<shaders::mutant_nf4_matmul_not_transposed, 16>("mutant/vulkan/nf4_matmul/not_transposed",
                                                                 "BUG 3: dy · Wᵀ instead of dy · W"),
    product_plain<shaders::mutant_nf4_matmul_nibbles_swapped, 64>("mutant/vulkan/nf4_matmul/nibbles_swapped",
                                                                  "BUG 84: the earlier element in the low bits"),
    product_plain<shaders::mutant_nf4_matmul_stale_accumulator, 16>("mutant/vulkan/nf4_matmul/stale_accumulator",
                                                                    "BUG 23: adds to what dx held"),
};

}  // namespace
}  // namespace assay::falsify::nf4_mutants
