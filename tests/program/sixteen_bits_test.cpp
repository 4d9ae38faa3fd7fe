// Programs in f16 and bf16: formats of results, casts, gradients, weights, and faults of formats that checks see.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "blocks.hpp"
#include "core/half.hpp"
#include "falsify/program/check.hpp"
#include "falsify/program/wiring.hpp"
#include "on_device.hpp"
#include "program/differentiate.hpp"
#include "program/model/decode.hpp"
#include "program/model/parameters.hpp"
#include "program/model/safetensors.hpp"
#include "program/model/training.hpp"
#include "program/operations.hpp"
#include "refusal.hpp"

namespace assay::program::sixteen_bits_test {
namespace {

using Floats = std::vector<float>;

TEST(SixteenBits, AStepHasTheFormatOfItsOperands) {
  Builder b;
  const Value x = b.input("x", {2, 3}, DType::bf16), w = b.input("w", {4, 3}, DType::bf16),
              wide = b.input("wide", {4, 3}), half = b.input("half", {4, 3}, DType::f16), norm = b.input("norm", {3}),
              a = b.input("a", {1, 3}), up = b.input("up", {4, 1});
  EXPECT_EQ(b.dtype(matmul_nt(b, x, w)), DType::bf16);
  const RmsnormValues normed = rmsnorm(b, x, norm, 1e-6);
  EXPECT_EQ(b.dtype(normed.y), DType::bf16);
  EXPECT_EQ(b.dtype(normed.rrms), DType::f32);
  const LoraLinearValues adapted = lora_linear(b, x, w, b.zeros({0, 4}, DType::bf16), a, up, 1);
  EXPECT_EQ(b.dtype(adapted.y), DType::bf16);
  EXPECT_EQ(b.dtype(adapted.t), DType::f32);
  EXPECT_EQ(b.dtype(matmul_tn(b, x, x)), DType::f32);
  EXPECT_FALSE(b.zeros({2, 3}) == b.zeros({2, 3}, DType::f16));
  EXPECT_TRUE(b.zeros({2, 3}, DType::f16) == b.zeros({2, 3}, DType::f16));
  EXPECT_EQ(refusal([&] { matmul_nt(b, x, wide); }),
            "matmul_nt.1 (matmul_nt): wide is f32, and a tensor before it bf16; pass values of one storage format");
  EXPECT_EQ(refusal([&] { matmul_nt(b, x, half); }),
            "matmul_nt.2 (matmul_nt): half is f16, and a tensor before it bf16; pass values of one storage format");
  EXPECT_EQ(refusal([&] { rmsnorm(b, x, b.input("short", {3}, DType::bf16), 1e-6); }),
            "rmsnorm.1 (rmsnorm): short is bf16, and the contract wants weight in f32; pass a value of that type");
  EXPECT_EQ(refusal([&] { b.parameter("p", {3}, true, DType::bf16); }),
            "p: it trains, and is bf16; train parameters in f32");
}

class SixteenBitsOn : public OnDevice {};

/// To the format ties go to even, and from it numbers are exact.
TEST_P(SixteenBitsOn, HostNumbersAreRoundedAndWidened) {
  Builder b;
  const Value x = b.input("x", {1, 5}, DType::bf16), h = b.input("h", {1, 5}, DType::f16), wide = b.cast(x, DType::f32),
              back = b.cast(wide, DType::bf16), of_half = b.cast(h, DType::f32);
  for (const Value v : {wide, back, of_half}) b.output(v);
  EXPECT_EQ(b.dtype(wide), DType::f32);
  EXPECT_EQ(b.dtype(back), DType::bf16);
  Session session(b.take(), *device_);
  session.set(x, Floats{1 + 0x1p-8F, 1 + 0x3p-8F, -1 - 0x1p-8F - 0x1p-20F, 0x1.fep127F, 3});
  session.set(h, Floats{1 + 0x1p-11F, 1 + 0x3p-11F, 65519, -65520, 0x1p-24F});
  const Floats want{1, 1 + 0x1p-6F, -1 - 0x1p-7F, 0x1.fep127F, 3},
      want_half{1, 1 + 0x1p-9F, 65504, -INFINITY, 0x1p-24F};
  EXPECT_EQ(session.get<float>(x), want);
  EXPECT_EQ(session.get<float>(h), want_half);
  session.run();
  EXPECT_EQ(session.get<float>(wide), want);
  EXPECT_EQ(session.get<float>(back), want);
  Floats halves = session.get<float>(of_half);
  halves[4] = want_half[4];  // a device may flush it
  EXPECT_EQ(halves, want_half);
}

/// y = x + 2 x, summed by a column of ones in f32: two readers of h, whose gradients are added in bf16; the leaf's is f32.
TEST_P(SixteenBitsOn, GradientsHaveTheFormatOfTheirValues) {
  Builder b;
  const Value x = b.input("x", {1, 3}, DType::bf16), h = silu(b, x),
              y = residual_add(b, residual_add(b, h, h, 2), h, 1), wide = b.cast(y, DType::f32);
  const Program forward = b.take();
  const Differentiated d = differentiate(forward, std::vector{wide}, std::vector{x});
  std::size_t sums = 0;
  for (const Step& step : d.program.steps) {
    if (step.label.starts_with("backward.") && step.op->name == "silu_backward") {
      EXPECT_EQ(d.program.storage_of(step.tensors[2]).dtype, DType::bf16);
    }
    if (step.op->name == "accumulate") {
      EXPECT_EQ(d.program.storage_of(step.tensors[1]).dtype, DType::f32);
    }
    sums += step.op->name == "residual_add";
  }
  EXPECT_EQ(sums, 5u) << "two forward, one multiple and two sums of gradients";
  EXPECT_EQ(d.program.storage_of(d.gradients[0]).dtype, DType::f32);
  EXPECT_EQ(d.program.storage_of(d.upstream[0]).dtype, DType::f32);
  Session session(d.program, *device_);
  session.set(x, Floats{0, 0, 0});  // where silu' is 1/2
  session.set(d.upstream[0], Floats{1, 2 + 0x1p-7F, -4});
  session.run(), session.run();
  // 2 + 2^-7 is 2 in bf16. Of two runs 2 (1 + 2 + 1) / 2 times the upstream gradient.
  EXPECT_EQ(session.get<float>(d.gradients[0]), (Floats{4, 8, -16}));
  Builder parts;
  const Value whole = parts.input("x", {2, 3}, DType::bf16), rows = parts.rows(silu(parts, whole), 0, 1),
              part = silu(parts, rows);
  EXPECT_NE(refusal([&] {
              differentiate(parts.program(), std::vector{part}, std::vector{whole});
            }).find("gradients of parts of a value add up in f32, and it is bf16; read the whole value"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(On, SixteenBitsOn, testing::ValuesIn(built_backends()), backend_name);

TransformerConfig model(WeightFormat format) {
  TransformerConfig c = full();
  c.layers = 2, c.trains = false, c.weights = format, c.adapters.on.clear();
  return c;
}

std::string bytes_of(Session& session, Value v) {
  std::string bytes(
      static_cast<std::size_t>(session.program()[v].shape.size()) * size_of(session.program().storage_of(v).dtype),
      ' ');
  session.get(v, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(SixteenBits, AModelHoldsNothingLargeInF32) {
  const std::size_t wide = decode_program(model(WeightFormat::f32), 1, 32).program.storages.size();
  for (const WeightFormat format : {WeightFormat::f16, WeightFormat::bf16}) {
    const DecodeProgram d = decode_program(model(format), 1, 32);
    EXPECT_EQ(d.program.storages.size(), wide);
    for (const Storage& s : d.program.storages) {
      const bool stays = s.dtype == DType::i32 || s.name.ends_with("norm.weight") || s.name.ends_with(".bias") ||
                         s.name.ends_with("rrms") || s.name.ends_with("logsumexp");
      EXPECT_EQ(s.dtype == activation_dtype(format), !stays) << s.name;
    }
  }
}

/// A checkpoint in the model's format keeps its bits; one in another is rounded; what is written is what is held.
TEST(SixteenBits, CheckpointsInTheModelsFormat) {
  std::string folder = (std::filesystem::temp_directory_path() / "assay-bf16-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path wide = std::filesystem::path(folder) / "wide.safetensors",
                              narrow = std::filesystem::path(folder) / "narrow.safetensors";
  Decoder exact(model(WeightFormat::f32), {.capacity = 4}, device(Backend::cpu));
  initialize(exact.session(), 3);
  save(exact.session(), wide);
  for (const auto& [format, dtype] : {std::pair{WeightFormat::bf16, DType::bf16}, {WeightFormat::f16, DType::f16}}) {
    for (const std::size_t largest : {SIZE_MAX, std::size_t{4 * 2 * 6}}) {  // a table in parts
      TransformerConfig c = model(format);
      c.largest_buffer = largest;
      Decoder rounded(c, {.capacity = 4}, device(Backend::cpu)), kept(c, {.capacity = 4}, device(Backend::cpu));
      EXPECT_TRUE(load(rounded.session(), Weights(wide)).empty());
      save(rounded.session(), narrow, dtype);
      EXPECT_EQ(Weights(narrow).entry("model.layers.1.mlp.up_proj.weight").dtype,
                dtype == DType::bf16 ? "BF16" : "F16");
      EXPECT_TRUE(load(kept.session(), Weights(narrow)).empty());
      for (const Parameter& p : rounded.session().program().parameters) {
        Floats want = initial_values(p.name, p.shape, 3);
        for (float& w : want) w = stored(activation_dtype(p.format), w);
        EXPECT_EQ(get_parameter(rounded.session(), p), want) << p.name;
        EXPECT_EQ(bytes_of(kept.session(), p.value), bytes_of(rounded.session(), p.value)) << p.name;
      }
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(SixteenBits, RefusesWhatDoesNotTrain) {
  const auto with = [](const std::function<void(TransformerConfig&)>& change) {
    TransformerConfig c = model(WeightFormat::bf16);
    change(c);
    return refusal([&] { step_programs({.model = c, .classes = 3}, {.batch = 2, .length = 4}); });
  };
  EXPECT_EQ(with([](TransformerConfig& c) { c.trains = true; }),
            "transformer: weights: bf16 does not train; set trains to false");
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight"})
    EXPECT_EQ(with([&](TransformerConfig& c) { c.trained = {name}; }),
              std::string("transformer: trained: ") + name +
                  " is in bf16, which does not train; name other parameters, or have weights in f32");
  EXPECT_EQ(with([](TransformerConfig& c) { c.trained = {"*norm.weight", "*.bias", "classifier.*"}; }), "not refused");
}

/// Casts and gradients around them are wired by the equations: every program mutant is seen, or is the program.
TEST(SixteenBits, MutantsOfWiringsDie) {
  for (const Part part : {Part::layer, Part::classifier}) {
    BlockCase c{.name = "bf16", .config = model(WeightFormat::bf16), .part = part, .classes = 3};
    c.config.layers = 1, c.config.adapters = {{Projection::q, Projection::down}, 2, 8};
    const falsify::Wiring wiring(c);
    const auto dies = [&](const std::vector<std::vector<double>>& results) {
      for (std::size_t row = 0; row < results.size(); ++row)
        if (judge(wiring.expected()[row], results[row]).kind == falsify::Outcome::Kind::falsified) return true;
      return false;
    };
    EXPECT_FALSE(dies(wiring.run(wiring.right())));
    int killed = 0;
    for (const falsify::ProgramMutant& m : wiring.mutants()) {
      if (dies(wiring.run(m))) ++killed;
      else EXPECT_TRUE(wiring.equivalent(m)) << m.description;
    }
    EXPECT_GE(killed, 100);
  }
}

/// A kernel that computes and then spoils what it computed.
Kernel spoiled(std::string_view id, std::function<void(const Call&)> spoil) {
  Kernel wrong = kernel(id);
  wrong.run = [right = wrong.run, spoil = std::move(spoil)](const Call& call, Device& device) {
    right(call, device);
    spoil(call);
  };
  return wrong;
}

/// The label of the step that a checked run of a right session, with this kernel in it, says is wrong.
std::string found(const std::function<std::string(const SessionOptions&)>& label_of, const Kernel& wrong) {
  EXPECT_EQ(label_of({}), "") << "without the fault";
  return label_of({.choose = [&](const Step& step) { return step.op->name == wrong.op ? &wrong : nullptr; }});
}

std::string decoding(const SessionOptions& options) {
  Decoder decoder(model(WeightFormat::bf16), {.capacity = 8}, device(Backend::cpu), options);
  initialize(decoder.session(), 5);
  decoder.prompt(0, std::vector<std::int32_t>{1, 4, 2, 6});
  const falsify::CheckedRun run = falsify::check_steps(decoder.session());
  return run.fault ? run.fault->label : "";
}

std::string training(const SessionOptions& options) {
  TransformerConfig c = model(WeightFormat::bf16);
  c.adapters = full().adapters;
  const ClassifierConfig config{.model = c, .classes = 3};
  Trainer trainer(config, {.batch = 2, .length = 4}, device(Backend::cpu), options);
  initialize(trainer.session(), 5);
  for (const Parameter& p : trainer.session().program().parameters)  // B is zeros otherwise
    if (p.name.ends_with("lora_B.weight"))
      set_parameter(trainer.session(), p.name, p.shape, initial_values(p.name + ".any", p.shape, 5));
  trainer.accumulate(std::vector<Sample>{{{1, 4, 2, 6}, 1}, {{3, 3, 5}, 2}});
  const falsify::CheckedRun run = falsify::check_steps(trainer.session());
  return run.fault ? run.fault->label : "";
}

std::span<std::uint16_t> bits(const Tensor& t) {
  return {static_cast<std::uint16_t*>(t.data), static_cast<std::size_t>(t.shape.size())};
}
std::span<float> floats(const Tensor& t) {
  return {static_cast<float*>(t.data), static_cast<std::size_t>(t.shape.size())};
}

TEST(SixteenBits, ACacheInBf16ThatIsReadAsF16IsSeen) {
  const Kernel wrong = spoiled("attention_decode/cpu/naive_bf16", [](const Call& call) {
    Call other = call;
    std::vector<std::vector<std::uint16_t>> halves;
    for (std::size_t t = 0; t < other.tensors.size(); ++t) {
      Tensor& tensor = other.tensors[t];
      if (tensor.dtype != DType::bf16) continue;
      const bool cache = tensor.shape.rank() == 4;
      halves.emplace_back();
      for (const std::uint16_t b : bits(tensor)) halves.back().push_back(cache ? b : to_half(widen(BFloat16{b})).bits);
      tensor.dtype = DType::f16, tensor.data = halves.back().data();
    }
    kernel("attention_decode/cpu/naive_f16").run(other, device(Backend::cpu));
    const std::span<std::uint16_t> y = bits(call.tensors.back());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = to_bfloat16(widen(Half{halves.back()[i]})).bits;
  });
  EXPECT_EQ(found(&decoding, wrong), "model.layers.0.self_attn.attention_decode (attention_decode)");
}

TEST(SixteenBits, AStoreThatRoundsTowardZeroIsSeen) {
  const Kernel wrong = spoiled("silu_mul/cpu/naive_bf16", [](const Call& call) {
    const auto gate = bits(call.tensors[0]), up = bits(call.tensors[1]), y = bits(call.tensors[2]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double x = widen(BFloat16{gate[i]}), exact = x / (1 + std::exp(-x)) * widen(BFloat16{up[i]});
      y[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(exact)) >> 16);
    }
  });
  EXPECT_EQ(found(&decoding, wrong), "model.layers.0.mlp.silu_mul (silu_mul)");
}

TEST(SixteenBits, AnAdapterThatIsRoundedIsSeen) {
  Kernel wrong = kernel("lora_linear/cpu/naive_bf16");
  wrong.run = [right = wrong.run](const Call& call, Device& device) {
    Call rounded = call;
    std::vector<Floats> factors;
    for (const std::size_t t : {3, 4}) {
      factors.emplace_back();
      for (const float x : floats(call.tensors[t])) factors.back().push_back(stored(DType::bf16, x));
      rounded.tensors[t].data = factors.back().data();
    }
    right(rounded, device);
  };
  EXPECT_EQ(found(&training, wrong), "model.layers.0.self_attn.q_proj.lora_linear (lora_linear)");
}

TEST(SixteenBits, AGradientThatAddsUpInBf16IsSeen) {
  const Kernel wrong = spoiled("accumulate/cpu/naive", [](const Call& call) {
    for (float& g : floats(call.tensors[0])) g = stored(DType::bf16, g);
  });
  EXPECT_EQ(found(&training, wrong).substr(0, 10), "accumulate");
}

}  // namespace
}  // namespace assay::program::sixteen_bits_test
