// A wrong product whose shader is at fault.
#include "ops/matmul_tn.hpp"

#include "falsify/mutants/vulkan/product.hpp"
#include "shaders/mutant_matmul_tn_a_not_transposed.hpp"

namespace assay::falsify::matmul_tn_mutants {
namespace {

using vulkan::shaders::mutant_matmul_tn_a_not_transposed;

const KernelRegistration not_transposed(product_mutant<ops::MatmulTnArgs, mutant_matmul_tn_a_not_transposed, 16>(
    "matmul_tn", "mutant/vulkan/matmul_tn/a_not_transposed", "falsify/mutants/vulkan/matmul_tn.cpp",
    "BUG 12: A is read without the transposition"));

}  // namespace
}  // namespace assay::falsify::matmul_tn_mutants
