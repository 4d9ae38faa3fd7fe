// Wrong normalizations and gradients: the right shaders compiled with a FAULT_* macro.
#include "kernels/vulkan/rmsnorm.hpp"

#include "kernels/vulkan/rmsnorm_backward.hpp"
#include "shaders/mutant_rmsnorm_backward_no_barrier.hpp"
#include "shaders/mutant_rmsnorm_backward_projection_dropped.hpp"
#include "shaders/mutant_rmsnorm_backward_weight_last_rows_lost.hpp"
#include "shaders/mutant_rmsnorm_eps_outside.hpp"
#include "shaders/mutant_rmsnorm_first_rows_only.hpp"
#include "shaders/mutant_rmsnorm_last_partials_lost.hpp"
#include "shaders/mutant_rmsnorm_no_barrier.hpp"
#include "shaders/rmsnorm_backward_rows.hpp"
#include "shaders/rmsnorm_backward_weight.hpp"

namespace assay::falsify::rmsnorm_mutants {
namespace {

namespace shaders = vulkan::shaders;

KernelRegistration wrong(Kernel right, std::string_view fault) {
  right.source = "falsify/mutants/vulkan/rmsnorm.cpp";
  right.summary = "wrong on purpose";
  right.role = KernelRole::mutant;
  right.fault = fault;
  return KernelRegistration(right);
}

const KernelRegistration registrations[] = {
    wrong(vulkan::rmsnorm_row<shaders::mutant_rmsnorm_eps_outside>("mutant/vulkan/rmsnorm/eps_outside"),
          "eps is added to the root, not inside it"),
    wrong(vulkan::rmsnorm_row<shaders::mutant_rmsnorm_first_rows_only>("mutant/vulkan/rmsnorm/first_rows_only"),
          "BUG 43: rows beyond the first workgroup's are not written"),
    wrong(vulkan::rmsnorm_row<shaders::mutant_rmsnorm_last_partials_lost>("mutant/vulkan/rmsnorm/last_partials_lost"),
          "BUG 44: the reduction stops before its last step"),
    wrong(vulkan::rmsnorm_row<shaders::mutant_rmsnorm_no_barrier>("mutant/vulkan/rmsnorm/no_barrier"),
          "BUG 28: partial sums are read before all are stored"),
    wrong(vulkan::rmsnorm_backward_row<shaders::mutant_rmsnorm_backward_projection_dropped, shaders::rmsnorm_backward_weight>(
              "mutant/vulkan/rmsnorm_backward/projection_dropped"),
          "rrms is taken for a constant"),
    wrong(vulkan::rmsnorm_backward_row<shaders::mutant_rmsnorm_backward_no_barrier, shaders::rmsnorm_backward_weight>(
              "mutant/vulkan/rmsnorm_backward/no_barrier"),
          "BUG 28: partial sums are read before all are stored"),
    wrong(vulkan::rmsnorm_backward_row<shaders::rmsnorm_backward_rows, shaders::mutant_rmsnorm_backward_weight_last_rows_lost>(
              "mutant/vulkan/rmsnorm_backward/last_rows_lost"),
          "BUG 44: dweight leaves out every fourth row"),
};

}  // namespace
}  // namespace assay::falsify::rmsnorm_mutants
