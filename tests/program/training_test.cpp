// A training step: what it adds up, averages, clips and changes, and what it refuses.
#include "program/model/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/program/check.hpp"
#include "on_device.hpp"
#include "program/model/checkpoint.hpp"
#include "program/model/parameters.hpp"
#include "refusal.hpp"

namespace assay::program::training_test {
namespace {

ClassifierConfig small() {
  ClassifierConfig c{.model = llama(), .classes = 3};
  c.model.vocabulary = 11;
  return c;
}

/// Samples whose class is a token in them.
std::vector<Sample> samples(Index count, std::uint64_t seed = 1) {
  falsify::Random random(seed);
  std::vector<Sample> all;
  for (Index i = 0; i < count; ++i) {
    Sample s;
    for (Index t = random.between(1, 5); t > 0; --t)
      s.tokens.push_back(static_cast<std::int32_t>(random.between(3, 10)));
    s.label = static_cast<std::int32_t>(random.below(3));
    s.tokens[random.below(s.tokens.size())] = s.label;
    s.labels = {s.label == 0 ? 1.0F : 0.0F, s.label == 1 ? 1.0F : 0.0F, 1};
    all.push_back(std::move(s));
  }
  return all;
}

std::vector<float> values(Session& session, bool trainable = true) {
  std::vector<float> all;
  for (const Parameter& p : session.program().parameters)
    if (p.trainable == trainable)
      for (const float v : session.get<float>(p.value)) all.push_back(v);
  return all;
}
std::vector<float> gradients(Session& session) {
  std::vector<float> all;
  const Program& p = session.program();
  std::int32_t storage = -1;
  for (std::size_t i = 0; i < p.storages.size(); ++i)
    if (p.storages[i].kind == Kind::gradient) storage = static_cast<std::int32_t>(i);
  for (const Parameter& parameter : p.parameters) {
    if (!parameter.trainable) continue;
    for (std::size_t i = 0; i < p.values.size(); ++i)
      if (p.values[i].storage == storage && p.values[i].offset == p[parameter.value].offset &&
          p.values[i].shape == parameter.shape) {
        for (const float v : session.get<float>(Value{static_cast<std::int32_t>(i)})) all.push_back(v);
        break;
      }
  }
  return all;
}

class Training : public OnDevice {};

/// AdamW as its paper writes it, in double, on the gradients that the device got (Loshchilov & Hutter, 2019).
void expect_adamw(Device& device, const TrainingOptions& o) {
  Trainer trainer(small(), o, device);
  initialize(trainer.session(), 7);
  const std::vector<Sample> data = samples(5);
  std::vector<double> m, v, magnitude;  // of m without cancellation
  for (int step = 1; step <= 3; ++step) {
    const std::vector<float> before = values(trainer.session());
    trainer.accumulate(std::span(data).first(3)), trainer.accumulate(std::span(data).last(2));
    const std::vector<float> sum = gradients(trainer.session());
    ASSERT_EQ(sum.size(), before.size());
    double squares = 0;
    for (const float g : sum) squares += double{g} * g / 25;
    const Update update = trainer.apply();
    EXPECT_EQ(update.samples, 5);
    EXPECT_FALSE(update.skipped);
    // Relative error of a float32 sum of squares, and of the few operations behind it (Higham, 2002, section 4.2).
    const double relative = (static_cast<double>(sum.size()) + 40) * 0x1p-24;
    EXPECT_NEAR(update.norm, std::sqrt(squares), relative * std::sqrt(squares));
    const double clip = o.max_norm > 0 ? std::min(1.0, o.max_norm / std::sqrt(squares)) : 1;
    EXPECT_TRUE(o.max_norm <= 0 || clip < 1) << "it is not clipped";
    const std::vector<float> after = values(trainer.session());
    m.resize(sum.size()), v.resize(sum.size()), magnitude.resize(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double g = sum[i] / 5.0 * clip;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g, v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      magnitude[i] = o.beta1 * magnitude[i] + (1 - o.beta1) * std::fabs(g);
      const double first = 1 - std::pow(o.beta1, step), root = std::sqrt(v[i] / (1 - std::pow(o.beta2, step))) + o.eps;
      const double want = before[i] - o.lr * (m[i] / first / root + o.weight_decay * before[i]);
      const double bound =
          o.lr * relative * magnitude[i] / first / root + 4 * 0x1p-24 * (std::fabs(want) + std::fabs(before[i]));
      EXPECT_NEAR(after[i], want, bound) << step << " " << i;
    }
    for (const float g : gradients(trainer.session())) ASSERT_EQ(g, 0);
  }
  EXPECT_EQ(trainer.steps(), 3);
  EXPECT_EQ(trainer.apply().samples, 0) << "nothing has added up";
  EXPECT_EQ(trainer.steps(), 3);
}

TEST_P(Training, AnUpdateIsAdamWOnTheClippedMean) {
  expect_adamw(*device_, {.batch = 3, .length = 5, .lr = 0.01, .max_norm = 0.05});
  // AdamW forgets the scale of gradients, but for a large eps.
  expect_adamw(*device_, {.batch = 3, .length = 5, .lr = 0.01, .eps = 1e-3, .max_norm = 0});
}

TEST_P(Training, EveryStepIsWithinItsBound) {
  for (const bool multi_label : {false, true}) {
    ClassifierConfig c = small();
    c.multi_label = multi_label, c.class_weights = {1, 2, 0.5};
    c.model.adapters = {{Projection::q, Projection::v}, 2, 8};
    c.model.trains = multi_label;
    Trainer trainer(c, {.batch = 3, .length = 5}, *device_);
    initialize(trainer.session(), 7);
    trainer.accumulate(samples(2));
    const falsify::CheckedRun run = falsify::check_steps(trainer.session());
    EXPECT_FALSE(run.fault) << run.fault->label << " " << run.fault->finding.message;
    EXPECT_GT(run.elements, 500);
  }
}

INSTANTIATE_TEST_SUITE_P(On, Training, testing::ValuesIn(built_backends()), backend_name);

Trainer on_cpu(const ClassifierConfig& c = small(), TrainingOptions o = {.batch = 4, .length = 5, .lr = 0.01}) {
  return {c, o, device(Backend::cpu)};
}

TEST(TrainingStep, AFrozenBaseStaysAndEveryAdapterMoves) {
  ClassifierConfig c = small();
  c.model.trains = false, c.model.adapters = {{kProjections.begin(), kProjections.end()}, 2, 8};
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::nf4, WeightFormat::bf16}) {
    c.model.weights = format;
    Trainer trainer = on_cpu(c);
    initialize(trainer.session(), 7);
    std::map<std::string, std::vector<std::byte>> before;
    const auto bytes = [&](const Parameter& p) {
      std::vector<std::byte> all(static_cast<std::size_t>(trainer.session().program()[p.value].shape.size()) *
                                 size_of(trainer.session().program().storage_of(p.value).dtype));
      trainer.session().get(p.value, all);
      return all;
    };
    for (const Parameter& p : trainer.session().program().parameters) before[p.name] = bytes(p);
    for (int step = 0; step < 2; ++step) trainer.accumulate(samples(4)), trainer.apply();  // A moves once B is not zero
    for (const Parameter& p : trainer.session().program().parameters)
      EXPECT_EQ(bytes(p) == before[p.name], !p.trainable) << p.name;
  }
}

TEST(TrainingStep, ABaseInQ4KPassesNoGradientOn) {
  ClassifierConfig c = small();
  c.model.trains = false, c.model.adapters = {{Projection::q}, 2, 8}, c.model.weights = WeightFormat::q4_k;
  const std::string why = refusal([&] { on_cpu(c); });
  EXPECT_NE(why.find("(q4_k_matmul_nt), which has none: the contract names no call for it; "), why.npos) << why;
}

TEST(TrainingStep, AGradientThatIsNotFiniteSkipsTheStep) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  const std::vector<float> before = values(trainer.session());
  const Parameter& bias = parameter(trainer.session().program(), "classifier.bias");
  trainer.session().set(bias.value, std::vector<float>{0, std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_TRUE(std::isnan(trainer.accumulate(samples(4))[0].loss));
  const Update update = trainer.apply();
  EXPECT_TRUE(update.skipped);
  EXPECT_FALSE(std::isfinite(update.norm));
  EXPECT_EQ(trainer.skipped(), 1);
  EXPECT_EQ(trainer.steps(), 0);
  trainer.session().set(bias.value, std::vector<float>{0, 0, 0});
  EXPECT_EQ(values(trainer.session()), before);
  trainer.accumulate(samples(4));
  EXPECT_FALSE(trainer.apply().skipped) << "the gradients were cleared";
}

TEST(TrainingStep, ThePredictedClassIsTheFirstOfEqualsAndNoneOfNaN) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  set_parameter(trainer.session(), "classifier.weight", {small().model.hidden, 3},
                std::vector<float>(static_cast<std::size_t>(3 * small().model.hidden)));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<std::vector<float>, Index> all[] = {
      {{1, 2, 2}, 1}, {{2, 1, 2}, 0}, {{nan, 1, 2}, -1}, {{1, 2, nan}, -1}};
  for (const auto& [bias, label] : all) {
    set_parameter(trainer.session(), "classifier.bias", {3}, bias);
    EXPECT_EQ(trainer.evaluate(samples(1))[0].label, label) << bias[0] << " " << bias[1] << " " << bias[2];
  }
}

TEST(TrainingStep, AFailurePassesOutAndCountsNoStep) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  for (const std::string_view failing : {"gradients", "norm", "update"}) {
    trainer.set_runner([&](std::string_view name, Session& session) {
      if (name == failing) throw std::runtime_error("the device says " + std::string(failing));
      session.run();
    });
    try {
      trainer.accumulate(samples(2)), trainer.apply();
      ADD_FAILURE() << failing;
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "the device says " + std::string(failing));
    }
    EXPECT_EQ(trainer.steps() + trainer.skipped(), 0) << failing;
  }
}

TEST(TrainingStep, EvaluationLeavesGradientsAndParameters) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  const std::vector<Judgement> trained = trainer.accumulate(samples(4));
  const std::vector<float> sum = gradients(trainer.session()), before = values(trainer.session());
  const std::vector<Judgement> judged = trainer.evaluate(samples(9));
  ASSERT_EQ(judged.size(), 9u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(judged[i].logits, trained[i].logits);
    EXPECT_EQ(judged[i].loss, trained[i].loss);
  }
  EXPECT_EQ(gradients(trainer.session()), sum);
  EXPECT_EQ(values(trainer.session()), before);
}

TEST(TrainingStep, WhatFillsABatchHasNoGradient) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  std::vector<Sample> data = samples(2);
  for (Sample& s : data)
    for (std::int32_t& token : s.tokens) token = std::max(token, 1);
  trainer.accumulate(data);
  const std::vector<float> sum = gradients(trainer.session());  // the table of embeddings comes first
  const auto hidden = static_cast<std::ptrdiff_t>(small().model.hidden);
  const auto is_zero = [](float g) { return g == 0; };
  EXPECT_TRUE(std::all_of(sum.begin(), sum.begin() + hidden, is_zero)) << "of token 0, which only fillers have";
  EXPECT_FALSE(std::all_of(sum.begin() + hidden, sum.end(), is_zero));
}

TEST(TrainingStep, ComputingLayersAgainChangesNoBit) {
  ClassifierConfig c = small();
  c.model.layers = 3;
  const TrainingOptions kept{.batch = 4, .length = 5, .lr = 0.01};
  TrainingOptions again = kept;
  again.compute_again = true;
  Trainer keeping = on_cpu(c, kept), computing = on_cpu(c, again);
  EXPECT_LT(computing.session().plan().bytes, keeping.session().plan().bytes);
  for (Trainer* trainer : {&keeping, &computing}) {
    initialize(trainer->session(), 7);
    for (int step = 0; step < 3; ++step)
      trainer->accumulate(samples(4, static_cast<std::uint64_t>(step))), trainer->apply();
  }
  EXPECT_EQ(values(keeping.session()), values(computing.session()));
}

TEST(TrainingStep, ALearningRateOfZeroChangesTheMeansAlone) {
  Trainer trainer = on_cpu();
  initialize(trainer.session(), 7);
  trainer.set_lr(0);
  const std::vector<float> before = values(trainer.session());
  trainer.accumulate(samples(4)), trainer.apply();
  EXPECT_EQ(values(trainer.session()), before);
  EXPECT_NE(trainer.state().m, std::vector<float>(trainer.state().m.size(), 0.0F));
  trainer.set_lr(0.1);
  trainer.accumulate(samples(4)), trainer.apply();
  EXPECT_NE(values(trainer.session()), before);
}

TEST(TrainingStep, LearnsWhatCanBeLearned) {
  Trainer trainer = on_cpu(small(), {.batch = 16, .length = 5, .lr = 0.02});
  initialize(trainer.session(), 7);
  const std::vector<Sample> data = samples(256), held_out = samples(32, 2);
  for (int epoch = 0; epoch < 40; ++epoch)
    for (std::size_t at = 0; at < data.size(); at += 16)
      trainer.accumulate(std::span(data).subspan(at, 16)), trainer.apply();
  int right = 0;
  const std::vector<Judgement> judged = trainer.evaluate(held_out);
  for (std::size_t i = 0; i < held_out.size(); ++i) right += judged[i].label == held_out[i].label;
  EXPECT_GE(right, 30);
}

TEST(TrainingStep, GoesOnFromACheckpointWithTheSameBits) {
  const std::vector<Sample> data = samples(24);
  const auto train = [&](Trainer& trainer, std::size_t from) {
    for (std::size_t at = from; at < data.size(); at += 4)
      trainer.accumulate(std::span(data).subspan(at, 4)), trainer.apply();
    return trainer.state();
  };
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "assay_training_test.checkpoint";
  Trainer whole = on_cpu();
  initialize(whole.session(), 7);
  whole.accumulate(std::span(data).first(4)), whole.apply();
  write(file, {"{\"place\": 4}", whole.state(), {1, 2}});
  const TrainerState wanted = train(whole, 4);
  Trainer other = on_cpu();
  initialize(other.session(), 7);
  other.accumulate(std::span(data).last(4));  // what adds up is no part of a state, nor of the next one
  const Checkpoint read = read_checkpoint(file);
  EXPECT_EQ(read.run, "{\"place\": 4}");
  EXPECT_EQ(read.best, (std::vector<float>{1, 2}));
  other.set_state(read.trainer);
  const TrainerState got = train(other, 4);
  EXPECT_EQ(got.parameters, wanted.parameters);
  EXPECT_EQ(got.m, wanted.m);
  EXPECT_EQ(got.v, wanted.v);
  EXPECT_EQ(got.steps, 6);
  std::string bytes = files::read(file, "");
  const std::size_t middle = bytes.size() / 2;
  bytes[middle] = static_cast<char>(bytes[middle] ^ 1);
  files::write(file, bytes);
  EXPECT_EQ(refusal([&] { read_checkpoint(file); }),
            file.string() + ": is damaged: its digest is another one; take another checkpoint");
  files::write(file, bytes.substr(0, middle));
  EXPECT_EQ(refusal([&] { read_checkpoint(file); }),
            file.string() + ": is damaged: its digest is another one; take another checkpoint");
  files::write(file, "{}\n");
  EXPECT_EQ(refusal([&] { read_checkpoint(file); }),
            file.string() + ": is no checkpoint of this program; take another checkpoint");
  std::filesystem::remove(file);
  TrainerState short_by_one = wanted;
  short_by_one.m.pop_back();
  EXPECT_TRUE(refusal([&] { other.set_state(short_by_one); }).ends_with("take a state of the same model"));
}

TEST(TrainingStep, NormsAndHeadTrainAsConfigured) {
  for (const bool norms : {false, true})
    for (const bool head : {false, true}) {
      ClassifierConfig c = small();
      c.model.trains = false, c.model.adapters = {{Projection::q}, 2, 8};
      if (norms) c.model.trained.emplace_back("*norm.weight");
      if (!head) c.model.trained.erase(c.model.trained.begin());
      Trainer trainer = on_cpu(c);
      initialize(trainer.session(), 7);
      trainer.accumulate(samples(4)), trainer.apply();
      for (const Parameter& p : trainer.session().program().parameters) {
        const bool trains = p.name.find("lora_") != std::string::npos || (norms && p.name.ends_with("norm.weight")) ||
                            (head && p.name.starts_with("classifier."));
        EXPECT_EQ(p.trainable, trains) << p.name;
        if (!trains || p.name.ends_with("lora_A.weight")) continue;  // A has no gradient while B is zero
        EXPECT_NE(trainer.session().get<float>(p.value), initial_values(p.name, p.shape, 7)) << p.name;
      }
    }
}

TEST(TrainingStep, BiasesOfAFrozenBaseTrainByName) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::nf4, WeightFormat::f16})
    for (const bool adapted : {false, true}) {
      ClassifierConfig c = small();
      c.model.trains = false, c.model.weights = format, c.model.trained = {"*.bias"};
      c.model.biases = {kProjections.begin(), kProjections.end()};
      if (adapted) c.model.adapters = {{Projection::q, Projection::v}, 2, 8};
      Trainer trainer = on_cpu(c);
      initialize(trainer.session(), 7);
      trainer.accumulate(samples(4)), trainer.apply();
      int moved = 0;
      for (const Parameter& p : trainer.session().program().parameters) {
        const bool bias = p.name.ends_with(".bias"), adapter = p.name.find("lora_") != std::string::npos;
        EXPECT_EQ(p.trainable, bias || adapter) << p.name;
        if (!bias) continue;
        EXPECT_NE(trainer.session().get<float>(p.value), initial_values(p.name, p.shape, 7)) << p.name;
        ++moved;
      }
      EXPECT_EQ(moved, 8) << "of every projection and of the head";
      c.model.trained.emplace_back("score.*");
      EXPECT_EQ(refusal([&] { on_cpu(c); }).substr(0, 63),
                "transformer: trained: 'score.*' names no parameter of the model");
    }
}

TEST(TrainingStep, RefusesWhatDoesNotExist) {
  Trainer trainer = on_cpu();
  const auto with = [&](const std::function<void(Sample&)>& change) {
    std::vector<Sample> all = samples(2);
    change(all[1]);
    return refusal([&] { trainer.accumulate(all); });
  };
  EXPECT_EQ(with([](Sample& s) { s.label = 3; }), "sample 1: label 3 of 3 classes; count classes from 0");
  EXPECT_EQ(with([](Sample& s) { s.label = -1; }), "sample 1: label -1 of 3 classes; count classes from 0");
  EXPECT_EQ(with([](Sample& s) { s.tokens.clear(); }), "sample 1: it has 0 tokens; give 1 to 5");
  EXPECT_EQ(with([](Sample& s) { s.tokens.resize(6, 1); }), "sample 1: it has 6 tokens; give 1 to 5");
  EXPECT_EQ(with([](Sample& s) { s.tokens[0] = 11; }),
            "sample 1: token 11 is beyond the vocabulary of 11; tokenize with the model's own tokenizer");
  EXPECT_EQ(refusal([&] { trainer.accumulate(samples(5)); }),
            "batch: 5 samples, and a run takes 4; add them up in several runs");
  EXPECT_EQ(trainer.apply().samples, 0);
  ClassifierConfig c = small();
  c.multi_label = true;
  Trainer several = on_cpu(c);
  std::vector<Sample> all = samples(1);
  all[0].labels.pop_back();
  EXPECT_EQ(refusal([&] { several.accumulate(all); }), "sample 0: 2 labels for 3 classes; give 0 or 1 for each class");
  c.class_weights = {1, 2};
  EXPECT_EQ(refusal([&] { on_cpu(c); }), "class weights: 2 for 3 classes; give one for each");
}

}  // namespace
}  // namespace assay::program::training_test
