#include "runtime/device.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace assay {
namespace {

constexpr std::size_t kCount = std::size(kBackends);

std::array<DeviceFactory, kCount>& factories() {
  static std::array<DeviceFactory, kCount> table{};
  return table;
}

/// A back end that failed to start stays off for the process: one reason, given again on each request.
struct Slot {
  std::unique_ptr<Device> device;
  std::string why;
};

/// Host memory; also the base of cuda-host, whose addresses are host pointers too.
class HostDevice final : public Device {
 public:
  explicit HostDevice(Backend backend) : backend_(backend) {}

  Backend backend() const override { return backend_; }
  std::string description() const override {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);)
      if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "host processor";
  }
  MemoryInfo memory() const override {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return {static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page,
            static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page};
  }
  bool host_visible() const override { return true; }
  Buffer allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (address == nullptr)
      throw Unavailable("host memory", std::to_string(bytes) + " bytes could not be allocated");
    return {*this, address, bytes};
  }
  void upload(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void download(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void synchronize() override {}

 protected:
  void release(void* address, std::size_t) noexcept override { std::free(address); }

 private:
  Backend backend_;
};

const DeviceRegistration cpu(Backend::cpu, []() -> std::unique_ptr<Device> {
  return std::make_unique<HostDevice>(Backend::cpu);
});
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
  return *this;
}
Buffer::~Buffer() {
  if (address_ != nullptr) device_->release(address_, bytes_);
}

DeviceRegistration::DeviceRegistration(Backend backend, DeviceFactory factory) {
  factories()[static_cast<std::size_t>(backend)] = factory;
}

Device& device(Backend backend) {
  static std::array<Slot, kCount> slots;
  Slot& slot = slots[static_cast<std::size_t>(backend)];
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
