// Automatic mutants of Vulkan kernels: one instruction of one of their shaders is changed (falsify/mutation/spirv).
//
// The shaders of a kernel are found by preparing calls with dims as campaigns draw them, in a separate process, and
// recording every module that the kernel dispatches. A mutant runs the kernel's own code, while the device replaces the
// one module by its mutated words.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "falsify/engine/pool.hpp"
#include "falsify/mutation/spirv/mutant.hpp"
#include "falsify/mutation/study/mutant.hpp"
#include "falsify/mutation/study/launched_programs.hpp"
#include "runtime/vulkan/vulkan_device.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Returns the name and words of every module that the kernel dispatches.
std::map<std::string, spirv::Words> shaders_of(const Kernel& kernel, VulkanDevice& device) {
  std::map<std::string, spirv::Words> found;
  const FilterScope scope(device, [&](SpirvDispatch& work) {
    found.try_emplace(std::string(work.name), work.module.begin(), work.module.end());
    return false;
  });
  prepare_drawn_calls(kernel, device);
  return found;
}

/// Examines the kernels in a separate process; returns the reason on failure.
json examine(std::span<const Kernel* const> kernels) {
  try {
    auto& device = static_cast<VulkanDevice&>(assay::device(Backend::vulkan));
    json found{{"device", device.description()}, {"on_processor", device.on_processor()}, {"shaders", json::object()}};
    for (const Kernel* kernel : kernels) found["shaders"][std::string(kernel->id)] = shaders_of(*kernel, device);
    return found;
  } catch (const Unavailable& e) {
    return {{"unavailable", e.why}};
  }
}

/// A shader with all of its mutants; kernels share it.
struct Shader {
  std::string name;
  spirv::Words words;
  spirv::Module module;
  spirv::Mutants mutants;

  Shader(std::string name, spirv::Words given) : name(std::move(name)), words(std::move(given)), module(words) {
    mutants = spirv::mutants(spirv::Analysis(module));
  }
};

void run_mutated(const Kernel& kernel, const spirv::Words& right, const spirv::Words& wrong, const Call& call,
                 Device& device) {
  const FilterScope scope(static_cast<VulkanDevice&>(device), [&](SpirvDispatch& work) {
    if (std::ranges::equal(work.module, right)) work.module = wrong;
    return true;
  });
  kernel.run(call, device);
}

class ShaderMutants final : public MutantSet {
 public:
  ShaderMutants(const Kernel& kernel, std::shared_ptr<const Shader> shader)
      : kernel_(kernel), shader_(std::move(shader)) {}

  const Kernel& original() const override { return kernel_; }
  std::size_t size() const override { return shader_->mutants.size(); }
  std::uint64_t key(std::size_t i) const override { return spirv::hash(shader_->words, shader_->mutants[i].key()); }
  std::string_view family(std::size_t i) const override { return shader_->mutants[i].family; }

  std::unique_ptr<AutomaticMutant> make(std::size_t i) const override {
    const spirv::Mutant& mutant = shader_->mutants[i];
    auto words = std::make_shared<const spirv::Words>(spirv::apply(shader_->module, mutant));
    if (spirv::invalid(*words)) return nullptr;
    auto made = std::make_unique<AutomaticMutant>();
    made->part = shader_->name;
    made->family = mutant.family;
    made->held_out = mutant.held_out;
    made->description = mutant.description;
    made->hash = fmt::format("{:016x}", spirv::hash(*words));
    made->complete(kernel_, [&right = kernel_, shader = shader_, words](const Call& call, Device& device) {
      run_mutated(right, shader->words, *words, call, device);
    });
    return made;
  }

 private:
  const Kernel& kernel_;
  std::shared_ptr<const Shader> shader_;
};

Survey survey(std::span<const Kernel* const> kernels) {
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);  // thousands of shaders that are used once
  const Task task{"the survey of shaders", [&] { return examine(kernels); }};
  const json found = run_tasks({&task, 1}, 1, [](const json*) {})[0];
  if (found.contains("unavailable")) throw Unavailable("vulkan", found["unavailable"].get<std::string>());
  Survey result{found["device"].get<std::string>(), found["on_processor"].get<bool>(), {}};
  std::map<spirv::Words, std::shared_ptr<const Shader>> known;
  for (const Kernel* kernel : kernels)
    for (const auto& [name, words] : found["shaders"][std::string(kernel->id)].items()) {
      auto& shader = known[words.get<spirv::Words>()];
      if (shader == nullptr) shader = std::make_shared<const Shader>(name, words.get<spirv::Words>());
      result.sets.push_back(std::make_unique<ShaderMutants>(*kernel, shader));
    }
  return result;
}

const MutantSourceRegistration registration(Backend::vulkan, survey);

}  // namespace
}  // namespace assay::falsify
