// Training on several ranks: the same bits on all, those of one trainer where each has one run, and within derived
// bounds of it elsewhere. Ranks are threads here; tests/program/ranks_test.py has those of MPI.
#include "program/model/ranks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/program/step.hpp"
#include "falsify/program/system.hpp"
#include "program/model/parameters.hpp"
#include "refusal.hpp"

namespace assay::program::ranks_test {
namespace {

using falsify::BlockCase;
using Shards = std::vector<falsify::MicroBatches>;  ///< the runs of each rank

/// State that all threads share.
struct Shared {
  explicit Shared(int ranks) : barrier(ranks), texts(static_cast<std::size_t>(ranks)), vectors(texts.size()) {}
  std::barrier<> barrier;
  std::vector<std::string> texts;
  std::vector<std::vector<float>> vectors;
};

/// A rank that is a thread.
class Thread : public Ranks {
 public:
  Thread(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_.texts.size()); }
  int local_rank() const override { return rank_; }
  std::vector<std::string> exchange(const std::string& mine) override {
    shared_.texts[static_cast<std::size_t>(rank_)] = mine;
    shared_.barrier.arrive_and_wait();
    std::vector<std::string> all = shared_.texts;
    shared_.barrier.arrive_and_wait();
    return all;
  }
  void all_reduce(std::span<float> sums) override {
    shared_.vectors[static_cast<std::size_t>(rank_)].assign(sums.begin(), sums.end());
    shared_.barrier.arrive_and_wait();
    sum(sums, shared_.vectors);
    shared_.barrier.arrive_and_wait();
  }
  virtual void sum(std::span<float> to, const std::vector<std::vector<float>>& of_ranks) {
    std::vector<float> parts;
    for (const std::vector<float>& part : of_ranks) parts.insert(parts.end(), part.begin(), part.end());
    add_parts(to, parts.data(), of_ranks.size());
  }

 protected:
  Shared& shared_;
  int rank_;
};

/// One whose device is linked with those of the others: the host's memory, here.
class Linked : public Thread, public DeviceLink {
 public:
  using Thread::Thread;
  void all_reduce(std::span<float>) override { throw std::logic_error("the host adds nothing up"); }
  void all_to_all(std::span<const float> vector, float* parts, std::size_t piece) override {
    shared_.vectors[static_cast<std::size_t>(rank_)].assign(vector.begin(), vector.end());
    shared_.barrier.arrive_and_wait();
    const std::size_t own = piece_of(vector.size(), piece, static_cast<std::size_t>(rank_));
    for (std::size_t r = 0; r < shared_.vectors.size(); ++r)
      std::copy_n(shared_.vectors[r].begin() + rank_ * static_cast<std::ptrdiff_t>(piece), own, parts + r * piece);
    shared_.barrier.arrive_and_wait();
  }
  void all_gather(const float* own, std::span<float> vector, std::size_t piece) override {
    shared_.vectors[static_cast<std::size_t>(rank_)].assign(
        own, own + piece_of(vector.size(), piece, static_cast<std::size_t>(rank_)));
    shared_.barrier.arrive_and_wait();
    for (std::size_t r = 0; r < shared_.vectors.size(); ++r)
      std::ranges::copy(shared_.vectors[r], vector.begin() + static_cast<std::ptrdiff_t>(r * piece));
    shared_.barrier.arrive_and_wait();
  }
};

/// A step of which everything matters: an adapter on every projection, clipping, class weights.
BlockCase small_case() {
  BlockCase c =
      block_of(*falsify::find_system("training_step"), falsify::everything(*falsify::find_system("training_step")));
  c.step.micro_batches = 4, c.batch = 3;
  return c;
}

void set_all(Trainer& trainer, const BlockCase& c) {
  for_each_set_by_host(trainer.session().program(), [&](Value v) {
    if (trainer.session().program().storage_of(v).kind == Kind::parameter)
      falsify::set(trainer.session(), v, numbers_of(c, trainer.session().program(), v));
  });
  const falsify::Means means = means_of(c, step_program(c));
  TrainerState state = trainer.state();
  state.m.assign(means.m.begin(), means.m.end()), state.v.assign(means.v.begin(), means.v.end());
  state.steps = c.step.steps;
  trainer.set_state(state);
}

struct After {
  TrainerState state;
  double norm = 0;
};
using MakeRank = std::function<std::unique_ptr<Ranks>(Shared&, int)>;
/// A change of what a rank does, between its runs and the sum.
using Between = std::function<void(int rank, Trainer& trainer)>;

std::vector<After> after_a_step(const BlockCase& c, const Shards& shards, const MakeRank& make,
                                const Between& between) {
  Shared shared(static_cast<int>(shards.size()));
  std::vector<After> all(shards.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < shards.size(); ++r)
      threads.emplace_back([&, r] {
        Trainer trainer(classifier_of(c), options_of(c), device(Backend::cpu));
        set_all(trainer, c);
        const std::unique_ptr<Ranks> ranks = make(shared, static_cast<int>(r));
        for (const auto& run : shards[r]) trainer.accumulate(run);
        if (between) between(static_cast<int>(r), trainer);
        AllReduce(*ranks, trainer, dynamic_cast<DeviceLink*>(ranks.get()))();
        const Update update = trainer.apply();
        all[r] = {trainer.state(), update.norm};
      });
  }
  return all;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
bool same(const After& a, const After& b) {
  return same_bits(a.state.parameters, b.state.parameters) && same_bits(a.state.m, b.state.m) &&
         same_bits(a.state.v, b.state.v) && a.norm == b.norm && a.state.steps == b.state.steps;
}

/// The bound of a step whose runs are added up rank by rank: the programs in float32, with a bound for each number.
struct Bounds {
  std::vector<Bounded> parameters, m, v;
  Bounded norm;
};
std::vector<Arithmetic> arithmetic_of(const BlockCase& c) {
  Trainer trainer(classifier_of(c), options_of(c), device(Backend::cpu));
  std::map<std::string, std::vector<Arithmetic>> of_programs;
  trainer.set_runner([&](std::string_view program, Session& session) {
    std::vector<Arithmetic>& all = of_programs[std::string(program)];
    for (std::size_t s = 0; s < session.program().steps.size(); ++s) all.push_back(session.kernel(s).arithmetic);
    session.run();
  });
  set_all(trainer, c);
  trainer.accumulate(falsify::samples_of(c, 0)[0]), trainer.apply();
  std::vector<Arithmetic> all;
  for (const char* program : {"gradients", "norm", "update"})
    all.insert(all.end(), of_programs[program].begin(), of_programs[program].end());
  return all;
}
Bounds bounds_of(const BlockCase& c, const Shards& shards) {
  const std::vector<Arithmetic> arithmetic = arithmetic_of(c);
  const falsify::StepProgram right = falsify::step_program(c);
  const falsify::ProgramMutant own{{}, "", right.program, plan(right.program)};
  std::vector<std::unique_ptr<falsify::StepExecution<Bounded>>> ranks;
  Index samples = 0;
  for (const auto& runs : shards) {
    ranks.push_back(std::make_unique<falsify::StepExecution<Bounded>>(own, right, c, Bounded(std::nan(""))));
    ranks.back()->arithmetic = arithmetic;
    for (const auto& run : runs) ranks.back()->accumulate(run), samples += std::ssize(run);
  }
  std::vector<Bounded> sum = falsify::read(ranks[0]->memory[right.of.sums]);
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const std::vector<Bounded> more = falsify::read(ranks[r]->memory[right.of.sums]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + more[i];
  }
  std::ranges::copy(sum, ranks[0]->memory[right.of.sums].data());
  ranks[0]->count(samples);
  Bounds bounds;
  bounds.norm = ranks[0]->apply();
  bounds.parameters = falsify::read(ranks[0]->memory[right.of.parameters]);
  bounds.m = falsify::read(ranks[0]->memory[right.of.m]), bounds.v = falsify::read(ranks[0]->memory[right.of.v]);
  return bounds;
}

/// Returns the first fault of ranks after a step, or nothing. `one` is the step of a trainer that is alone.
std::string fault(const std::vector<After>& ranks, const After& one, const Bounds& bounds, bool with_its_bits) {
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (!same(ranks[r], ranks[0])) return fmt::format("rank {} has other bits than rank 0", r);
  if (with_its_bits) return same(ranks[0], one) ? "" : "ranks have other bits than one trainer";
  if (!(std::fabs(ranks[0].norm - bounds.norm.value) <= bounds.norm.error))
    return fmt::format("the norm is {:.9g}, and {:.9g} is wanted", ranks[0].norm, bounds.norm.value);
  for (const auto& [name, got, want] : {std::tuple{"parameter", &ranks[0].state.parameters, &bounds.parameters},
                                        {"m", &ranks[0].state.m, &bounds.m},
                                        {"v", &ranks[0].state.v, &bounds.v}})
    for (std::size_t i = 0; i < got->size(); ++i) {
      const double error = std::fabs((*got)[i] - (*want)[i].value);
      if (!std::isnan((*want)[i].value) && !(error <= (*want)[i].error)) return fmt::format("{} {} is wrong", name, i);
    }
  return "";
}

struct Split {
  std::string name;
  std::vector<int> of_runs;  ///< how many runs each rank has
  bool with_its_bits;        ///< one run a rank: the sum is made in the order of one trainer
};
const Split kSplits[] = {{"even", {1, 1, 1, 1}, true},
                         {"two ranks", {2, 2}, false},
                         {"uneven", {3, 1}, false},
                         {"empty", {1, 0, 1, 2, 0}, false},
                         {"empty ones alone", {0, 1, 1, 1, 1, 0}, true}};
Shards shards_of(const BlockCase& c, const Split& split) {
  const falsify::MicroBatches all = falsify::samples_of(c, 0);
  Shards shards;
  std::size_t at = 0;
  for (const int runs : split.of_runs) {
    shards.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                        all.begin() + static_cast<std::ptrdiff_t>(at) + runs);
    at += static_cast<std::size_t>(runs);
  }
  return shards;
}

std::string fault_of(const Split& split, const MakeRank& make, const Between& between = {}) {
  const BlockCase c = small_case();
  const Shards shards = shards_of(c, split);
  const After one = after_a_step(c, {falsify::samples_of(c, 0)},
                                 [](Shared& s, int r) { return std::make_unique<Thread>(s, r); }, {})[0];
  return fault(after_a_step(c, shards, make, between), one, bounds_of(c, shards), split.with_its_bits);
}

template <class T>
MakeRank made() {
  return [](Shared& shared, int rank) { return std::make_unique<T>(shared, rank); };
}

TEST(Ranks, HaveTheSameBitsAndThoseOfOneTrainerOrItsBound) {
  for (const Split& split : kSplits) {
    EXPECT_EQ(fault_of(split, made<Thread>()), "") << split.name;
    EXPECT_EQ(fault_of(split, made<Linked>()), "") << split.name << ", linked";
  }
}

/// The mean over ranks of sums, which the trainer divides by all samples once more.
struct Mean : Thread {
  using Thread::Thread;
  void sum(std::span<float> to, const std::vector<std::vector<float>>& of_ranks) override {
    Thread::sum(to, of_ranks);
    for (float& x : to) x /= static_cast<float>(of_ranks.size());
  }
};
/// Each rank adds up in an order of its own.
struct OwnFirst : Thread {
  using Thread::Thread;
  void sum(std::span<float> to, const std::vector<std::vector<float>>& of_ranks) override {
    std::vector<std::vector<float>> others = of_ranks;
    std::rotate(others.begin(), others.begin() + rank_, others.end());
    Thread::sum(to, others);
  }
};
struct LastLeftOut : Thread {
  using Thread::Thread;
  void sum(std::span<float> to, const std::vector<std::vector<float>>& of_ranks) override {
    Thread::sum(to, {of_ranks.begin(), of_ranks.end() - 1});
  }
};
/// The number of samples of each rank, counted as one and the same: a mean of the ranks' means.
struct MeanOfMeans : Thread {
  using Thread::Thread;
  std::vector<std::string> exchange(const std::string& mine) override {
    std::vector<std::string> all = Thread::exchange(mine);
    for (std::string& text : all) text = text.substr(0, text.find(' ')) + " 1";
    return all;
  }
};

TEST(Ranks, FaultsAreFound) {
  const Split uneven = kSplits[2], even = kSplits[0];
  EXPECT_NE(fault_of(uneven, made<Mean>()), "") << "a mean for a sum";
  EXPECT_NE(fault_of(even, made<OwnFirst>()), "") << "each rank in its own order";
  EXPECT_NE(fault_of(uneven, made<LastLeftOut>()), "") << "a rank that is skipped";
  EXPECT_NE(fault_of(even, made<LastLeftOut>()), "") << "a rank that is skipped";
  EXPECT_NE(fault_of(uneven, made<MeanOfMeans>()), "") << "a mean over ranks, not over samples";
  const auto left_out = [](int rank, Trainer& trainer) {  // of one tensor, on one rank
    if (rank != 1) return;
    Gradients g = trainer.gradients();
    const Program& p = trainer.session().program();
    for (const Parameter& parameter : p.parameters)
      if (parameter.name == "classifier.bias")
        std::fill_n(g.sums.begin() + p[parameter.value].offset, parameter.shape.size(), 0.0F);
    trainer.set_gradients(g);
  };
  EXPECT_NE(fault_of(uneven, made<Thread>(), left_out), "") << "the gradient of a tensor, on one rank";
  EXPECT_NE(fault_of(even, made<Thread>(), left_out), "") << "the gradient of a tensor, on one rank";
  const auto counted_by_the_first = [](int rank, Trainer& trainer) {
    if (rank != 0) trainer.set_samples(0);
  };
  EXPECT_NE(fault_of(uneven, made<Thread>(), counted_by_the_first), "") << "the samples of rank 0 alone";
}

TEST(Ranks, RefuseGradientsOfAnotherLengthBeforeAnythingChanges) {
  const BlockCase c = small_case();
  Shared shared(2);
  std::vector<std::string> said(2);
  std::vector<bool> stays(2);
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < 2; ++r)
      threads.emplace_back([&, r] {
        falsify::BlockCase own = c;
        if (r == 1) own.config.layers += 1;
        Trainer trainer(classifier_of(own), options_of(own), device(Backend::cpu));
        initialize(trainer.session(), 7);
        trainer.accumulate(falsify::samples_of(own, 0)[0]);
        const Gradients before = trainer.gradients();
        Thread rank(shared, r);
        said[static_cast<std::size_t>(r)] = refusal([&] { AllReduce(rank, trainer)(); });
        stays[static_cast<std::size_t>(r)] =
            same_bits(trainer.gradients().sums, before.sums) && trainer.gradients().samples == before.samples;
      });
  }
  EXPECT_TRUE(said[0].starts_with("rank 1: its gradients have ")) << said[0];
  EXPECT_EQ(said[0], said[1]);
  EXPECT_TRUE(stays[0] && stays[1]);
  Trainer trainer(classifier_of(c), options_of(c), device(Backend::cpu));
  initialize(trainer.session(), 7);
  trainer.accumulate(falsify::samples_of(c, 0)[0]);
  const Gradients before = trainer.gradients();
  Gradients shorter = before;
  shorter.sums.pop_back();
  EXPECT_TRUE(refusal([&] { trainer.set_gradients(shorter); }).ends_with("take gradients of the same model"));
  EXPECT_TRUE(same_bits(trainer.gradients().sums, before.sums));
}

}  // namespace
}  // namespace assay::program::ranks_test
