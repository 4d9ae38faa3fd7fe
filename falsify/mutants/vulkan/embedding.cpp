// Wrong embedding: embedding.comp compiled with a FAULT_* macro.
#include "kernels/vulkan/embedding.hpp"

#include "shaders/mutant_embedding_first_tokens_only.hpp"
#include "shaders/mutant_embedding_token_for_id.hpp"

namespace assay::falsify::embedding_mutants {
namespace {

namespace shaders = vulkan::shaders;

template <const vulkan::Shader& shader>
Kernel wrong(std::string_view id, std::string_view fault) {
  return vulkan::map_mutant(vulkan::embedding_row<shader>("", "falsify/mutants/vulkan/embedding.cpp", ""), id, fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::mutant_embedding_first_tokens_only>("mutant/vulkan/embedding/first_tokens_only",
                                                       "one workgroup of tokens is launched for a batch (bug 43)")),
    KernelRegistration(wrong<shaders::mutant_embedding_token_for_id>("mutant/vulkan/embedding/token_for_id",
                                                       "the position caps the id")),
};

}  // namespace
}  // namespace assay::falsify::embedding_mutants
