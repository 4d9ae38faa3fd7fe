// Wrong matrix-vector products: gemv.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/gemv.hpp"

#include "shaders/mutant_gemv_last_partials_lost.hpp"
#include "shaders/mutant_gemv_x_stride_ignored.hpp"

namespace assay::falsify::gemv_mutants {
namespace {

namespace shaders = vulkan::shaders;
using vulkan::Shader;

template <const Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return {.op = "gemv",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = vulkan::kShaderArithmetic,
          .source = "falsify/mutants/vulkan/gemv.cpp",
          .summary = "a wrong matrix-vector product",
          .role = KernelRole::mutant,
          .fault = fault,
          .run = &run_typed<ops::GemvArgs, &vulkan::run_gemv<shader, 4>>,
          .refuse = &refuse_typed<ops::GemvArgs, &vulkan::refuse_gemv<4, 256>>};
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_gemv_last_partials_lost>(
        "mutant/vulkan/gemv/last_partials_lost", "BUG 44: the reduction stops before its last step")),
    KernelRegistration(wrong<shaders::mutant_gemv_x_stride_ignored>("mutant/vulkan/gemv/x_stride_ignored",
                                                                    "BUG 39: x is read as if it were dense")),
};

}  // namespace
}  // namespace assay::falsify::gemv_mutants
