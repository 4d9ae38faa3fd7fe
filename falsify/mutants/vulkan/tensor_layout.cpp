// Wrong copies between layouts.
#include "kernels/vulkan/tensor_layout.hpp"

#include "shaders/mutant_tensor_layout_negative_zero_lost.hpp"
#include "shaders/tensor_layout_strided.hpp"

namespace assay::falsify::tensor_layout_mutants {
namespace {

namespace shaders = vulkan::shaders;
using ops::TensorLayoutArgs;

template <void (*run)(const TensorLayoutArgs&, Device&)>
Kernel wrong(std::string_view id, std::string_view fault) {
  return {.op = "tensor_layout",
          .id = id,
          .backend = Backend::vulkan,
          .source = "falsify/mutants/vulkan/tensor_layout.cpp",
          .summary = "a wrong copy",
          .role = KernelRole::mutant,
          .fault = fault,
          .run = &run_typed<TensorLayoutArgs, run>,
          .refuse = &refuse_typed<TensorLayoutArgs, &vulkan::refuse_tensor_layout>};
}

void run_without_padding(const TensorLayoutArgs& args, Device& device) {
  TensorLayoutArgs packed = args;
  packed.src = View<const float>(args.src.data(), args.src.shape());
  vulkan::run_tensor_layout<shaders::tensor_layout_strided>(packed, device);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<&vulkan::run_tensor_layout<shaders::mutant_tensor_layout_negative_zero_lost>>(
        "mutant/vulkan/tensor_layout/negative_zero_lost", "elements that compare equal to zero are written as +0")),
    KernelRegistration(wrong<&run_without_padding>("mutant/vulkan/tensor_layout/strides_ignored",
                                                   "BUG 6: src is read as dense and row-major")),
};

}  // namespace
}  // namespace assay::falsify::tensor_layout_mutants
