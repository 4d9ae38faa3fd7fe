// A token costs no allocation, one submission and one readback on every back end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "blocks.hpp"
#include "on_device.hpp"
#include "program/model/decode.hpp"
#include "program/model/parameters.hpp"
#include "serve/reservation.hpp"
#include "serve/trace.hpp"
#ifdef ASSAY_VULKAN
#include "runtime/vulkan/context.hpp"
#endif

namespace assay::program::per_token_test {
namespace {

TransformerConfig two_layers() {
  TransformerConfig c = full();
  c.layers = 2, c.trains = false;
  return c;
}

/// Counts transfers and programs. While it records, a program runs step by step, and so would a kernel that allocates.
class Counts final : public trace::Sink {
 public:
  void ended(const trace::Span& span) noexcept override {
    pending_ += span.name == "alloc";
    readbacks += span.name == "transfer" && span.attribute("direction") == "to the host";
    programs += span.name == "program";
    if (span.attribute("step").empty()) return;
    // On CUDA and Vulkan the recording of a program holds what these allocate.
    const bool scratch = span.name == "attention_decode" || span.name == "rope";
    (scratch ? of_recording : allocations) += std::exchange(pending_, 0);
  }
  int allocations = 0, of_recording = 0, readbacks = 0, programs = 0;

 private:
  int pending_ = 0;
};

/// Counts of requests to the driver.
struct Driver {
  int submissions = 0, allocations = 0;
};
#ifdef ASSAY_VULKAN
Driver driver;
PFN_vkQueueSubmit submit = nullptr;
PFN_vkAllocateMemory allocate = nullptr;

/// Counts what f asks of the Vulkan driver.
template <class F>
Driver counted(const F& f) {
  auto& entries = VULKAN_HPP_DEFAULT_DISPATCHER;
  submit = entries.vkQueueSubmit, allocate = entries.vkAllocateMemory, driver = {};
  entries.vkQueueSubmit = [](VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
    driver.submissions += static_cast<int>(count);
    return submit(queue, count, infos, fence);
  };
  entries.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* with,
                                VkDeviceMemory* memory) {
    ++driver.allocations;
    return allocate(device, info, with, memory);
  };
  f();
  entries.vkQueueSubmit = submit, entries.vkAllocateMemory = allocate;
  return driver;
}
#endif

class Tokens : public OnDevice {};

TEST_P(Tokens, AllocateNothingAndAreReadBackOnce) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::q4_k, WeightFormat::nf4}) {
    TransformerConfig c = two_layers();
    c.weights = format;
    Decoder decoder(c, {.capacity = 8}, *device_);
    initialize(decoder.session(), 1);
    const std::int32_t id[] = {3};
    decoder.step(id);
    {
      const Reservation none(*device_, 0);  // refuses the first allocation
      // On cuda-host, attention takes the scratch that a CUDA graph holds.
      if (device_->backend() != Backend::cuda_host) {
        EXPECT_NO_THROW(decoder.step(id)) << name(format);
      }
      EXPECT_THROW(device_->allocate(4), Unavailable);
    }
    Counts counts;
    {
      const trace::Recording recording(counts);
      decoder.step(id);
    }
    EXPECT_EQ(counts.programs, 1) << name(format);
    EXPECT_EQ(counts.readbacks, 1) << name(format);
    EXPECT_EQ(counts.allocations, 0) << name(format);
    EXPECT_EQ(counts.of_recording, device_->backend() == Backend::cpu ? 0 : 4) << name(format);  // two in each layer
  }
}

/// The same counts of a decoder with a kernel that allocates, and of one that reads a cache back.
TEST_P(Tokens, AreCounted) {
  static Kernel planted;
  SessionOptions options;
  options.choose = [&](const Step& step) -> const Kernel* {
    if (step.op->name != "rmsnorm") return nullptr;
    for (const Kernel& k : kernels())
      if (k.op == "rmsnorm" && k.backend == device_->backend() && k.role == KernelRole::kernel) planted = k;
    planted.run = [run = planted.run](const Call& call, Device& on) {
      const Buffer scratch = on.allocate(64);
      run(call, on);
    };
    return &planted;
  };
  Decoder decoder(two_layers(), {.capacity = 8}, *device_, options);
  const std::int32_t id[] = {3};
  Counts counts;
  {
    const trace::Recording recording(counts);
    decoder.step(id);
    decoder.session().get<float>(parameter(decoder.session().program(), "model.norm.weight").value);
  }
  EXPECT_EQ(counts.readbacks, 2);
  EXPECT_GE(counts.allocations, 5);      // norms
  if (!device_->host_visible()) return;  // a recording keeps what its kernels allocated
  const Reservation none(*device_, 0);
  EXPECT_THROW(decoder.step(id), Unavailable);
}

#ifdef ASSAY_VULKAN
TEST_P(Tokens, AreOneSubmission) {
  if (device_->backend() != Backend::vulkan) GTEST_SKIP() << "it submits nothing: its kernels run at once";
  Decoder decoder(two_layers(), {.capacity = 8}, *device_);
  const std::int32_t id[] = {3};
  decoder.step(id);
  const Driver once = counted([&] { decoder.step(id); });
  EXPECT_EQ(once.submissions, 1);
  EXPECT_EQ(once.allocations, 0);
  const Driver again = counted([&] { decoder.step(id), decoder.session().run(); });
  EXPECT_EQ(again.submissions, 2);
  EXPECT_GE(counted([&] { const Buffer more = device_->allocate(4); }).allocations, 1);
  const Driver apart = counted([&] {  // as seeds did: step by step
    for (std::size_t s = 0; s < decoder.session().program().steps.size(); ++s) {
      decoder.session().kernel(s).run(decoder.session().call(s), *device_);
      device_->synchronize();
    }
  });
  EXPECT_EQ(apart.submissions, std::ssize(decoder.session().program().steps));
}
#endif

#ifdef ASSAY_VULKAN
TEST_P(Tokens, OfATrainingForwardPassAreOneSubmission) {
  if (device_->backend() != Backend::vulkan) GTEST_SKIP() << "it submits nothing: its kernels run at once";
  BlockCase c = block_case("tied_loss");
  c.part = Part::training;
  const Passes passes = Block(c).passes();
  Session forward(passes.forward, *device_), backward(passes.backward, *device_, {.shares = &forward});
  set_all(forward, c), set_all(backward, c);
  forward.run(), backward.run();
  const Driver driven = counted([&] { forward.run(), backward.run(); });
  EXPECT_EQ(driven.submissions, 2);
  EXPECT_EQ(driven.allocations, 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(On, Tokens, testing::ValuesIn(built_backends()), backend_name);

/// Counts the bytes that it holds.
class Counting final : public Device {
 public:
  Backend backend() const override { return Backend::cpu; }
  std::string description() const override { return "a device that counts"; }
  MemoryInfo memory() const override { return {1 << 30, 1 << 30}; }
  bool host_visible() const override { return true; }
  void synchronize() override {}
  void prepare(const Kernel&, const Call&) override {}  // on memory of its own

  std::size_t held = 0;

 protected:
  void* allocate_bytes(std::size_t bytes) override {
    held += bytes;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release_bytes(void* address, std::size_t bytes) noexcept override {
    held -= bytes;
    std::free(address);
  }
  void upload_bytes(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download_bytes(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

TEST(Memory, IsWhatThePlanSays) {
  Counting counting;
  const Program p = decode_program(two_layers(), 1, 8).program;
  std::size_t kept = 0;
  for (const Storage& s : p.storages)
    if (s.kind != Kind::temporary) kept += static_cast<std::size_t>(s.elements) * size_of(s.dtype);
  const std::size_t bytes = plan(p).bytes;
  EXPECT_GT(bytes, kept);
  const Session session(p, counting);
  EXPECT_EQ(counting.held, bytes);
  const Reservation less(counting, bytes - 1);
  EXPECT_THROW(Session(p, counting), Unavailable);
}

}  // namespace
}  // namespace assay::program::per_token_test
