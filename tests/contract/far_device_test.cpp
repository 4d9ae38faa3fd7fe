// Ensures clauses on a device whose memory the host cannot read: tensors are fetched in full.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "contract/enforce.hpp"
#include "core/errors.hpp"
#include "ops/embedding.hpp"
#include "ops/matmul.hpp"
#include "runtime/registry.hpp"
#include "serve/trace.hpp"

namespace assay::contract::far_device_test {
namespace {

/// Device addresses are host addresses plus 2^62: dereferencing one on the host crashes.
class FarDevice final : public Device {
 public:
  static constexpr std::uintptr_t kOffset = std::uintptr_t{1} << 62;
  static void* far(void* near) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(near) + kOffset); }
  static void* near(const void* far) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(far) - kOffset);
  }

  Backend backend() const override { return Backend::vulkan; }
  std::string description() const override { return "memory far from the host"; }
  MemoryInfo memory() const override { return {}; }
  bool host_visible() const override { return false; }
  void synchronize() override {
    synchronized = true;
    if (queued) queued();
  }

  std::size_t fetched = 0;
  bool synchronized = false;
  std::function<void()> queued;  ///< pending writes of earlier kernels

 protected:
  void* allocate_bytes(std::size_t) override { return nullptr; }
  void release_bytes(void*, std::size_t) noexcept override {}
  void upload_bytes(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(near(destination), source, bytes);
  }
  void download_bytes(void* destination, const void* source, std::size_t bytes) override {
    fetched += bytes;
    std::memcpy(destination, near(source), bytes);
  }
};

/// Computes the product through the address offset; `Wrong` drops the last term of each sum.
template <bool Wrong>
void multiply(const ops::MatmulArgs& args, Device&) {
  const float* a = static_cast<float*>(FarDevice::near(args.a.data()));
  const float* b = static_cast<float*>(FarDevice::near(args.b.data()));
  float* c = static_cast<float*>(FarDevice::near(args.c.data()));
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k - Wrong; ++p) sum += a[i * args.a.stride(0) + p] * b[p * args.b.stride(0) + j];
      c[i * args.c.stride(0) + j] = sum;
    }
}
template <bool Wrong>
Kernel kernel() {
  return {.op = "matmul",
          .id = "matmul/vulkan/test",
          .source = "tests/contract/far_device_test.cpp",
          .summary = "of this test",
          .run = &run_typed<ops::MatmulArgs, &multiply<Wrong>>};
}

void writes_nothing(const ops::EmbeddingArgs&, Device&) {}

/// A condition that reads elements waits for pending writes to them.
TEST(FarDevice, RequiresClausesThatReadElementsWaitForTheDevice) {
  std::vector<float> table(6, 1), y(4, 0);
  std::vector<std::int32_t> ids{2, 99};
  const auto far = [](auto& v) {
    return static_cast<std::remove_reference_t<decltype(v[0])>*>(FarDevice::far(v.data()));
  };
  const Kernel kernel{.op = "embedding",
                      .id = "embedding/vulkan/test",
                      .source = "tests/contract/far_device_test.cpp",
                      .summary = "of this test",
                      .run = &run_typed<ops::EmbeddingArgs, &writes_nothing>};
  const ops::EmbeddingArgs args{2, 3, 2, {far(ids), {2}}, View<float>{far(table), {3, 2}}, View<float>{far(y), {2, 2}}};
  FarDevice device;
  EXPECT_THROW(ops::embedding(args, kernel, device), ContractViolation);
  device.queued = [&] { ids[1] = 0; };
  EXPECT_NO_THROW(ops::embedding(args, kernel, device));
}

class Dropped final : public trace::Sink {
 public:
  void ended(const trace::Span&) noexcept override {}
};

/// A trace span ends when the device has finished the work; without tracing nothing waits.
TEST(FarDevice, SpansHoldTheWorkOfTheDevice) {
  std::vector<float> a{1}, b{1}, c{0};
  const auto far = [](std::vector<float>& v) { return static_cast<float*>(FarDevice::far(v.data())); };
  const ops::MatmulArgs args{
      1, 1, 1, View<float>{far(a), {1, 1}}, View<float>{far(b), {1, 1}}, View<float>{far(c), {1, 1}}};
  set_level(Level::off);
  FarDevice device;
  ops::matmul(args, kernel<false>(), device);
  EXPECT_FALSE(device.synchronized);
  {
    Dropped sink;
    const trace::Recording recording(sink);
    ops::matmul(args, kernel<false>(), device);
  }
  EXPECT_TRUE(device.synchronized);
  set_level(Level::pre);
}

TEST(FarDevice, EnsuresClausesAreEvaluatedOnFetchedTensors) {
  std::vector<float> a(3 * 5, 2), b(4 * 3, 3), c(3 * 3);
  b[3 * 3] = 5;  // the errors of the two columns differ, so that no choice of signs cancels them
  const auto far = [](std::vector<float>& v) { return static_cast<float*>(FarDevice::far(v.data())); };
  // Leading dimensions above the widths: [3, 4] of 5, [4, 2] of 3, [3, 2] of 3.
  const ops::MatmulArgs args{3,
                             4,
                             2,
                             View<float>{far(a), {3, 4}, {5, 1}},
                             View<float>{far(b), {4, 2}, {3, 1}},
                             View<float>{far(c), {3, 2}, {3, 1}}};
  set_level(Level::full);
  FarDevice device;
  EXPECT_NO_THROW(ops::matmul(args, kernel<false>(), device));
  EXPECT_TRUE(device.synchronized);
  EXPECT_EQ(device.fetched, sizeof(float) * ((2 * 5 + 4) + (3 * 3 + 2) + (2 * 3 + 2)));
  try {
    ops::matmul(args, kernel<true>(), device);
    ADD_FAILURE() << "a wrong product passes its certificate";
  } catch (const ContractViolation& e) {
    EXPECT_EQ(e.clause, "MM-POST-003");
  }
  set_level(Level::pre);
}

}  // namespace
}  // namespace assay::contract::far_device_test
