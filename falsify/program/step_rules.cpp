#include "falsify/program/step_rules.hpp"

#include <cmath>
#include <limits>

namespace assay::falsify {
namespace {

using Numbers = std::vector<double>;

// Every rule has one configuration and samples of its own choice: without padding, where its project's test has none.
constexpr StepRule kRules[] = {
    {.name = "llm.c",
     .compares = "10 losses to 1e-2, the first step's logits and gradients to 2e-2",
     .source = "karpathy/llm.c, test_gpt2.c",
     .steps = 10,
     .losses = {1e-2},
     .logits = {2e-2},
     .gradients = {2e-2}},
    {.name = "TransformerEngine",
     .compares = "output to 5e-3, gradients to 5e-2 + 1e-2 |want|",
     .source = "NVIDIA/TransformerEngine, tests/pytorch/test_numerics.py",
     .updates = false,
     .logits = {5e-3},
     .gradients = {5e-2, 1e-2}},
    {.name = "Liger",
     .compares = "32 losses to 1e-5 |want|, log-probabilities and parameters to 5e-3, under one optimizer",
     .source = "linkedin/Liger-Kernel, test/convergence/fp32",
     .updates = false,
     .steps = 32,
     .losses = {1e-8, 1e-5},
     .logits = {5e-3, 1e-5},
     .parameters = {5e-3, 1e-5}},
    {.name = "torchtune",
     .compares = "4 losses to 1e-4, of one batch and of its micro-batches",
     .source = "pytorch/torchtune, tests/recipes",
     .accumulates = true,
     .steps = 4,
     .losses = {1e-4, 1e-4}},
    {.name = "axolotl",
     .compares = "the loss falls by 5 % in 50 steps",
     .source = "axolotl-ai-cloud/axolotl, tests/e2e",
     .falls = true,
     .real_lengths = true,
     .steps = 50},
    {.name = "ggml",
     .compares = "normalized mean square error of the output to 2e-3",
     .source = "ggml-org/llama.cpp, tests/test-backend-ops.cpp, test_llama (disabled there)",
     .updates = false,
     .forward = true},
};

/// Samples of the first run alone, or of all runs; of the full length where the test pads nothing.
MicroBatches samples_for(const BlockCase& c, const StepRule& rule) {
  MicroBatches all = samples_of(c, 0);
  if (!rule.accumulates) all.resize(1);
  for (auto& batch : all)
    for (program::Sample& s : batch)
      for (std::size_t i = 0; !rule.real_lengths && std::ssize(s.tokens) < c.s; ++i) s.tokens.push_back(s.tokens[i]);
  return all;
}

bool within(const Numbers& got, const Numbers& want, const StepRule::Tolerance& tolerance) {
  if (tolerance.absolute < 0) return true;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= tolerance.absolute + tolerance.relative * std::fabs(want[i]))) return false;
  return true;
}

}  // namespace

std::span<const StepRule> step_rules() { return kRules; }

struct StepRules::Results {
  Numbers losses, logits, gradients, parameters;
};

StepRules::StepRules(const BlockCase& c) : c_(c), right_(step_program(c)) {
  const ProgramMutant own{{}, "", right_.program, program::plan(right_.program)};
  for (const StepRule& rule : kRules) wanted_.push_back(run(rule, own));
}
StepRules::~StepRules() = default;

StepRules::Results StepRules::run(const StepRule& rule, const ProgramMutant& mutant) const {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  StepExecution<double> execution(mutant, right_, c_, poison);
  // Both sides of a comparison have the same optimizer: what the mutant does behind its gradients is not seen.
  const ProgramMutant own{{}, "", right_.program, program::plan(right_.program)};
  StepExecution<double> update(own, right_, c_, poison);
  const MicroBatches samples = samples_for(c_, rule);
  Results results;
  for (int step = 0; step < rule.steps; ++step) {
    double sum = 0;
    Index count = 0;
    for (const auto& batch : samples) {
      execution.accumulate(batch);
      const Numbers losses = read(execution.memory[right_.of.loss]);
      for (std::size_t i = 0; i < batch.size(); ++i) sum += losses[i];
      count += std::ssize(batch);
    }
    results.losses.push_back(sum / static_cast<double>(count));
    if (step == 0) results.gradients = read(execution.memory[right_.of.sums]);
    results.logits = read(execution.memory[right_.of.logits]);
    results.logits.resize(samples.back().size() * static_cast<std::size_t>(c_.classes));
    if (rule.steps == 1) continue;
    if (rule.updates) {
      execution.apply();
    } else {
      write(update.memory[right_.of.sums], read(execution.memory[right_.of.sums]));
      update.count(count), update.apply();
      write(execution.memory[right_.of.parameters], read(update.memory[right_.of.parameters]));
    }
    execution.clear();
  }
  results.parameters = read(execution.memory[right_.of.parameters]);
  for (double& g : results.gradients)  // of a sum over the output, or of the mean loss
    if (rule.updates) g /= static_cast<double>(samples.size() * samples[0].size());
  return results;
}

std::vector<bool> StepRules::accept(const ProgramMutant& mutant) const {
  std::vector<bool> all;
  for (std::size_t r = 0; r < std::size(kRules); ++r) {
    const StepRule& rule = kRules[r];
    const Results& want = wanted_[r];
    const Results got = run(rule, mutant);
    if (rule.falls) {
      all.push_back(got.losses.back() <= 0.95 * got.losses.front());
      continue;
    }
    if (rule.forward) {
      double error = 0, squares = 0;
      for (std::size_t i = 0; i < want.logits.size(); ++i)
        error += std::pow(got.logits[i] - want.logits[i], 2), squares += std::pow(want.logits[i], 2);
      all.push_back(error / squares <= 2e-3);
      continue;
    }
    all.push_back(within(got.losses, want.losses, rule.losses) && within(got.logits, want.logits, rule.logits) &&
                  within(got.gradients, want.gradients, rule.gradients) &&
                  within(got.parameters, want.parameters, rule.parameters));
  }
  return all;
}

}  // namespace assay::falsify
