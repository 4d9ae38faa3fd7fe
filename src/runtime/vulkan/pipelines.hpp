// Compute pipelines, compiled once per module and specialization. Internal.
#pragma once

#include <compare>
#include <map>

#include "runtime/vulkan/context.hpp"

namespace assay::vulkan {

/// All inputs of a pipeline, by value. A smaller key (a name, a pointer, a shape) could give one kernel the code of
/// another.
struct PipelineKey {
  std::vector<std::uint32_t> module;
  std::vector<std::uint32_t> specialization;
  std::size_t buffers = 0;
  std::size_t push_bytes = 0;

  friend auto operator<=>(const PipelineKey&, const PipelineKey&) = default;
};

struct Pipeline {
  vk::UniqueDescriptorSetLayout set_layout;
  vk::UniquePipelineLayout layout;
  vk::UniquePipeline pipeline;
};

class Pipelines {
 public:
  explicit Pipelines(const Context& context) : context_(context) {}

  /// Throws DeviceError if the driver rejects the module.
  const Pipeline& get(const SpirvDispatch& work);
  void clear() { pipelines_.clear(); }
  /// Returns the number of pipelines compiled, including cleared ones.
  std::uint64_t compiled() const { return compiled_; }

 private:
  Pipeline make(const PipelineKey& key) const;

  const Context& context_;
  std::map<PipelineKey, Pipeline> pipelines_;
  std::uint64_t compiled_ = 0;
};

}  // namespace assay::vulkan
