// Runs in a process of its own: a test that replaces a back end cannot undo it.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "falsify/engine/campaign.hpp"
#include "runtime/device.hpp"

namespace assay::falsify {
namespace {

/// Host memory behind a driver that starts slowly.
class SlowDevice final : public Device {
 public:
  SlowDevice() { std::this_thread::sleep_for(std::chrono::milliseconds(600)); }
  Backend backend() const override { return Backend::cuda; }
  std::string description() const override { return "slow to start"; }
  MemoryInfo memory() const override { return {}; }
  bool host_visible() const override { return true; }
  void synchronize() override {}

 protected:
  void* allocate_bytes(std::size_t) override { return nullptr; }
  void release_bytes(void*, std::size_t) noexcept override {}
  void upload_bytes(void*, const void*, std::size_t) override {}
  void download_bytes(void*, const void*, std::size_t) override {}
};

TEST(SlowStart, ADriverThatStartsSlowlyIsNoHangOfTheKernel) {
  DeviceRegistration(Backend::cuda, []() -> std::unique_ptr<Device> { return std::make_unique<SlowDevice>(); });
  Kernel k = kernel("matmul/cpu/naive");
  k.id = "matmul/cpu/test";
  k.backend = Backend::cuda;
  CampaignOptions options;
  options.cases = 2;
  options.limit = std::chrono::milliseconds(200);
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  EXPECT_FALSE(result.falsified());
  EXPECT_EQ(result.device, "slow to start");
}

}  // namespace
}  // namespace assay::falsify
