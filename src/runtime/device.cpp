#include "runtime/device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string_view>
#include <utility>

#include "runtime/host_memory.hpp"
#include "runtime/new_memory.hpp"
#include "runtime/registry.hpp"
#include "runtime/span.hpp"

namespace assay {
namespace {

constexpr std::size_t kCount = std::size(kBackends);

std::atomic<int> poisoned{0};  ///< PoisonNewMemory alive
constexpr std::size_t kPoisonedAtOnce = std::size_t{1} << 20;

std::array<DeviceFactory, kCount>& factories() {
  static std::array<DeviceFactory, kCount> table{};
  return table;
}

/// A back end that failed to start stays off for the process: each request reports the same reason.
struct Slot {
  std::unique_ptr<Device> device;
  std::string why;
};
std::array<Slot, kCount>& slots() {
  static std::array<Slot, kCount> table;
  return table;
}
std::mutex slots_mutex;

/// Host memory of cpu and cuda-host, whose addresses are host pointers too: one pool for both.
class HostDevice final : public Device {
 public:
  explicit HostDevice(Backend backend) : Device(pool()), backend_(backend) {}

  Backend backend() const override { return backend_; }
  std::string description() const override {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);)
      if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "host processor";
  }
  MemoryInfo memory() const override { return host_memory(); }
  bool host_visible() const override { return true; }
  void synchronize() override {}

 protected:
  void* allocate_bytes(std::size_t bytes) override {
    // Linux overcommits memory and kills a process on write: check first, and touch the pages now, so that this
    // allocation no longer counts as available. Smaller allocations reuse memory that the process already has.
    constexpr std::size_t kAsked = std::size_t{1} << 20, kPage = 4096;
    if (bytes >= kAsked)
      if (const MemoryInfo now = memory(); bytes > now.available) throw refusal(bytes, now);
    auto* address = static_cast<volatile char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    if (address == nullptr) throw refusal(bytes, memory());
    for (std::size_t at = 0; bytes >= kAsked && at < bytes; at += kPage) address[at] = 0;
    return const_cast<char*>(address);
  }
  void release_bytes(void* address, std::size_t) noexcept override { std::free(address); }
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void download_bytes(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }

 private:
  static std::shared_ptr<Budget> pool() {
    static const auto shared = std::make_shared<Budget>();
    return shared;
  }
  static Unavailable refusal(std::size_t bytes, const MemoryInfo& now) {
    return Unavailable("host memory", std::to_string(bytes) + " bytes requested, " + std::to_string(now.available) +
                                          " of " + std::to_string(now.total) + " available");
  }

  Backend backend_;
};

const DeviceRegistration cpu(Backend::cpu,
                             []() -> std::unique_ptr<Device> { return std::make_unique<HostDevice>(Backend::cpu); });
const DeviceRegistration cuda_host(Backend::cuda_host, []() -> std::unique_ptr<Device> {
  return std::make_unique<HostDevice>(Backend::cuda_host);
});

}  // namespace

std::string_view name(Backend backend) {
  switch (backend) {
    case Backend::cpu: return "cpu";
    case Backend::cuda_host: return "cuda-host";
    case Backend::vulkan: return "vulkan";
    case Backend::cuda: return "cuda";
  }
  return "?";
}

Backend backend_from(std::string_view text) {
  for (Backend backend : kBackends)
    if (name(backend) == text) return backend;
  throw InputError("backend '" + std::string(text) + "'", "there is no such back end",
                   "use one of cpu, cuda-host, vulkan, cuda");
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(account_, other.account_);
  return *this;
}
Buffer::~Buffer() {
  if (address_ == nullptr) return;
  const std::scoped_lock lock(device_->budget().mutex);
  device_->release_bytes(address_, bytes_);
  device_->budget().refund(account_.get(), bytes_);
}

PoisonNewMemory::PoisonNewMemory() { ++poisoned; }
PoisonNewMemory::~PoisonNewMemory() { --poisoned; }

template <class Bytes>
Buffer Device::accounted(std::size_t bytes, Bytes make) {
  if (bytes == 0) return {};
  const trace::Scope span("alloc", [&](trace::Span& s) {
    s.attributes = {{"bytes", std::to_string(bytes)}, {"backend", std::string(name(backend()))}};
  });
  const std::scoped_lock lock(budget_->mutex);
  std::shared_ptr<Account> account = budget_->account_for(*this, bytes);
  void* const address = make();
  budget_->charge(account.get(), bytes);
  return {*this, address, bytes, std::move(account)};
}

Buffer Device::allocate(std::size_t bytes) {
  Buffer made = accounted(bytes, [&] { return allocate_bytes(bytes); });
  if (poisoned > 0 && bytes > 0) {
    const std::vector<std::byte> poison(std::min(bytes, kPoisonedAtOnce), std::byte{0xff});
    for (std::size_t at = 0; at < bytes; at += poison.size())
      upload_bytes(static_cast<std::byte*>(made.address()) + at, poison.data(), std::min(poison.size(), bytes - at));
  }
  return made;
}

Buffer Device::allocate(std::size_t bytes, GuardPage guard_page) {
  return accounted(bytes, [&] {
    return guard_page == GuardPage::none ? allocate_bytes(bytes) : allocate_guarded(bytes, guard_page);
  });
}

void* Device::allocate_guarded(std::size_t, GuardPage) {
  throw Unavailable(std::string(name(backend())) + " memory", "this back end has none with guard pages");
}

namespace {
auto transfer(const Device& device, const char* direction, std::size_t bytes) {
  return [&device, direction, bytes](trace::Span& s) {
    s.attributes = {
        {"bytes", std::to_string(bytes)}, {"direction", direction}, {"backend", std::string(name(device.backend()))}};
  };
}
}  // namespace

void Device::upload(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const trace::Scope span("transfer", transfer(*this, "to the device", bytes));
  upload_bytes(destination, source, bytes);
}

void Device::download(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const trace::Scope span("transfer", transfer(*this, "to the host", bytes));
  download_bytes(destination, source, bytes);
}

void Device::prepare(const Kernel& kernel, const Call& call) {
  Call trial = call;
  std::vector<Buffer> memory;
  for (Tensor& tensor : trial.tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.size()) * size_of(tensor.dtype);
    const Buffer& buffer = memory.emplace_back(allocate(bytes));
    if (bytes > 0) std::memset(buffer.address(), 0, bytes);
    tensor.data = buffer.address();
  }
  kernel.run(trial, *this);
  synchronize();
}

DeviceRegistration::DeviceRegistration(Backend backend, DeviceFactory factory) {
  factories()[static_cast<std::size_t>(backend)] = factory;
}

Device* started_device(Backend backend) {
  const std::scoped_lock lock(slots_mutex);
  return slots()[static_cast<std::size_t>(backend)].device.get();
}

Device& device(Backend backend) {
  const std::scoped_lock lock(slots_mutex);
  Slot& slot = slots()[static_cast<std::size_t>(backend)];
  if (slot.device) return *slot.device;
  if (slot.why.empty()) {
    const DeviceFactory factory = factories()[static_cast<std::size_t>(backend)];
    if (factory == nullptr) {
      slot.why = "this build has no " + std::string(name(backend)) + " back end (configure with its toolchain)";
    } else {
      try {
        slot.device = factory();
        return *slot.device;
      } catch (const Unavailable& e) {
        slot.why = e.why;
      } catch (const DeviceError& e) {
        slot.why = e.what();
      }
    }
  }
  throw Unavailable("backend " + std::string(name(backend)), slot.why);
}

}  // namespace assay
