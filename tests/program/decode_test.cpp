// Decoding: token by token, in chunks and after a reset it gives what the whole model gives over the whole prefix.
#include "program/model/decode.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/program/check.hpp"
#include "on_device.hpp"
#include "program/model/parameters.hpp"
#include "program/operations.hpp"
#include "refusal.hpp"

namespace assay::program::decode_test {
namespace {

using falsify::Execution;

TransformerConfig two_layers() {
  TransformerConfig c = full();
  c.layers = 2, c.trains = false;
  return c;
}

std::vector<std::int32_t> tokens(Index count, Index vocabulary, std::uint64_t seed = 1) {
  falsify::Random random(seed);
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
  return ids;
}

/// A model's weights: as they begin, but none of them zeros.
std::vector<double> weight(const Parameter& p) {
  const bool zeros = p.name.ends_with("lora_B.weight") || p.name.ends_with(".bias");
  const std::vector<float> values = initial_values(p.name + (zeros ? ".any" : ""), p.shape, 3);
  return {values.begin(), values.end()};
}

/// Logits of every token in double, by the program of the whole sequence.
std::vector<std::vector<double>> whole(const TransformerConfig& c, const std::vector<std::int32_t>& ids) {
  Builder b;
  const auto s = std::ssize(ids);
  const Sequences all = sequences(b, c, s);
  const Value in = b.input("ids", {s}, DType::i32), logits = decoder(b, c, in, all);
  b.output(logits);
  const Program p = b.take();
  const Plan where = plan(p);
  Execution<double> run(p, where, std::nan(""));
  for (const Parameter& parameter : p.parameters) write(run[parameter.value], weight(parameter));
  write(run[in], {ids.begin(), ids.end()});
  write(run[all.lengths], {static_cast<double>(s)}), write(run[all.starts], {0});
  std::vector<double> places(ids.size());
  std::iota(places.begin(), places.end(), 0);
  if (all.positions) write(run[all.positions], places);
  run.run();
  const std::vector<double> flat = read(run[logits]);
  std::vector<std::vector<double>> rows;
  for (auto at = flat.begin(); at != flat.end(); at += c.vocabulary) rows.emplace_back(at, at + c.vocabulary);
  return rows;
}

/// Caches in a number type, and the programs that use them.
template <class T>
class Chain {
 public:
  /// With a decoder: its parameters, and the arithmetic of its kernels.
  Chain(const TransformerConfig& c, Index batch, Index capacity, Decoder* decoder = nullptr)
      : lengths(static_cast<std::size_t>(batch), 0), c_(c), batch_(batch), capacity_(capacity), decoder_(decoder) {}

  /// Appends ids [batch * rows]; returns the logits if rows is 1.
  std::vector<T> append(const std::vector<std::int32_t>& ids) {
    const Index rows = std::ssize(ids) / batch_;
    const DecodeProgram d = decode_program(c_, batch_, capacity_, rows);
    const Plan where = plan(d.program);
    Execution<T> run(d.program, where, T(std::nan("")));
    run.rounds_stores = decoder_ != nullptr;
    set_parameters(d.program, run);
    write(run[d.ids], {ids.begin(), ids.end()});
    write(run[d.starts], lengths);
    std::vector<double> places;
    for (const double start : lengths)
      for (Index i = 0; i < rows; ++i) places.push_back(start + static_cast<double>(i));
    if (d.positions && rows > 1) write(run[d.positions], places);
    for (double& length : lengths) length += static_cast<double>(rows);
    if (rows > 1) write(run[d.lengths], lengths);
    const auto copy = [](const std::vector<T>& from, View<T> to) { std::ranges::copy(from, to.data()); };
    for (std::size_t layer = 0; layer < caches_.size(); ++layer)
      copy(caches_[layer].first, run[d.caches[layer].keys]), copy(caches_[layer].second, run[d.caches[layer].values]);
    const Session* const kernels = decoder_ == nullptr ? nullptr
                                   : rows == 1         ? &decoder_->session()
                                                       : decoder_->chunk_session();
    for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
      const ArithmeticScope scope(kernels == nullptr ? Arithmetic{} : kernels->kernel(s).arithmetic);
      run.run(d.program.steps[s]);
    }
    caches_.clear();
    for (const Cache& cache : d.caches) caches_.emplace_back(read(run[cache.keys]), read(run[cache.values]));
    return rows == 1 ? read(run[d.logits]) : std::vector<T>();
  }

  std::vector<double> lengths;

 private:
  void set_parameters(const Program& program, Execution<T>& run) const {
    const auto copy = [&]<class E>(Value mine, Value theirs, E) {
      const std::vector<E> elements = decoder_->session().get<E>(theirs);
      write(run[mine], {elements.begin(), elements.end()});
    };
    for (const Parameter& p : program.parameters) {
      if (decoder_ == nullptr) {
        write(run[p.value], weight(p));
        continue;
      }
      const Parameter& theirs = parameter(decoder_->session().program(), p.name);
      if constexpr (std::is_same_v<T, Bounded>)
        if (!is_packed(p.format) && p.format != WeightFormat::f32) {  // beside the weights in float32
          std::vector<T> rounded;
          for (const double w : weight(p)) rounded.push_back(stored(activation_dtype(p.format), T(w)));
          std::ranges::copy(rounded, run[p.value].data());
          continue;
        }
      if (p.format == WeightFormat::f32) copy(p.value, theirs.value, 0.0F);
      else copy(p.value, theirs.value, std::uint8_t{});
      if (p.scales) copy(p.scales, theirs.scales, 0.0F);
    }
  }

  TransformerConfig c_;
  Index batch_, capacity_;
  Decoder* decoder_;
  std::vector<std::pair<std::vector<T>, std::vector<T>>> caches_;
};
using InDouble = Chain<double>;

std::vector<TransformerConfig> models() {
  std::vector<TransformerConfig> all{two_layers(), llama(), two_layers(), two_layers()};
  all[1].vocabulary = 11, all[1].trains = false;
  all[2].adapters.on.clear(), all[2].tied_head = true, all[2].biases.clear();
  all[3].theta = 0, all[3].kv_heads = 1;
  return all;
}

TEST(Decoding, TokenByTokenInChunksAndAfterAResetIsTheWholeModel) {
  for (const TransformerConfig& c : models()) {
    const std::vector<std::int32_t> ids = tokens(9, c.vocabulary);
    const std::vector<std::vector<double>> want = whole(c, ids);
    InDouble one_by_one(c, 1, 12);
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(one_by_one.append({ids[i]}), want[i]) << i;
    for (const Index chunk : {2, 3, 8}) {
      InDouble& again = one_by_one;  // its caches hold the sequence before
      again.lengths = {0};
      std::size_t at = 0;
      for (const auto rows = static_cast<std::size_t>(chunk); ids.size() - at > rows; at += rows)
        again.append(
            {ids.begin() + static_cast<std::ptrdiff_t>(at), ids.begin() + static_cast<std::ptrdiff_t>(at + rows)});
      for (; at < ids.size(); ++at) EXPECT_EQ(again.append({ids[at]}), want[at]) << chunk << " " << at;
    }
  }
}

TEST(Decoding, SequencesOfABatchAreOnTheirOwn) {
  const TransformerConfig c = two_layers();
  const std::vector<std::int32_t> first = tokens(6, c.vocabulary, 2), second = tokens(6, c.vocabulary, 5);
  const std::vector<std::vector<double>> want[] = {whole(c, first), whole(c, second)};
  InDouble both(c, 2, 8);
  both.append({first[0], first[1], first[2], second[0], second[1], second[2]});
  both.lengths[1] = 2;  // its third place is overwritten
  for (std::size_t i = 3; i < 6; ++i) {
    const std::vector<double> logits = both.append({first[i], second[i - 1]});
    const auto middle = logits.begin() + c.vocabulary;
    EXPECT_EQ(std::vector(logits.begin(), middle), want[0][i]);
    EXPECT_EQ(std::vector(middle, logits.end()), want[1][i - 1]);
  }
}

class Decoders : public OnDevice {};

void set_weights(Session& session) {
  for (const Parameter& p : session.program().parameters) {
    const std::vector<double> numbers = weight(p);
    set_parameter(session, p.name, p.shape, std::vector<float>(numbers.begin(), numbers.end()));
  }
}

/// In 16 bits the model in float32, within bounds of every store and of its weights' rounding.
TEST_P(Decoders, AreTheWholeModelInEveryFormat) {
  using enum WeightFormat;
  for (const WeightFormat format : {f32, q4_k, nf4, f16, bf16}) {
    TransformerConfig c = two_layers();
    c.weights = format;
    const std::vector<std::int32_t> ids = tokens(7, c.vocabulary);
    constexpr std::ptrdiff_t chunk = 3;
    Decoder decoder(c, {.capacity = 8, .chunk = chunk}, *device_);
    set_weights(decoder.session());
    Chain<Bounded> bounded(c, 1, 11, &decoder);
    for (auto at = ids.begin(); ids.end() - at > chunk; at += chunk) bounded.append({at, at + chunk});
    std::vector<Bounded> want;
    for (auto i = static_cast<std::size_t>(bounded.lengths[0]); i < ids.size(); ++i) want = bounded.append({ids[i]});
    const std::span<const float> got = decoder.prompt(0, ids);
    EXPECT_EQ(decoder.length(0), 7);
    double squares = 0;
    for (const Bounded& w : want) squares += w.value * w.value;
    const double rms = std::sqrt(squares / static_cast<double>(want.size()));
    for (std::size_t w = 0; w < want.size(); ++w) {
      EXPECT_LE(std::fabs(got[w] - want[w].value), want[w].error) << name(format) << " " << w;
      // Sums of q4_k cancel its offsets, so that its composed bounds are wide, as those of 16 bits are; check_steps
      // judges each step.
      if (format == f32 || format == nf4) {
        EXPECT_LT(want[w].error, 0.1 * rms) << name(format);
      }
    }
    const falsify::CheckedRun run = falsify::check_steps(decoder.session());
    EXPECT_FALSE(run.fault) << run.fault->label << " " << run.fault->finding.message;
    EXPECT_EQ(run.steps, decoder.session().program().steps.size());
  }
}

/// Calls of an operation in a layer.
int calls(const Program& p, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(
      p.steps, [&](const Step& s) { return s.op->name == op && s.label.starts_with("model.layers.0."); }));
}

/// q, k and v, gate and up, and the rotation of q and k, where nothing comes between.
TEST(Decoding, OneCallMultipliesByWeightsThatReadOneInput) {
  TransformerConfig c = llama();
  c.vocabulary = 7, c.trains = false;
  for (const auto& [weights, op] : {std::pair{WeightFormat::q4_k, "q4_k_gemv"}, {WeightFormat::bf16, "gemv"}}) {
    c.weights = weights;
    const Program p = decode_program(c, 1, 8).program;
    EXPECT_EQ(calls(p, op), 4);
    EXPECT_EQ(calls(p, "rope"), 1);
    const Parameter& k = parameter(p, "model.layers.0.self_attn.k_proj.weight");
    EXPECT_EQ(k.shape, (Shape{8, 6}));
    EXPECT_EQ(p.storage_of(k.value).name,
              p.storage_of(parameter(p, "model.layers.0.self_attn.q_proj.weight").value).name);
    EXPECT_EQ(p[k.value].offset, 8 * row_bytes(weights, 6) / static_cast<Index>(size_of(p.storage_of(k.value).dtype)));
    TransformerConfig biased = c;
    biased.biases = {Projection::k};
    EXPECT_EQ(calls(decode_program(biased, 1, 8).program, op), 4);
    EXPECT_EQ(calls(decode_program(biased, 1, 8).program, "rope"), 2) << "a bias comes between";
    TransformerConfig apart = c;
    apart.largest_buffer = static_cast<std::size_t>(23 * row_bytes(weights, 6));  // q, k and v have 24 rows
    EXPECT_EQ(calls(decode_program(apart, 1, 8).program, op), 6);
  }
  c.weights = WeightFormat::f32, c.adapters.on = {Projection::q};
  EXPECT_EQ(calls(decode_program(c, 1, 8).program, "gemv"), 5) << "lora_linear takes a weight of its own";
}

TEST_P(Decoders, BeginAgainAfterAReset) {
  const TransformerConfig c = two_layers();
  const std::vector<std::int32_t> before = tokens(8, c.vocabulary, 4), ids = tokens(6, c.vocabulary);
  Decoder decoder(c, {.batch = 2, .capacity = 8, .chunk = 2}, *device_);
  set_weights(decoder.session());
  const auto run = [&] {
    const std::span<const float> logits = decoder.prompt(1, ids);
    return std::vector<float>(logits.begin(), logits.end());
  };
  const std::vector<float> fresh = run();
  decoder.reset(1);
  decoder.prompt(1, before), decoder.prompt(0, before);  // full
  decoder.reset(1);
  EXPECT_EQ(run(), fresh) << "beside a full sequence";
  EXPECT_THROW(decoder.prompt(0, std::span(ids).first(1)), InputError);
}

std::vector<float> logits_of(Decoder& decoder, const std::vector<std::int32_t>& ids) {
  const std::span<const float> logits = decoder.prompt(0, ids);
  return {logits.begin(), logits.end()};
}

/// Parts of three rows: a token of every part, and the first and last row of one.
TEST_P(Decoders, TablesAndHeadsAreInPartsThatADeviceBinds) {
  for (const bool tied : {false, true})
    for (const WeightFormat format : {WeightFormat::f32, WeightFormat::nf4, WeightFormat::q4_k, WeightFormat::bf16}) {
      TransformerConfig c = two_layers();
      c.tied_head = tied, c.weights = format, c.vocabulary = 8;
      const std::vector<std::int32_t> ids{0, 2, 3, 5, 7, 6};
      const DecoderOptions options{.capacity = 8, .chunk = 2};
      Decoder whole(c, options, *device_);
      // Four rows of the table, of which one is zeros.
      c.largest_buffer =
          static_cast<std::size_t>(4 * row_bytes(is_packed(format) ? WeightFormat::f32 : format, c.hidden));
      Decoder parts(c, options, *device_);
      set_weights(whole.session()), set_weights(parts.session());
      EXPECT_EQ(parameter(parts.session().program(), "model.embed_tokens.weight").parts.size(), 3u);
      for (const Storage& s : parts.session().program().storages)
        if (s.name.starts_with("model.embed_tokens") || s.name.starts_with("lm_head")) {
          EXPECT_LE(static_cast<std::size_t>(s.elements) * size_of(s.dtype),
                    std::max<std::size_t>(c.largest_buffer, 144));
        }
      EXPECT_EQ(logits_of(parts, ids), logits_of(whole, ids)) << tied << " " << name(format);
      const Parameter& table = parameter(parts.session().program(), "model.embed_tokens.weight");
      EXPECT_EQ(get_parameter(parts.session(), table),
                get_parameter(whole.session(), parameter(whole.session().program(), table.name)));
      const falsify::CheckedRun run = falsify::check_steps(parts.session());
      EXPECT_FALSE(run.fault) << run.fault->label << " " << run.fault->finding.message;
    }
}

/// The table of Qwen2-0.5B, 545 MB, on devices that bind less.
TEST_P(Decoders, DecodeABigVocabularyOnADeviceThatBindsLess) {
  TransformerConfig c{.hidden = 896,
                      .intermediate = 64,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = 64,
                      .vocabulary = 151936,
                      .tied_head = true,
                      .trains = false};
  if (device_->largest_buffer() >= static_cast<std::size_t>(c.vocabulary * c.hidden * 4))
    GTEST_SKIP() << "the device binds all of it";
  Decoder decoder(c, {.capacity = 4}, *device_);
  Session& session = decoder.session();
  const Parameter& table = parameter(session.program(), "model.embed_tokens.weight");
  ASSERT_GE(table.parts.size(), 5u);
  initialize(session, 1);
  for (const std::int32_t id : {151935, 1, static_cast<std::int32_t>(table.parts[1].begin)}) {
    const std::vector<float> logits = logits_of(decoder, {id});
    EXPECT_TRUE(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }));
    // The row that went in is that which is most like what comes out, up to what the small layer adds.
    EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), id);
  }
}

/// N63: what cannot be in parts, as a cache, is refused by the name of the step that binds it.
TEST_P(Decoders, RefuseACacheThatTheDeviceCannotBind) {
  TransformerConfig c = llama();
  c.heads = c.kv_heads = 8, c.head_dim = 64, c.vocabulary = 5;
  const std::size_t place = 8 * 64 * 4, limit = device_->largest_buffer();
  if (limit > std::size_t{1} << 30) GTEST_SKIP() << "the device binds more than this test allocates";
  try {
    const Decoder decoder(c, {.capacity = static_cast<Index>(limit / place) + 1}, *device_);
    ADD_FAILURE();
  } catch (const Unavailable& e) {
    EXPECT_NE(std::string(e.what()).find("for model.layers.0.self_attn.attention_decode"), std::string::npos)
        << e.what();
  }
}

/// N82: a sum of exponentials that is no number is not passed over; without any finite score attention gives zeros.
TEST_P(Decoders, ScoresThatAreNotFiniteReachTheLogits) {
  TransformerConfig c = two_layers();
  c.q_norm = c.k_norm = false, c.theta = 0;
  for (const float score : {-INFINITY, INFINITY, NAN}) {  // of every key, as every query is positive
    Decoder decoder(c, {.capacity = 4}, *device_);
    set_weights(decoder.session());
    const std::string self = "model.layers.0.self_attn.";
    const Index keys = c.kv_heads * c.head_dim, queries = c.heads * c.head_dim;
    set_parameter(decoder.session(), self + "k_proj.bias", {keys},
                  std::vector<float>(static_cast<std::size_t>(keys), score));
    set_parameter(decoder.session(), self + "q_proj.bias", {queries},
                  std::vector<float>(static_cast<std::size_t>(queries), 100));
    for (const float logit : logits_of(decoder, {1, 2})) EXPECT_EQ(std::isnan(logit), score != -INFINITY) << score;
  }
}

INSTANTIATE_TEST_SUITE_P(On, Decoders, testing::ValuesIn(built_backends()), backend_name);

TEST(DecoderErrors, AreOneSentence) {
  Device& cpu = device(Backend::cpu);
  TransformerConfig c = two_layers();
  Decoder decoder(c, {.capacity = 3}, cpu);
  const std::vector<std::int32_t> four = tokens(4, c.vocabulary), beyond{1, 7};
  EXPECT_EQ(
      refusal([&] { decoder.prompt(0, four); }),
      "sequence 0: its cache holds 0 of 3 tokens, and 4 more do not fit; reset it, or give the decoder more capacity");
  EXPECT_EQ(refusal([&] { decoder.prompt(0, beyond); }),
            "token 7: the vocabulary has 7; tokenize with the model's own tokenizer");
  EXPECT_EQ(decoder.length(0), 0);
  EXPECT_EQ(refusal([&] { decoder.step(four); }), "ids: 4 for 1 sequences; give one for each, or kNone");
  EXPECT_EQ(refusal([&] { decoder.reset(1); }), "sequence 1: there are 1; count from 0");
  EXPECT_EQ(refusal([&] { decoder.prompt(0, {}); }), "prompt: it has no token; give one or more");
  c.causal = false;
  EXPECT_EQ(refusal([&] { decode_program(c, 1, 8); }).substr(0, 45), "transformer: causal: an encoder's tokens see ");
}

/// The owner of a shared storage changes what a precondition of the other session reads.
TEST(SharedStorages, PreconditionsSeeWhatTheOtherSessionSets) {
  for (const Backend backend : built_backends()) {
    const auto program = [](Value& ids) {
      Builder b;
      ids = b.state("ids", {2}, DType::i32);
      b.output(embedding(b, ids, b.state("table", {3, 4})));
      return b.take();
    };
    Value ids;
    Session owner(program(ids), device(backend)), other(program(ids), device(backend), {.shares = &owner});
    owner.set(ids, std::vector<std::int32_t>{0, 2});
    other.run();
    owner.set(ids, std::vector<std::int32_t>{0, 3});
    EXPECT_THROW(other.run(), ContractViolation) << name(backend);
    other.set(ids, std::vector<std::int32_t>{1, 1});
    owner.set(ids, std::vector<std::int32_t>{-1, 0});
    EXPECT_THROW(other.run(), ContractViolation) << name(backend);
  }
}

TEST(SharedStorages, AreOfOneLayout) {
  Device& cpu = device(Backend::cpu);
  TransformerConfig c = two_layers(), wider = c;
  wider.intermediate = 12;
  const Session session(decode_program(c, 1, 8).program, cpu);
  const SessionOptions shared{.shares = &session};
  EXPECT_EQ(refusal([&] { Session(decode_program(c, 1, 8, 2).program, cpu, shared); }), "not refused");
  EXPECT_EQ(refusal([&] { Session(decode_program(c, 1, 9, 2).program, cpu, shared); }),
            "cache.0.keys: the two programs give it different extents or types; share between programs of one model");
  EXPECT_NE(refusal([&] { Session(decode_program(wider, 1, 8, 2).program, cpu, shared); }), "not refused");
  TransformerConfig stacked = llama(), apart = stacked;
  stacked.trains = apart.trains = false, apart.largest_buffer = 23 * 4 * 6;
  const Session of_stacks(decode_program(stacked, 1, 8).program, cpu);
  EXPECT_EQ(refusal([&] { Session(decode_program(stacked, 1, 8, 2).program, cpu, {.shares = &of_stacks}); }),
            "not refused");
  EXPECT_EQ(
      refusal([&] { Session(decode_program(apart, 1, 8, 2).program, cpu, {.shares = &of_stacks}); }),
      "model.layers.0.self_attn.q_proj.weight: the two programs have it at different places; share between programs "
      "of one model");
}

}  // namespace
}  // namespace assay::program::decode_test
