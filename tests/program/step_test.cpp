// A training step as a system: what each obligation fails for, its mutants and its named faults.
#include "falsify/program/step.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.hpp"
#include "falsify/program/block_edit.hpp"
#include "falsify/program/block_faults.hpp"
#include "falsify/program/step_rules.hpp"
#include "falsify/program/system.hpp"
#include "falsify/program/traced.hpp"
#include "on_device.hpp"

namespace assay::program::step_test {
namespace {

using falsify::BlockEdit;
using falsify::Outcome;
using falsify::ProgramMutant;
using falsify::System;
using falsify::SystemKernel;
using falsify::Wiring;
using Alter = std::function<void(Program&)>;

const System& step() { return *falsify::find_system("training_step"); }

/// A step as in mutated_cases(), by name.
falsify::Case case_of(std::string_view name) {
  for (const auto& [of, c] : mutated_cases(step()))
    if (of == name) return c;
  throw std::out_of_range(std::string(name));
}

Outcome outcome(std::string_view obligation, const Alter& alter = {}, std::string_view kernel = {},
                Backend backend = Backend::cpu) {
  const Kernel* const of_steps = kernel.empty() ? nullptr : &assay::kernel(kernel);
  return run_case(SystemKernel(step(), backend, of_steps), obligation, case_of(""), alter);
}

bool has(const Program& p, std::string_view op) {
  return std::ranges::any_of(p.steps, [&](const Step& s) { return s.op->name == op; });
}
/// Multiplies a parameter of the last step of an operation.
Alter last(std::string_view op, std::string_view param, double factor) {
  return [=](Program& p) {
    for (std::size_t s = p.steps.size(); s-- > 0;)
      for (std::size_t i = 0; i < p.steps[s].params.size(); ++i)
        if (p.steps[s].op->name == op && p.steps[s].op->params[i].name == param) {
          p.steps[s].params[i] *= factor;
          return;
        }
  };
}
/// Alters programs for which this holds.
Alter where(const std::function<bool(const Program&)>& holds, const Alter& alter) {
  return [=](Program& p) {
    if (holds(p)) alter(p);
  };
}
std::function<bool(const Program&)> of_shape(int axis, Index extent) {  // of the queries: samples, places
  return [=](const Program& p) {
    return std::ranges::any_of(
        p.steps, [&](const Step& s) { return s.op->name == "attention" && p[s.tensors[0]].shape[axis] == extent; });
  };
}
Alter without(std::string_view op) {
  return [=](Program& p) { std::erase_if(p.steps, [&](const Step& s) { return s.op->name == op; }); };
}
/// Plants a fault by its words.
Alter planted(std::string_view words) {
  return [=](Program& p) {
    for (const falsify::BlockFault& fault : falsify::step_faults())
      if (fault.words == words) p = plant(fault, p).program;
  };
}

TEST(StepObligations, FailForWhatTheyAreFor) {
  const Alter scaled = last("attention", "scale", 2);
  const Alter unlike_padding = [](Program& p) {  // an upstream gradient that is no sample's
    for (Step& s : p.steps)
      if (s.op->name == "cross_entropy_backward")
        for (std::size_t t = 0; t < s.tensors.size(); ++t)
          if (s.op->tensors[t].name == "dloss") {
            const auto weights = std::ranges::find(p.values, "class weights", &ValueInfo::name);
            ValueInfo view = *weights;
            view.shape = p[s.tensors[t]].shape;
            p.values.push_back(view);
            s.tensors[t] = {static_cast<std::int32_t>(p.values.size()) - 1};
          }
  };
  const Alter other_means = [](Program& p) {
    for (Step& s : p.steps)
      if (s.op->name == "adamw_step") {
        p.storages.push_back({"another m", Kind::state, DType::f32, p[s.tensors[1]].shape.size()});
        ValueInfo view = p[s.tensors[1]];
        view.storage = static_cast<std::int32_t>(p.storages.size()) - 1;
        view.base = s.tensors[1] = {static_cast<std::int32_t>(p.values.size())};
        p.values.push_back(view);
      }
  };
  const auto rename = [](std::string_view name, Kind from, Kind to, std::string_view renamed) -> Alter {
    return [=](Program& p) {
      for (Storage& s : p.storages)
        if (s.name == name && s.kind == from) s.kind = to, s.name = renamed;
    };
  };
  const std::pair<std::string_view, Alter> all[] = {
      {"FALSIFY-SYS-002", scaled},
      {"FALSIFY-SYS-003", last("attention_backward", "scale", 2)},
      {"FALSIFY-SYS-020", last("clip_grad_norm", "max_norm", 2)},
      {"FALSIFY-SYS-020", planted("the reported norm is of a part of the parameters")},
      {"FALSIFY-SYS-004", last("adamw_step", "lr", 2)},
      {"FALSIFY-SYS-005", without("adamw_step")},
      {"FALSIFY-SYS-006", where(of_shape(1, 4), scaled)},
      {"FALSIFY-SYS-021", where(of_shape(0, 3), scaled)},
      {"FALSIFY-SYS-022", unlike_padding},
      {"FALSIFY-SYS-023", planted("the gradient is clipped before its mean is taken")},
      {"FALSIFY-SYS-024", where(
                              [](const Program& p) {
                                return std::ranges::count(p.steps, "attention",
                                                          [](const Step& s) { return s.op->name; }) > 2;
                              },
                              scaled)},
      {"FALSIFY-SYS-025", other_means},
      {"FALSIFY-SYS-026", without("global_grad_norm")},
      {"F-CLASS-001", where([](const Program& p) { return !has(p, "mean_pool_backward"); }, scaled)},
      {"F-CLASS-005", last("rmsnorm", "eps", -1e9)},
      {"C-NF4BATCH-001", rename("gradients of parameters", Kind::gradient, Kind::state, "gradients of parameters")},
      {"C-SYNCWT-001", rename("parameters", Kind::state, Kind::state, "a copy of the parameters")},
  };
  for (const auto& [obligation, alter] : all) {
    const Outcome right = outcome(obligation), wrong = outcome(obligation, alter);
    EXPECT_EQ(right.kind, Outcome::Kind::passed)
        << obligation << (right.finding ? right.finding->message : right.reason);
    EXPECT_GT(right.elements, 0) << obligation;
    EXPECT_EQ(wrong.kind, Outcome::Kind::falsified) << obligation;
  }
}

/// Plants a change in the programs of every trainer behind the first.
Alter later(const Alter& alter) {
  return [alter, trainers = std::make_shared<int>(0)](Program& p) {
    const bool gradients = has(p, "mean_pool_backward");
    *trainers += gradients;
    if (*trainers > 1) alter(p);
  };
}
/// Gives a value the place of another one.
Alter moved(std::string_view name, std::string_view to) {
  return [=](Program& p) {
    const auto found = std::ranges::find(p.values, name, &ValueInfo::name),
               other = std::ranges::find(p.values, to, &ValueInfo::name);
    if (found != p.values.end() && other != p.values.end())
      found->storage = other->storage, found->offset = other->offset;
  };
}

/// Ids of the seed's CUDA trainer.
TEST(StepObligations, OfTheDeviceFailForWhatTheyAreFor) {
  const std::string second = "model.layers.1.";
  const Alter larger = [](Program& p) { p.storages.push_back({"more", Kind::state, DType::f32, 64}); };
  const Alter of_layer = [=](Program& p) {
    std::erase_if(p.parameters, [&](const Parameter& q) { return q.name == second + "mlp.up_proj.weight"; });
  };
  const Alter skipped = [=](Program& p) {
    std::erase_if(p.steps, [&](const Step& s) { return s.label.starts_with(second + "mlp."); });
  };
  const Alter exchanged = [=](Program& p) {
    const auto of = [&](const char* layer) {
      return std::ranges::find_if(p.steps, [=](const Step& s) { return s.label.starts_with(layer); });
    };
    if (of("model.layers.1.") != p.steps.end()) std::swap(*of("model.layers.0."), *of("model.layers.1."));
  };
  const Alter writes = where([](const Program& p) { return has(p, "mean_pool") && !has(p, "mean_pool_backward"); },
                             [](Program& p) {
                               ProgramMutant m{{}, "", p, {}};
                               BlockEdit e(m);
                               const Value weight = e.row(e.parameter("model.norm.weight"));
                               e.insert(0, BlockEdit::sum(weight, weight, 1));
                               p = m.program;
                             });
  const Alter renamed = [](Program& p) {
    for (Parameter& q : p.parameters)
      if (q.name.ends_with("v_proj.lora_B.weight")) q.name.replace(q.name.size() - 13, 13, "lora_C.weight");
  };
  const std::tuple<std::string_view, Alter, std::string_view> all[] = {
      {"F-CUDA-003", later(last("adamw_step", "lr", 2)), ""},
      {"F-CUDA-005", moved("model.layers.1.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.weight"), ""},
      {"F-CUDA-006", of_layer, ""},
      {"F-CUDA-007", moved("lengths", "targets"), ""},
      {"F-CUDA-008", skipped, ""},
      {"F-CUDA-008", exchanged, ""},
      {"F-CUDA-009", writes, ""},
      {"F-CUDA-014", later(last("adamw_step", "lr", 2)), ""},
      {"C-NF4LORA-INIT-001", renamed, "nf4"},
      {"C-GPUOPT-001", without("adamw_step"), ""},
      {"C-NF4BACK-001",
       where([](const Program& p) { return has(p, "nf4_matmul"); }, last("attention_backward", "scale", 2)), "nf4"},
      {"C-QLORA-CKPT-001", later(last("attention", "scale", 2)), "nf4"},
      {"C-VRAM-001", later(larger), ""},
      {"C-GPUTRAINIT-002", larger, ""},
  };
  for (const auto& [obligation, alter, of] : all) {
    const SystemKernel on(step(), Backend::cpu);
    const Outcome right = run_case(on, obligation, case_of(of));
    EXPECT_EQ(right.kind, Outcome::Kind::passed)
        << obligation << (right.finding ? right.finding->message : right.reason);
    EXPECT_GT(right.elements, 0) << obligation;
    EXPECT_EQ(run_case(on, obligation, case_of(of), alter).kind, Outcome::Kind::falsified) << obligation;
  }
}

class Steps : public OnDevice {};

TEST_P(Steps, OfEveryProgramAreChecked) {
  const std::string back_end(name(GetParam()));
  int found = 0;
  for (const std::string_view op : {"adamw_step", "clip_grad_norm", "mean_pool_backward"})
    for (const Kernel& k : kernels())
      if (k.op == op && k.id.starts_with("mutant/" + back_end) && k.backend == GetParam()) {
        const Outcome wrong = outcome("FALSIFY-SYS-001", {}, k.id, GetParam());
        if (!wrong.finding) continue;
        EXPECT_NE(wrong.finding->message.find(op), std::string::npos) << k.id << " " << wrong.finding->message;
        ++found;
        break;
      }
  EXPECT_EQ(found, 3);
}

INSTANTIATE_TEST_SUITE_P(On, Steps, testing::ValuesIn(built_backends()), backend_name);

bool dies(const Wiring& wiring, const std::vector<std::vector<double>>& got) {
  for (std::size_t row = 0; row < got.size(); ++row)
    if (falsify::judge(wiring.expected()[row], got[row]).finding) return true;
  return false;
}

/// Every fault dies in a program that has its steps, of numbers and not of memory that nothing has written.
TEST(StepFaults, Die) {
  std::set<std::string_view> dead;
  for (const auto& [of, c] : mutated_cases(step())) {
    const Wiring wiring(block_of(step(), c));
    EXPECT_FALSE(dies(wiring, wiring.run(wiring.right()))) << of;
    for (const falsify::BlockFault& fault : falsify::step_faults()) {
      ProgramMutant m;
      try {
        m = plant(fault, wiring.differentiated().program);
      } catch (const InputError&) {
        continue;  // this program has no such step
      }
      const auto got = wiring.run(m);
      if (!dies(wiring, got)) {
        EXPECT_TRUE(wiring.equivalent(m)) << of << ": " << fault.words << ": survives";
        continue;
      }
      dead.insert(fault.words);
      for (const std::vector<double>& row : got)
        EXPECT_TRUE(std::ranges::all_of(row, [](double g) { return std::isfinite(g); })) << of << ": " << fault.words;
    }
  }
  for (const falsify::BlockFault& fault : falsify::step_faults())
    EXPECT_TRUE(dead.contains(fault.words)) << fault.words << ": kills no program";
  EXPECT_GE(falsify::step_faults().size(), 50u);
}

/// The rules of other projects accept the right step, and each has a fault that it finds.
TEST(StepRules, AcceptTheRightStepAndFindAFaultEach) {
  std::map<std::string_view, int> found;
  for (const auto& [of, c] : mutated_cases(step())) {
    const falsify::BlockCase block = block_of(step(), c);
    const falsify::StepRules rules(block);
    const Wiring wiring(block);
    const std::vector<bool> right = rules.accept(wiring.right());
    EXPECT_EQ(std::ranges::count(right, true), std::ssize(falsify::step_rules())) << of;
    for (const std::string_view words :
         {"gradients are added up, not averaged", "nothing decays",
          "the backward pass of the mean has the longest length", "a weight is taken as [in, out]",
          "the head is taken as [classes, hidden]", "the weights are never updated"})
      for (const falsify::BlockFault& fault : falsify::step_faults()) {
        if (fault.words != words) continue;
        try {
          const std::vector<bool> accepted = rules.accept(plant(fault, wiring.differentiated().program));
          for (std::size_t r = 0; r < accepted.size(); ++r) found[falsify::step_rules()[r].name] += !accepted[r];
        } catch (const InputError&) {
          continue;  // this program has no such step
        }
      }
  }
  for (const falsify::StepRule& rule : falsify::step_rules()) EXPECT_GT(found[rule.name], 0) << rule.name;
}

/// The mirror's derivatives are those of dual numbers and of a formula.
TEST(Tracing, DifferentiatesInOnePass) {
  using falsify::Traced;
  const Traced x = Traced::operand(0.7L), y = Traced::operand(1.3L);
  const Traced z = log(x * x + exp(y)) / sqrt(y - Traced(0.5L)) - x;
  const std::vector<long double> d = Traced::derivatives(z);
  const long double inner = 0.49L + std::exp(1.3L), root = std::sqrt(0.8L);
  EXPECT_NEAR(static_cast<double>(d[x.place()] - (1.4L / inner / root - 1)), 0, 1e-17);
  EXPECT_NEAR(
      static_cast<double>(d[y.place()] - (std::exp(1.3L) / inner / root - std::log(inner) / (2 * root * root * root))),
      0, 1e-17);
}

/// Five steps of PyTorch's, transformers' and peft's (tests/golden/steps.py), in double.
TEST(GoldenSteps, AreThoseOfPyTorchAndPeft) {
  std::ifstream file(ASSAY_GOLDEN "/steps.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  std::size_t compared = 0, small = 0;
  for (const auto& [name, golden] : all.items()) {
    if (name == "made_by") continue;
    const nlohmann::json& given = golden["config"];
    falsify::BlockCase c{.name = name, .config = {}, .part = falsify::BlockPart::step};
    TransformerConfig& t = c.config;
    t.hidden = given["hidden"], t.intermediate = given["intermediate"], t.heads = given["heads"];
    t.kv_heads = given["kv_heads"], t.head_dim = given["head_dim"], t.layers = given["layers"];
    t.vocabulary = given["vocabulary"], t.theta = given["theta"], t.eps = given["eps"],
    t.biases = {Projection::q, Projection::k, Projection::v};
    t.adapters.rank = given["rank"], t.adapters.alpha = given["alpha"];
    for (const Projection p : kProjections)
      for (const nlohmann::json& adapted : given["adapters"])
        if (adapted.get<std::string>() + "_proj" == program::name(p)) t.adapters.on.insert(p);
    t.trains = false;
    if (given["norms"].get<bool>()) t.trained.emplace_back("*norm.weight");
    t.weights = given["weights"] == "nf4" ? WeightFormat::nf4 : WeightFormat::f32;
    c.batch = 3, c.s = c.length = given["length"];
    c.classes = given["classes"], c.multi_label = given["multi_label"];
    c.step = {2, 0, given["lr"], given["weight_decay"], given["max_norm"], given["adam_eps"]};
    const falsify::StepProgram right = step_program(c);
    const ProgramMutant own{{}, "", right.program, plan(right.program)};
    falsify::StepExecution<double> exact(own, right, c, std::nan(""));
    falsify::StepExecution<Bounded> bounded(own, right, c, Bounded(std::nan("")));
    bounded.of_double = true;
    const auto set = [&](Value v, const nlohmann::json& numbers) {
      std::vector<double> floats;
      for (const nlohmann::json& n : numbers) floats.push_back(n.get<float>());
      ASSERT_EQ(std::ssize(floats), right.program[v].shape.size()) << right.program[v].name;
      falsify::write(exact.memory[v], floats), falsify::write(bounded.memory[v], floats);
    };
    for (const Parameter& p : right.program.parameters) {
      set(p.value, golden["parameters"].at(p.name));
      if (p.scales) set(p.scales, golden["parameters"].at(p.name + ".absmax"));
    }
    set(right.of.weights, golden["class weights"]);
    // Twice the bound of float32 arithmetic, scaled to double's unit roundoff: PyTorch rounds as well.
    const auto compare = [&](const std::string& of, double got, double error, double want) {
      const double bound = 0x1p-28 * error;
      EXPECT_LE(std::fabs(got - want), bound) << name << " " << of;
      ++compared, small += bound < 1e-6 * (1e-3 + std::fabs(want));
    };
    for (std::size_t step = 0; step < golden["steps"].size(); ++step) {
      const nlohmann::json& want = golden["steps"][step];
      std::size_t sample = 0;
      for (const nlohmann::json& batch : want["batches"]) {
        std::vector<Sample> samples;
        for (const nlohmann::json& s : batch) samples.push_back({s["tokens"], s["label"], s["labels"]});
        exact.accumulate(samples), bounded.accumulate(samples);
        for (std::size_t i = 0; i < samples.size(); ++i)
          compare(fmt::format("loss {} of step {}", sample + 1, step + 1), exact.memory[right.of.loss].data()[i],
                  bounded.memory[right.of.loss].data()[i].error, want["losses"][sample]),
              ++sample;
      }
      const double norm = exact.apply();
      compare(fmt::format("norm of step {}", step + 1), norm, bounded.apply().error, want["norm"]);
      exact.clear(), bounded.clear();
      EXPECT_EQ(want["trained"].size(), right.leaves.size());
      for (const Value leaf : right.leaves) {
        const std::string& of = right.program[leaf].name;
        const std::vector<double> got = falsify::read(exact.memory[leaf]);
        const std::vector<Bounded> bounds = falsify::read(bounded.memory[leaf]);
        ASSERT_EQ(want["trained"].at(of).size(), got.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          compare(fmt::format("{} {} of step {}", of, i, step + 1), got[i], bounds[i].error, want["trained"][of][i]);
      }
      // The next step begins with PyTorch's numbers in float32.
      for (std::size_t leaf = 0; leaf < right.leaves.size(); ++leaf) {
        const std::string& of = right.program[right.leaves[leaf]].name;
        for (const auto& [mean, v] : {std::pair{"m", right.m[leaf]}, {"v", right.v[leaf]}}) {
          const std::vector<double> got = falsify::read(exact.memory[v]);
          const std::vector<Bounded> bounds = falsify::read(bounded.memory[v]);
          for (std::size_t i = 0; i < got.size(); ++i) {
            const double rounded = want[mean].at(of)[i];
            EXPECT_LE(std::fabs(got[i] - rounded), 0x1p-24 * std::fabs(rounded) + 0x1p-28 * bounds[i].error)
                << name << " " << mean << " of " << of << " " << i << " of step " << step + 1;
          }
          set(v, want[mean][of]);
        }
        set(right.leaves[leaf], want["trained"][of]);
      }
    }
  }
  fmt::print("{} of {} bounds are small\n", small, compared);
  EXPECT_GT(compared, 1500u);
  EXPECT_GT(10 * small, 9 * compared);
}

/// Faults of the seeds and of other projects that no edit of a step can make: what refuses them, or shows the contrary.
struct Impossible {
  std::string_view bug, why, test;
};
constexpr std::string_view kRefused = "TrainingStep.RefusesWhatDoesNotExist", kMemory = "Memory.IsWhatThePlanSays",
                           kFailure = "TrainingStep.AFailurePassesOutAndCountsNoStep",
                           kEvaluation = "TrainingStep.EvaluationLeavesGradientsAndParameters";
constexpr Impossible kImpossible[] = {
    {"N38", "memory is the plan's, which knows packed weights", kMemory},
    {"N39", "every buffer is in the plan", kMemory},
    {"N40", "scales, saved inputs and embeddings are in the plan, in bytes", kMemory},
    {"N41", "no second figure is reported", kMemory},
    {"N42", "what is reserved is what is allocated", kMemory},
    {"N44", "a failure is an exception", kFailure},
    {"N45", "without a sample nothing happens", "Training.AnUpdateIsAdamWOnTheClippedMean"},
    {"N51", "a rank of 0 is refused", "TransformerConfigs.AreRefusedInOneSentence"},
    {"N54", "only a gradient that is not finite skips a step", "TrainingStep.AGradientThatIsNotFiniteSkipsTheStep"},
    {"N55", "training and evaluation have one forward pass", kEvaluation},
    {"N56", "a failure keeps its reason", kFailure},
    {"N57", "a sample with too many tokens is refused", kRefused},
    {"N58", "a sample without tokens is refused", kRefused},
    {"N89", "training and evaluation pad alike", kEvaluation},
    {"N94", "a batch refuses what a sample is refused for", kRefused},
    {"N96", "the first of equal logits wins, and NaN none",
     "TrainingStep.ThePredictedClassIsTheFirstOfEqualsAndNoneOfNaN"},
    {"N97", "gradients are one vector, on the device that trains", "Training.AnUpdateIsAdamWOnTheClippedMean"},
    {"N98", "a state of another length is refused before anything changes",
     "TrainingStep.GoesOnFromACheckpointWithTheSameBits"},
    {"N99", "evaluation is the forward pass alone", kEvaluation},
    {"N100", "a trainer has one device and tells its name", "Training.EveryStepIsWithinItsBound"},
    {"N101", "a sample without tokens is refused", kRefused},
    {"ANCHORS 2", "gradients add up over every run", "StepFaults.Die"},
    {"ANCHORS 6", "a tied table has one gradient and one update", "BlockFaults.Die"},
    {"ANCHORS 9", "places behind a sample change no bit", "StepObligations.FailForWhatTheyAreFor"},
    {"ANCHORS 10", "there is no dropout, and layers computed again have the same bits",
     "TrainingStep.ComputingLayersAgainChangesNoBit"},
    {"ANCHORS 11", "parameters that train are float32, and move by more than half an ulp",
     "StepObligations.FailForWhatTheyAreFor"},
    {"ANCHORS 12", "adapters merge into the base that they were trained on, packed or not",
     "Adapters.MergeIntoTheBaseThatTheyWereTrainedOn"},
};

/// N32 to N59, N83 to N102 and the faults of other projects: dead as a fault above, or shown to be impossible.
TEST(StepBugs, AreFaultsOrImpossible) {
  std::set<std::string> known, tests;
  for (const auto& faults : {falsify::step_faults(), falsify::batch_faults()})
    for (const falsify::BlockFault& fault : faults) known.emplace(fault.bugs);
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); ++t) {
      const std::string suite = all.GetTestSuite(s)->name(), test = all.GetTestSuite(s)->GetTestInfo(t)->name();
      tests.insert(suite.substr(suite.find('/') + 1) + "." + test.substr(0, test.find('/')));
    }
  for (const Impossible& i : kImpossible) {
    EXPECT_TRUE(tests.contains(std::string(i.test))) << i.bug << ": there is no test " << i.test;
    EXPECT_TRUE(known.emplace(i.bug).second) << i.bug << " is a fault";
  }
  for (const auto& [first, end] : {std::pair{32, 60}, {83, 103}})
    for (int bug = first; bug < end; ++bug) EXPECT_TRUE(known.contains(fmt::format("N{}", bug))) << "N" << bug;
  for (int bug = 1; bug <= 14; ++bug) EXPECT_TRUE(known.contains(fmt::format("ANCHORS {}", bug))) << bug;
}

}  // namespace
}  // namespace assay::program::step_test
