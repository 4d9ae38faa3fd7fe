// Runs foreign shaders on the Vulkan device.
//
// Each tensor gets a buffer of its own that begins at its first element, as such shaders expect it, followed by guard
// words that must keep their bits. The contents of the buffers are copied back to the engine's memory, including gaps
// between rows and inputs, and checked there as for any kernel.
#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "plugin/shader.hpp"
#include "runtime/vulkan/vulkan_device.hpp"
#include "spirv/module.hpp"

namespace assay::plugin {
namespace {

constexpr std::size_t kGuard = 1024;  // bytes
constexpr std::byte kMark{0x5a};

std::size_t bytes_of(const Tensor& tensor) {
  const View<const std::byte> view(nullptr, tensor.shape, tensor.strides);
  return view.size() == 0 ? 0 : static_cast<std::size_t>(view.extent()) * size_of(tensor.dtype);
}

/// A tensor in a buffer of its own.
class Copied {
 public:
  Copied(VulkanDevice& device, const Tensor& tensor) : tensor_(tensor), bytes_(bytes_of(tensor)) {
    if (bytes_ == 0) return;
    contents_.assign((bytes_ + 3) / 4 * 4 + kGuard, kMark);
    device.download(contents_.data(), tensor.data, bytes_);
    buffer_ = device.allocate(contents_.size());
    device.upload(buffer_.address(), contents_.data(), contents_.size());
  }

  StorageBinding binding(VulkanDevice& device) const {
    return bytes_ == 0 ? StorageBinding{} : device.bind(buffer_.address(), contents_.size());
  }

  /// Copies the shader's results back. Returns false if it wrote behind the tensor.
  bool read_back(VulkanDevice& device) {
    if (bytes_ == 0) return true;
    device.download(contents_.data(), buffer_.address(), contents_.size());
    device.upload(tensor_.data, contents_.data(), bytes_);
    for (std::size_t i = bytes_; i < contents_.size(); ++i)
      if (contents_[i] != kMark) return false;
    return true;
  }

 private:
  const Tensor& tensor_;
  std::size_t bytes_;
  std::vector<std::byte> contents_;
  Buffer buffer_;
};

void run(const ShaderModule& module, const ShaderMap& map, const OpDescriptor& op, const Call& call, Device& any) {
  auto& device = static_cast<VulkanDevice&>(any);
  std::vector<Copied> copies;
  copies.reserve(map.tensors.size());
  std::vector<StorageBinding> bindings;
  for (const int t : map.tensors) {
    copies.emplace_back(device, call.tensors[static_cast<std::size_t>(t)]);
    bindings.push_back(copies.back().binding(device));
  }
  std::vector<std::uint32_t> push;
  for (const Shim::Argument& a : map.push.arguments) push.push_back(Shim::word_of(a, call));
  SpirvDispatch work{.name = "main",
                     .module = module.words,
                     .specialization = map.specialization,
                     .bindings = bindings,
                     .push = std::as_bytes(std::span(push))};
  for (std::size_t axis = 0; axis < map.groups.size(); ++axis)
    work.groups[axis] = static_cast<std::uint32_t>(map.groups[axis].value(scope_of(call)));
  device.dispatch(work);
  device.synchronize();
  for (std::size_t b = 0; b < copies.size(); ++b)
    if (!copies[b].read_back(device))
      throw std::runtime_error(fmt::format("it wrote behind the last element of {}",
                                           op.tensors[static_cast<std::size_t>(map.tensors[b])].name));
}

std::optional<std::string> invalid(const std::vector<std::uint32_t>& words) { return falsify::spirv::invalid(words); }

const ShaderRunnerRegistration registration({.run = &run, .invalid = &invalid});

}  // namespace
}  // namespace assay::plugin
