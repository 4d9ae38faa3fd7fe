// Wrong embedding_backward: embedding_backward.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/embedding_backward.hpp"

#include "shaders/mutant_embedding_backward_last_token_dropped.hpp"
#include "shaders/mutant_embedding_backward_last_token_wins.hpp"

namespace assay::falsify::embedding_backward_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(
      vulkan::embedding_backward_row<shader>("", "falsify/mutants/vulkan/embedding_backward.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_embedding_backward_last_token_wins>(
        "mutant/vulkan/embedding_backward/last_token_wins",
        "every token stores its own gradient: the last one wins (bug 28)")),
    KernelRegistration(wrong<shaders::mutant_embedding_backward_last_token_dropped>(
        "mutant/vulkan/embedding_backward/last_token_dropped", "the last token is left out")),
};

}  // namespace
}  // namespace assay::falsify::embedding_backward_mutants
