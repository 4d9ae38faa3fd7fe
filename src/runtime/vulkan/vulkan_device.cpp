#include "runtime/vulkan/vulkan_device.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/registry.hpp"
#include "runtime/vulkan/memory.hpp"
#include "runtime/vulkan/pipelines.hpp"

namespace assay {
namespace {

constexpr std::size_t kStagingBytes = 16 << 20;
// Number of recorded dispatches that triggers a submission.
constexpr std::uint32_t kBatch = 64;
constexpr std::uint32_t kMaxBindings = 8;

// Set when exit() begins. A device with static storage is destroyed after the statics of the driver and the layers,
// which were created later: calls to them would then crash.
bool exiting = false;

bool flag(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

std::byte* at(std::byte* base, const vulkan::Allocation& allocation, const void* address) {
  return base + (reinterpret_cast<std::uintptr_t>(address) - allocation.address);
}

}  // namespace

VulkanOptions VulkanOptions::from_environment() {
  const char* device = std::getenv("ASSAY_VULKAN_DEVICE");
  return {.device = device == nullptr ? "" : device,
          .validation = flag("ASSAY_VULKAN_VALIDATION"),
          .staging = flag("ASSAY_VULKAN_STAGING")};
}

/// What one recording holds: its commands, the descriptor sets that they name, and memory that kernels freed meanwhile.
struct VulkanDevice::Recorded final : RecordedWork {
  explicit Recorded(Impl& device);
  ~Recorded() override;
  void run() override;
  double seconds() const override;
  vk::DescriptorSet descriptor_set(vk::DescriptorSetLayout layout);

  Impl& impl;
  vk::UniqueCommandBuffer commands;
  vk::UniqueQueryPool times;  ///< before and after all commands; null if the queue has no clock
  std::vector<vk::UniqueDescriptorPool> descriptor_pools;
  std::uint32_t sets_left = 0;  ///< in the last pool
  std::vector<vulkan::Allocation> kept;
  std::vector<std::uintptr_t> fresh;  ///< addresses of what was allocated while recording
};

/// Commands are recorded into one command buffer and run as a batch, in order, with a barrier before each.
struct VulkanDevice::Impl {
  explicit Impl(const VulkanOptions& options);

  void record(const vulkan::Pipeline& pipeline, const SpirvDispatch& work);
  void copy(vk::Buffer from, std::size_t from_byte, vk::Buffer to, std::size_t to_byte, std::size_t bytes);
  void begin();
  void finish();
  void submit(vk::CommandBuffer filled);
  vk::CommandBuffer target() const { return recording != nullptr ? *recording->commands : *commands; }
  vk::UniqueCommandBuffer command_buffer() const;
  vk::UniqueDescriptorPool new_descriptor_pool() const;
  void require_alive() const;

  std::uint64_t work_limit_seconds;
  vulkan::Context context;
  vulkan::Memory memory;
  vulkan::Pipelines pipelines;
  vulkan::Allocation empty;    ///< bound for empty views
  vulkan::Allocation staging;  ///< created by the first copy that needs it
  vk::UniqueCommandPool command_pool;
  vk::UniqueCommandBuffer commands;
  vk::UniqueDescriptorPool descriptor_pool;
  vk::UniqueFence fence;
  std::uint32_t recorded = 0;     ///< commands in the batch
  std::string dead;               ///< why no work can run any more
  DispatchFilter filter;          ///< may be empty
  bool preparing = false;         ///< bind and dispatch stop after creating the pipeline
  Recorded* recording = nullptr;  ///< where dispatches go instead of the batch
  Impl* next_abandoned = nullptr;
};

namespace {

bool is_processor(const vulkan::Context& context) {
  return context.physical.getProperties().deviceType == vk::PhysicalDeviceType::eCpu;
}

}  // namespace

VulkanDevice::Impl::Impl(const VulkanOptions& options)
    : work_limit_seconds(options.work_limit_seconds), context(options), memory(context, options.staging),
      pipelines(context), empty(memory.empty_buffer()) {
  // CPUs serve other processes too: unless the caller sets a limit, the time limit of the call decides
  // (falsify/engine/worker.cpp).
  constexpr unsigned kTimesOnProcessors = 20;
  if (is_processor(context) && work_limit_seconds == VulkanOptions{}.work_limit_seconds)
    work_limit_seconds *= kTimesOnProcessors;
  vulkan::checked("vkCreateCommandPool", [&] {
    const vk::Device device = *context.device;
    command_pool = device.createCommandPoolUnique({vk::CommandPoolCreateFlagBits::eResetCommandBuffer, context.family});
    commands = command_buffer();
    descriptor_pool = new_descriptor_pool();
    fence = device.createFenceUnique({});
  });
}

void VulkanDevice::Impl::require_alive() const {
  if (!dead.empty()) throw DeviceError("vulkan", "device switched off", dead);
}

vk::UniqueCommandBuffer VulkanDevice::Impl::command_buffer() const {
  return std::move(
      context.device->allocateCommandBuffersUnique({*command_pool, vk::CommandBufferLevel::ePrimary, 1})[0]);
}

vk::UniqueDescriptorPool VulkanDevice::Impl::new_descriptor_pool() const {
  const vk::DescriptorPoolSize sizes(vk::DescriptorType::eStorageBuffer, kBatch * kMaxBindings);
  return context.device->createDescriptorPoolUnique({{}, kBatch, sizes});
}

void VulkanDevice::Impl::begin() {
  if (recording == nullptr) {
    if (recorded == kBatch) finish();
    if (recorded++ == 0) commands->begin(vk::CommandBufferBeginInfo{vk::CommandBufferUsageFlagBits::eOneTimeSubmit});
  }
  using Access = vk::AccessFlagBits;
  const vk::MemoryBarrier barrier(Access::eMemoryWrite, Access::eMemoryRead | Access::eMemoryWrite);
  target().pipelineBarrier(vk::PipelineStageFlagBits::eAllCommands, vk::PipelineStageFlagBits::eAllCommands, {},
                           barrier, {}, {});
}

/// Runs the recorded work and waits. Any failure leaves the device in an unknown state, so it is switched off, with the
/// reason.
void VulkanDevice::Impl::finish() {
  if (recorded == 0) return;
  recorded = 0;
  try {
    vulkan::checked("vkQueueSubmit", [&] {
      const vk::MemoryBarrier to_host(vk::AccessFlagBits::eMemoryWrite, vk::AccessFlagBits::eHostRead);
      commands->pipelineBarrier(vk::PipelineStageFlagBits::eAllCommands, vk::PipelineStageFlagBits::eHost, {}, to_host,
                                {}, {});
      commands->end();
      submit(*commands);
      context.device->resetDescriptorPool(*descriptor_pool);
    });
  } catch (const DeviceError& e) {
    dead = e.what();
    throw;
  }
}

void VulkanDevice::Impl::submit(vk::CommandBuffer filled) {
  const vk::SubmitInfo batch({}, {}, filled);
  context.queue.submit(batch, *fence);
  const std::uint64_t nanoseconds = work_limit_seconds * 1'000'000'000;
  if (context.device->waitForFences(*fence, VK_TRUE, nanoseconds) == vk::Result::eTimeout)
    throw DeviceError("vkWaitForFences", "VK_TIMEOUT",
                      "the shader did not end within " + std::to_string(work_limit_seconds) + " seconds");
  context.device->resetFences(*fence);
}

VulkanDevice::Recorded::Recorded(Impl& device) : impl(device) {
  vulkan::checked("vkAllocateCommandBuffers", [&] {
    commands = impl.command_buffer();
    commands->begin(vk::CommandBufferBeginInfo{});
    if (impl.context.timestamp_bits == 0) return;
    times = impl.context.device->createQueryPoolUnique({{}, vk::QueryType::eTimestamp, 2});
    commands->resetQueryPool(*times, 0, 2);
    commands->writeTimestamp(vk::PipelineStageFlagBits::eTopOfPipe, *times, 0);
  });
}

VulkanDevice::Recorded::~Recorded() {
  if (impl.dead.empty()) return;
  // The device may still be running it.
  static_cast<void>(commands.release()), static_cast<void>(times.release());
  for (auto& pool : descriptor_pools) static_cast<void>(pool.release());
  for (vulkan::Allocation& allocation : kept)
    static_cast<void>(allocation.buffer.release()), static_cast<void>(allocation.memory.release());
}

vk::DescriptorSet VulkanDevice::Recorded::descriptor_set(vk::DescriptorSetLayout layout) {
  if (sets_left == 0) {
    descriptor_pools.push_back(impl.new_descriptor_pool());
    sets_left = kBatch;
  }
  --sets_left;
  return impl.context.device->allocateDescriptorSets({*descriptor_pools.back(), layout})[0];
}

void VulkanDevice::Recorded::run() {
  impl.require_alive();
  impl.finish();
  try {
    vulkan::checked("vkQueueSubmit", [&] { impl.submit(*commands); });
  } catch (const DeviceError& e) {
    impl.dead = e.what();
    throw;
  }
}

double VulkanDevice::Recorded::seconds() const {
  impl.require_alive();
  if (!times) throw Unavailable("device times", "the queue has no timestamps");
  std::array<std::uint64_t, 2> ticks{};
  vulkan::checked("vkGetQueryPoolResults", [&] {
    const vk::Result result = impl.context.device->getQueryPoolResults(*times, 0, 2, sizeof ticks, ticks.data(),
                                                                       sizeof ticks[0], vk::QueryResultFlagBits::e64);
    if (result != vk::Result::eSuccess) throw Unavailable("device times", "nothing has run yet");
  });
  // Ticks wrap at the number of bits that the queue has.
  const std::uint32_t bits = impl.context.timestamp_bits;
  const std::uint64_t taken = (ticks[1] - ticks[0]) & (bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0});
  return 1e-9 * static_cast<double>(impl.context.limits.timestampPeriod) * static_cast<double>(taken);
}

void VulkanDevice::Impl::record(const vulkan::Pipeline& pipeline, const SpirvDispatch& work) {
  std::vector<vk::DescriptorBufferInfo> buffers;
  for (const StorageBinding& binding : work.bindings) {
    const auto& allocation = binding.allocation == nullptr ? empty : memory.find(binding.allocation, 0);
    buffers.emplace_back(*allocation.buffer, 0, VK_WHOLE_SIZE);
  }
  begin();
  if (!buffers.empty()) {
    const vk::DescriptorSet set =
        recording != nullptr ? recording->descriptor_set(*pipeline.set_layout)
                             : context.device->allocateDescriptorSets({*descriptor_pool, *pipeline.set_layout})[0];
    const vk::WriteDescriptorSet write(set, 0, 0, vk::DescriptorType::eStorageBuffer, {}, buffers);
    context.device->updateDescriptorSets(write, {});
    target().bindDescriptorSets(vk::PipelineBindPoint::eCompute, *pipeline.layout, 0, set, {});
  }
  target().bindPipeline(vk::PipelineBindPoint::eCompute, *pipeline.pipeline);
  if (!work.push.empty())
    target().pushConstants(*pipeline.layout, vk::ShaderStageFlagBits::eCompute, 0,
                           static_cast<std::uint32_t>(work.push.size()), work.push.data());
  target().dispatch(work.groups[0], work.groups[1], work.groups[2]);
}

void VulkanDevice::Impl::copy(vk::Buffer from, std::size_t from_byte, vk::Buffer to, std::size_t to_byte,
                              std::size_t bytes) {
  begin();
  commands->copyBuffer(from, to, vk::BufferCopy(from_byte, to_byte, bytes));
  finish();
}

VulkanDevice::VulkanDevice(const VulkanOptions& options) : impl_(std::make_unique<Impl>(options)) {
  [[maybe_unused]] static const int registered = std::atexit([] { exiting = true; });
}

VulkanDevice::~VulkanDevice() {
  if (!exiting && impl_->dead.empty()) return;
  // Destroying a device with endless work would block: keep it until the process ends, in a list that leak checkers can
  // follow.
  static Impl* abandoned = nullptr;
  impl_->next_abandoned = abandoned;
  abandoned = impl_.release();
}

std::string VulkanDevice::description() const { return impl_->context.description; }
bool VulkanDevice::on_processor() const { return is_processor(impl_->context); }
std::size_t VulkanDevice::largest_buffer() const {
  return std::min<std::size_t>(impl_->context.limits.maxStorageBufferRange, impl_->context.max_allocation);
}
DispatchFilter VulkanDevice::exchange_filter(DispatchFilter filter) {
  return std::exchange(impl_->filter, std::move(filter));
}
MemoryInfo VulkanDevice::memory() const { return impl_->memory.info(); }

void* VulkanDevice::allocate_bytes(std::size_t bytes) {
  impl_->require_alive();
  const std::uintptr_t address = impl_->memory.allocate(bytes).address;
  if (impl_->recording != nullptr) impl_->recording->fresh.push_back(address);
  return reinterpret_cast<void*>(address);
}

void VulkanDevice::release_bytes(void* address, std::size_t) noexcept {
  if (!impl_->dead.empty()) return;  // the device may still be writing there
  if (impl_->recording != nullptr) {
    impl_->recording->kept.push_back(impl_->memory.take(address));
    return;
  }
  try {
    impl_->finish();
  } catch (const DeviceError&) {
    return;  // kept in `dead`; the next call throws it
  }
  impl_->memory.free(address);
}

void VulkanDevice::upload_bytes(void* destination, const void* source, std::size_t bytes) {
  // While recording, the copy is made now, once: into memory that no recorded work before this can have read.
  Recorded* const recording = std::exchange(impl_->recording, nullptr);
  struct Resume {
    Impl& impl;
    Recorded* recording;
    ~Resume() { impl.recording = recording; }
  };
  const Resume resume{*impl_, recording};
  synchronize();
  const vulkan::Allocation& target = impl_->memory.find(destination, bytes);
  if (recording != nullptr && std::ranges::find(recording->fresh, target.address) == recording->fresh.end())
    throw Unavailable("a recording", "the kernel uploads into a tensor, which a recorded run would not do again");
  if (target.mapped != nullptr) {
    std::memcpy(at(target.mapped, target, destination), source, bytes);
    return;
  }
  if (!impl_->staging.buffer) impl_->staging = impl_->memory.staging_buffer(kStagingBytes);
  const std::size_t first = reinterpret_cast<std::uintptr_t>(destination) - target.address;
  for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
    const std::size_t chunk = std::min(bytes - done, kStagingBytes);
    std::memcpy(impl_->staging.mapped, static_cast<const std::byte*>(source) + done, chunk);
    impl_->copy(*impl_->staging.buffer, 0, *target.buffer, first + done, chunk);
  }
}

void VulkanDevice::download_bytes(void* destination, const void* source, std::size_t bytes) {
  synchronize();
  const vulkan::Allocation& origin = impl_->memory.find(source, bytes);
  if (origin.mapped != nullptr) {
    std::memcpy(destination, at(origin.mapped, origin, source), bytes);
    return;
  }
  if (!impl_->staging.buffer) impl_->staging = impl_->memory.staging_buffer(kStagingBytes);
  const std::size_t first = reinterpret_cast<std::uintptr_t>(source) - origin.address;
  for (std::size_t done = 0; done < bytes; done += kStagingBytes) {
    const std::size_t chunk = std::min(bytes - done, kStagingBytes);
    impl_->copy(*origin.buffer, first + done, *impl_->staging.buffer, 0, chunk);
    std::memcpy(static_cast<std::byte*>(destination) + done, impl_->staging.mapped, chunk);
  }
}

void VulkanDevice::synchronize() {
  impl_->require_alive();
  if (impl_->recording != nullptr)
    throw Unavailable("a recording",
                      "the kernel waits for its own results, which are not there before the recording runs");
  impl_->finish();
}

std::vector<std::string> VulkanDevice::take_messages() {
  vulkan::Messages& messages = *impl_->context.messages;
  const std::scoped_lock lock(messages.mutex);
  return std::exchange(messages.texts, {});
}

StorageBinding VulkanDevice::bind(const void* address, std::size_t bytes, std::size_t element) const {
  if (element < 4 && !impl_->context.stores_16_bits)
    throw Unavailable("vulkan binding of a 16-bit tensor", "this device lacks the feature storageBuffer16BitAccess");
  if (bytes == 0) return {};
  const vulkan::Allocation* const allocation = impl_->preparing ? nullptr : &impl_->memory.find(address, bytes);
  const std::size_t capacity = allocation == nullptr ? bytes : allocation->bytes;
  const std::size_t limit = largest_buffer();
  if (capacity > limit)
    throw Unavailable("vulkan binding", "an allocation of " + std::to_string(capacity) +
                                            " bytes; shaders of this device reach " + std::to_string(limit));
  if (allocation == nullptr) return {.elements = static_cast<std::uint32_t>(capacity / element)};
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - allocation->address;
  if (offset % element != 0)
    throw DeviceError("bind", "misaligned address",
                      "tensors start at multiples of " + std::to_string(element) + " bytes");
  return {.allocation = reinterpret_cast<void*>(allocation->address),
          .first = static_cast<std::uint32_t>(offset / element),
          .elements = static_cast<std::uint32_t>(allocation->bytes / element)};
}

void VulkanDevice::dispatch(const SpirvDispatch& asked) {
  impl_->require_alive();
  if (std::ranges::find(asked.groups, 0U) != asked.groups.end()) return;
  SpirvDispatch work = asked;
  if (impl_->filter && !impl_->filter(work)) return;
  const vk::PhysicalDeviceLimits& limits = impl_->context.limits;
  const auto refuse = [&](const std::string& why) { return Unavailable("dispatch of " + std::string(work.name), why); };
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (work.groups[axis] > limits.maxComputeWorkGroupCount[axis])
      throw refuse("it needs " + std::to_string(work.groups[axis]) + " workgroups along one axis; this device runs " +
                   std::to_string(limits.maxComputeWorkGroupCount[axis]));
  if (work.push.size() > limits.maxPushConstantsSize)
    throw refuse(std::to_string(work.push.size()) + " bytes of push constants; this device takes " +
                 std::to_string(limits.maxPushConstantsSize));
  if (work.bindings.size() > std::min(kMaxBindings, limits.maxPerStageDescriptorStorageBuffers))
    throw refuse(std::to_string(work.bindings.size()) + " storage buffers are more than a dispatch is given here");
  const vulkan::Pipeline& pipeline = impl_->pipelines.get(work);
  if (impl_->preparing) return;
  vulkan::checked("vkCmdDispatch", [&] { impl_->record(pipeline, work); });
}

bool VulkanDevice::owns(const void* address) const { return vulkan::Memory::holds(address); }

void VulkanDevice::prepare(const Kernel& kernel, const Call& call) {
  struct Scope {
    bool& flag;
    explicit Scope(bool& preparing) : flag(preparing) { flag = true; }
    ~Scope() { flag = false; }
  };
  impl_->require_alive();
  const Scope preparing(impl_->preparing);
  kernel.run(call, *this);
}

std::unique_ptr<RecordedWork> VulkanDevice::record(const std::function<void()>& work) {
  synchronize();
  auto made = std::make_unique<Recorded>(*impl_);
  struct Scope {
    Impl& impl;
    Scope(Impl& device, Recorded* recording) : impl(device) { impl.recording = recording; }
    ~Scope() { impl.recording = nullptr; }
  };
  {
    const Scope recording(*impl_, made.get());
    work();
  }
  vulkan::checked("vkEndCommandBuffer", [&] {
    const vk::MemoryBarrier to_host(vk::AccessFlagBits::eMemoryWrite, vk::AccessFlagBits::eHostRead);
    made->commands->pipelineBarrier(vk::PipelineStageFlagBits::eAllCommands, vk::PipelineStageFlagBits::eHost, {},
                                    to_host, {}, {});
    if (made->times) made->commands->writeTimestamp(vk::PipelineStageFlagBits::eBottomOfPipe, *made->times, 1);
    made->commands->end();
  });
  return made;
}

std::uint64_t VulkanDevice::pipelines_compiled() const { return impl_->pipelines.compiled(); }

void VulkanDevice::forget_pipelines() {
  synchronize();
  impl_->pipelines.clear();
}

namespace {
const DeviceRegistration registration(Backend::vulkan, []() -> std::unique_ptr<Device> {
  return std::make_unique<VulkanDevice>(VulkanOptions::from_environment());
});
}  // namespace

}  // namespace assay
