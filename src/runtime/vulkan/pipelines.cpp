#include "runtime/vulkan/pipelines.hpp"

#include <utility>

namespace assay::vulkan {

const Pipeline& Pipelines::get(const SpirvDispatch& work) {
  PipelineKey key{{work.module.begin(), work.module.end()},
                  {work.specialization.begin(), work.specialization.end()},
                  work.bindings.size(),
                  work.push.size()};
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  Pipeline made = checked("vkCreateComputePipelines", [&] { return make(key); });
  ++compiled_;
  return pipelines_.emplace(std::move(key), std::move(made)).first->second;
}

Pipeline Pipelines::make(const PipelineKey& key) const {
  const vk::Device device = *context_.device;
  const auto stage = vk::ShaderStageFlagBits::eCompute;
  std::vector<vk::DescriptorSetLayoutBinding> buffers;
  for (std::uint32_t i = 0; i < key.buffers; ++i) buffers.emplace_back(i, vk::DescriptorType::eStorageBuffer, 1, stage);
  Pipeline made;
  made.set_layout = device.createDescriptorSetLayoutUnique({{}, buffers});
  const vk::PushConstantRange push(stage, 0, static_cast<std::uint32_t>(key.push_bytes));
  made.layout = device.createPipelineLayoutUnique({{}, 1, &*made.set_layout, push.size == 0 ? 0U : 1U, &push});

  std::vector<vk::SpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < key.specialization.size(); ++i) entries.emplace_back(i, 4 * i, 4);
  const vk::SpecializationInfo specialization(static_cast<std::uint32_t>(entries.size()), entries.data(),
                                              4 * key.specialization.size(), key.specialization.data());
  const auto module = device.createShaderModuleUnique({{}, key.module});
  const vk::PipelineShaderStageCreateInfo shader({}, stage, *module, "main", &specialization);
  made.pipeline = device.createComputePipelineUnique({}, {{}, shader, *made.layout}).value;
  return made;
}

}  // namespace assay::vulkan
