// A wrong product whose shader is at fault.
#include "ops/matmul_nt.hpp"

#include "falsify/mutants/vulkan/product.hpp"
#include "shaders/mutant_matmul_nt_b_not_transposed.hpp"

namespace assay::falsify::matmul_nt_mutants {
namespace {

using vulkan::shaders::mutant_matmul_nt_b_not_transposed;

const KernelRegistration not_transposed(product_mutant<ops::MatmulNtArgs, mutant_matmul_nt_b_not_transposed, 16>(
    "matmul_nt", "mutant/vulkan/matmul_nt/b_not_transposed", "falsify/mutants/vulkan/matmul_nt.cpp",
    "BUG 3: B is read without the transposition"));

}  // namespace
}  // namespace assay::falsify::matmul_nt_mutants
