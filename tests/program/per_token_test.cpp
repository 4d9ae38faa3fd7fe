// A run costs no allocation and one submission, and a token one readback, on every back end.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "blocks.hpp"
#include "serve/scratch.hpp"
#include "on_device.hpp"
#include "program/model/decode.hpp"
#include "program/model/parameters.hpp"
#include "serve/reservation.hpp"
#include "serve/trace.hpp"
#ifdef ASSAY_VULKAN
#include "runtime/vulkan/context.hpp"
#endif

namespace {
thread_local std::int64_t from_the_heap = 0;

void* counted_new(std::size_t bytes, std::size_t alignment) {
  ++from_the_heap;
  void* const address = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}
}  // namespace

// Of this whole test program.
void* operator new(std::size_t bytes) { return counted_new(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_new(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }

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
      if (k.op == "rmsnorm" && k.backend == device_->backend() && k.role == KernelRole::kernel &&
          k.storage == DType::f32)
        planted = k;
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

/// Blocks whose runs are counted, forward and backward: small, and of several tiles of every product.
std::vector<BlockCase> counted_blocks() {
  BlockCase small = block_case("lora_on_all_attention"), layer = block_case("lora_on_all"), large = layer;
  large.name = "large", large.s = large.length = 210;
  large.config.hidden = 210, large.config.intermediate = 230, large.config.head_dim = 48;
  return {small, layer, large, block_case("recomputed_loss")};
}

/// The preferred kernels, or those that pack products into memory of their own.
using Choice = std::function<const Kernel*(const Step&)>;
const Kernel* packs(const Step& step) {
  const auto found = std::ranges::find(kernels(), std::string(step.op->name) + "/cpu/highway_tiled", &Kernel::id);
  return found == kernels().end() ? nullptr : &*found;
}

class Runs : public OnDevice {};

TEST_P(Runs, OnTheCpuTakeNothingFromTheHeap) {
  if (device_->backend() != Backend::cpu) GTEST_SKIP() << "its driver, or what stands in for one, takes memory";
  for (const BlockCase& c : counted_blocks())
    for (const Choice& choice : {Choice(), Choice(&packs)}) {
      Session session(Block(c).differentiated().program, *device_, {.choose = choice});
      set_all(session, c);
      session.run();
      EXPECT_GT(session.plan().scratch_bytes, 0u);
      set_all(session, c, 1);  // preconditions are evaluated again
      {
        const Reservation none(*device_, 0);  // refuses the first allocation
        const std::int64_t reserved = from_the_heap;
        session.run();
        EXPECT_EQ(from_the_heap, reserved) << c;
      }
      const std::int64_t before = from_the_heap;
      const std::size_t steps = session.program().steps.size();
      for (std::size_t s = 0; s < steps; ++s) session.kernel(s).run(session.call(s), *device_);
      EXPECT_GT(from_the_heap, before) << c << ": kernels beside a session have no planned memory";
    }
}

/// Kernels that allocate while a program is recorded, on cuda-host in each run: the recording holds it.
const std::set<std::string_view> kAllocate{
    "attention", "attention_decode", "attention_backward", "lora_linear_backward",
    "rope",      "rope_backward",    "column_sum",         "rmsnorm_backward"};

TEST_P(Runs, OfOtherBackEndsAllocateForKernelsThatAreKnown) {
  if (device_->backend() == Backend::cpu) GTEST_SKIP() << "none of its kernels allocates";
  struct OfSteps final : trace::Sink {
    void ended(const trace::Span& span) noexcept override {
      pending += span.name == "alloc";
      if (!span.attribute("step").empty()) by[std::string(span.name)] += std::exchange(pending, 0);
    }
    std::map<std::string, int> by;
    int pending = 0;
  } counts;
  for (const BlockCase& c : counted_blocks()) {
    Session session(Block(c).differentiated().program, *device_);
    set_all(session, c);
    const trace::Recording recording(counts);
    session.run();
  }
  int known = 0;
  for (const auto& [operation, count] : counts.by) {
    EXPECT_TRUE(count == 0 || kAllocate.contains(operation)) << operation << " allocates " << count << " times";
    known += count;
  }
  EXPECT_GT(known, 0);
}

/// Device work that a session records is submitted by it, not by kernels: on CUDA one graph, on Vulkan one command
/// buffer.
TEST_P(Runs, AreReplaysOfOneRecording) {
  int calls = 0;
  std::map<const Kernel*, Kernel> counting;
  for (const BlockCase& c : counted_blocks()) {
    const Differentiated d = Block(c).differentiated();
    Session plain(d.program, *device_);
    std::size_t next = 0;
    Session session(d.program, *device_, {.choose = [&](const Step&) {
                      const Kernel& right = plain.kernel(next++);
                      Kernel& counted = counting.emplace(&right, right).first->second;
                      counted.run = [&](const Call& call, Device& on) { ++calls, right.run(call, on); };
                      return &counted;
                    }});
    set_all(session, c), set_all(plain, c);
    calls = 0;
    session.run(), session.run();
    plain.run(), plain.run();
    EXPECT_EQ(calls, device_->host_visible() ? 2 * std::ssize(d.program.steps) : 0) << c;
    for (const Value g : d.gradients) EXPECT_EQ(session.get<float>(g), plain.get<float>(g)) << c;
    EXPECT_GT(session.seconds(), 0);
#ifdef ASSAY_VULKAN
    if (device_->backend() != Backend::vulkan) continue;
    const Driver driven = counted([&] { session.run(); });
    EXPECT_EQ(driven.submissions, 1) << c;
    EXPECT_EQ(driven.allocations, 0) << c;
#endif
  }
}

INSTANTIATE_TEST_SUITE_P(On, Runs, testing::ValuesIn(built_backends()), backend_name);

/// Counts the bytes that it holds.
class Counting final : public Device {
 public:
  Backend backend() const override { return Backend::cpu; }
  std::string description() const override { return "a device that counts"; }
  MemoryInfo memory() const override { return {has, has - held}; }
  bool host_visible() const override { return true; }
  void synchronize() override {}
  void prepare(const Kernel&, const Call&) override {  // on memory of its own
    ++prepared;
    const Scratch<float> as_a_kernel_does(scratch);
  }

  std::size_t has = 1 << 30, held = 0, scratch = 0;
  int prepared = 0, allocated = 0;

 protected:
  void* allocate_bytes(std::size_t bytes) override {
    held += bytes, ++allocated;
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

TEST(Memory, OfKernelsIsPlanned) {
  Counting counting;
  counting.scratch = 1000;
  const Program p = decode_program(two_layers(), 1, 8).program;
  const Session session(p, counting);
  EXPECT_EQ(session.plan().scratch_bytes, 4032u);  // whole cache lines
  EXPECT_EQ(session.plan().bytes, plan(p).bytes + 4032);
  EXPECT_EQ(counting.held, session.plan().bytes);
}

TEST(Memory, ThatIsNotThereIsRefusedBeforeAnythingIsAllocated) {
  const Program p = Block(block_case("lora_on_all")).differentiated().program;
  const std::size_t bytes = plan(p).bytes;
  for (const std::size_t scratch : {0, 1000}) {
    Counting counting;
    counting.has = bytes + 4 * scratch + (scratch > 0 ? 31 : -1), counting.scratch = scratch;
    try {
      const Session session(p, counting);
      ADD_FAILURE() << scratch;
    } catch (const Unavailable& e) {
      const std::string wanted = std::to_string(bytes + (scratch > 0 ? 4032 : 0)), there = std::to_string(counting.has);
      EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(there), std::string::npos) << e.what();
    }
    EXPECT_EQ(counting.allocated, 0);
    EXPECT_EQ(counting.prepared > 0, scratch > 0);
    counting.has = 1 << 30;
    EXPECT_NO_THROW(Session(p, counting));
  }
}

/// Of a decoder and of a trainer, whose programs share their weights.
TEST(Memory, OfSeveralProgramsIsKnownAndRefusedBeforeAnythingIsAllocated) {
  const auto expect = [](std::span<const Program* const> programs, const auto& open) {
    Counting counting;
    const std::size_t bytes = bytes_together(programs);
    std::size_t apart = 0;
    for (const Program* p : programs) apart += plan(*p).bytes;
    EXPECT_LT(bytes, apart);
    counting.has = bytes - 1;
    try {
      open(counting);
      ADD_FAILURE();
    } catch (const Unavailable& e) {
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes - 1)), std::string::npos) << e.what();
    }
    EXPECT_EQ(counting.allocated, 0);
    counting.has = bytes;
    EXPECT_EQ(open(counting), bytes) << "all of it, and no more";
  };
  const DecodeProgram one = decode_program(two_layers(), 1, 8 + 3), many = decode_program(two_layers(), 1, 8 + 3, 3);
  expect(std::array{&one.program, &many.program}, [](Counting& on) {
    const Decoder decoder(two_layers(), {.capacity = 8, .chunk = 3}, on);
    return on.held;
  });
  const ClassifierConfig classifier{.model = two_layers(), .classes = 3};
  const TrainingOptions options{.batch = 2, .length = 4};
  const StepPrograms p = step_programs(classifier, options);
  expect(std::array{&p.gradients, &p.forward, &p.norm, &p.update}, [&](Counting& on) {
    const Trainer trainer(classifier, options, on);
    return on.held;
  });
}

}  // namespace
}  // namespace assay::program::per_token_test
