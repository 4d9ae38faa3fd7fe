// Spans: names, nesting and attributes if a sink is set, and none otherwise.
#include "serve/trace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <sstream>
#include <thread>

#include "far_device.hpp"
#include "ops/transpose.hpp"
#include "serve/chrome_trace.hpp"
#include "serve/transfer.hpp"

namespace assay::trace {
namespace {

class Kept final : public Sink {
 public:
  void ended(const Span& span) noexcept override {
    const std::scoped_lock lock(mutex);
    spans.push_back(span);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const Span& span : spans)
      list.push_back(std::string(2 * static_cast<std::size_t>(span.depth), ' ') + span.name);
    return list;
  }
  std::mutex mutex;
  std::vector<Span> spans;
};

const Kernel kTranspose{.op = "transpose",
                        .id = "transpose/cpu/of_this_test",
                        .source = "tests/runtime/trace_test.cpp",
                        .summary = "of this test",
                        .run = [](const Call& call, Device&) {
                          const auto args = ops::TransposeArgs::unpack(call);
                          for (Index i = 0; i < args.m; ++i)
                            for (Index j = 0; j < args.n; ++j) args.dst(j, i) = args.src(i, j);
                        }};
const Kernel kMatmul{.op = "matmul",
                     .id = "matmul/vulkan/of_this_test",
                     .backend = Backend::vulkan,
                     .source = "tests/runtime/trace_test.cpp",
                     .summary = "of this test",
                     .run = &run_typed<ops::MatmulArgs, &far::multiply>};

float values[6] = {1, 2, 3, 4, 5, 6}, result[6];

void transpose() { ops::transpose({2, 3, {values, {2, 3}}, {result, {3, 2}}}, kTranspose, device(Backend::cpu)); }

TEST(Trace, KernelsAreNamedByTheirOperationWithTheShape) {
  Kept kept;
  {
    const Recording recording(kept);
    transpose();
  }
  ASSERT_EQ(kept.spans.size(), 1U);
  const Span& span = kept.spans[0];
  EXPECT_EQ(span.name, "transpose");
  EXPECT_EQ(span.attribute("shape"), "m=2 n=3");
  EXPECT_EQ(span.attribute("kernel"), "transpose/cpu/of_this_test");
  EXPECT_EQ(span.attribute("backend"), "cpu");
  EXPECT_EQ(span.attribute("no such key"), "");
  EXPECT_GE(span.end_ns, span.begin_ns);
}

TEST(Trace, AllocationsAndTransfersNestInWhatCausedThem) {
  Kept kept;
  far::behaviour(Backend::vulkan) = {};
  far::FarDevice device(Backend::vulkan);
  const ops::MatmulArgs args{
      2, 3, 1, View<float>{values, {2, 3}}, View<float>{values, {3, 1}}, View<float>{result, {2, 1}}};
  {
    const Recording recording(kept);
    const Scope outer("step", [](Span&) {});
    contract::run_with_copies(operation("matmul"), kMatmul, args.pack(), device);
  }
  EXPECT_EQ(kept.names(), std::vector<std::string>(
                              {"  alloc", "  transfer", "  alloc", "  transfer", "  alloc", "  transfer", "step"}));
  EXPECT_EQ(kept.spans[0].attribute("bytes"), "24");
  EXPECT_EQ(kept.spans[0].attribute("backend"), "vulkan");
  EXPECT_EQ(kept.spans[1].attribute("direction"), "to the device");
  EXPECT_EQ(kept.spans[5].attribute("direction"), "to the host");
  EXPECT_EQ(kept.spans[5].attribute("bytes"), "8");
  for (const Span& span : kept.spans) {
    EXPECT_GE(span.begin_ns, kept.spans.back().begin_ns);
    EXPECT_LE(span.end_ns, kept.spans.back().end_ns);
    EXPECT_EQ(span.thread, kept.spans.back().thread);
  }
}

TEST(Trace, WithoutASinkThereAreNoSpansAndNobodyIsAskedForAttributes) {
  Kept kept;
  { const Recording recording(kept); }
  transpose();
  bool asked = false;
  {
    const Scope scope("nothing", [&](Span&) { asked = true; });
    EXPECT_FALSE(scope.recording());
  }
  EXPECT_FALSE(asked);
  EXPECT_TRUE(kept.spans.empty());
}

TEST(Trace, TheSinkBeforeIsInForceAgainAfterwards) {
  Kept outer, inner;
  const Recording recording(outer);
  {
    const Recording nested(inner);
    transpose();
  }
  transpose();
  EXPECT_EQ(inner.spans.size(), 1U);
  EXPECT_EQ(outer.spans.size(), 1U);
}

TEST(Trace, ASpanEndsWithAnExceptionToo) {
  Kept kept;
  {
    const Recording recording(kept);
    EXPECT_THROW(
        {
          const Scope scope("fails", [](Span&) {});
          throw std::runtime_error("as planned");
        },
        std::runtime_error);
    transpose();
  }
  EXPECT_EQ(kept.names(), std::vector<std::string>({"fails", "transpose"}));
}

TEST(Trace, TheEndOfARecordingWaitsForOpenSpans) {
  Kept kept;
  std::atomic<bool> opened = false, released = false, ended = false;
  std::thread span, recording;
  {
    auto scope = std::make_unique<Recording>(kept);
    span = std::thread([&] {
      const Scope open("open", [](Span&) {});
      opened = true;
      while (!released) std::this_thread::yield();
    });
    while (!opened) std::this_thread::yield();
    recording = std::thread([&ended, scope = std::move(scope)]() mutable {
      scope.reset();
      ended = true;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ended);
  released = true;
  span.join();
  recording.join();
  EXPECT_EQ(kept.names(), std::vector<std::string>({"open"}));
}

TEST(Trace, ASinkIsNotUsedOnceItsRecordingHasEnded) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) const Scope scope("busy", [](Span& s) { s.attributes = {{"shape", "1"}}; });
    });
  for (int round = 0; round < 200; ++round) {
    auto kept = std::make_unique<Kept>();  // freed at once: a late span would write to freed memory
    {
      const Recording recording(*kept);
      std::this_thread::yield();
    }
    const std::size_t count = kept->spans.size();
    std::this_thread::yield();
    EXPECT_EQ(kept->spans.size(), count);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ChromeTrace, WritesCompleteEvents) {
  ChromeTrace trace;
  trace.ended({.name = "mat\"mul",
               .attributes = {{"shape", "m=1\n"}},
               .thread = 2,
               .depth = 0,
               .begin_ns = 1500,
               .end_ns = 4750});
  trace.ended({.name = "alloc", .attributes = {}, .thread = 1, .depth = 1, .begin_ns = 0, .end_ns = 7});
  std::ostringstream out;
  trace.write(out);
  EXPECT_EQ(out.str(),
            "{\"traceEvents\":[\n"
            R"({"ph":"X","pid":1,"tid":2,"name":"mat\"mul","ts":1.500,"dur":3.250,"args":{"shape":"m=1\u000a"}},)"
            "\n"
            R"({"ph":"X","pid":1,"tid":1,"name":"alloc","ts":0.000,"dur":0.007,"args":{}})"
            "\n]}\n");
}

}  // namespace
}  // namespace assay::trace
