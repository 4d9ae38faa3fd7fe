// Runs whose every step is held to its bounds.
#include "falsify/program/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "on_device.hpp"
#include "program/differentiate.hpp"
#include "program/model/parameters.hpp"
#include "program/operations.hpp"

namespace assay::program::check_test {
namespace {

using falsify::check_steps;
using falsify::CheckedRun;

constexpr std::string_view kBlock = "lora_on_all";

Differentiated block(std::string_view name = kBlock) { return Block(block_case(name)).differentiated(); }

void set_leaves(Session& session, std::string_view name = kBlock) { set_all(session, block_case(name)); }

/// Checks a block of which one step is computed by another kernel.
CheckedRun checked(const Differentiated& d, Device& device, std::size_t step = SIZE_MAX,
                   const Kernel* wrong = nullptr) {
  std::size_t chosen = 0;
  Session session(d.program, device, {.choose = [&](const Step&) { return chosen++ == step ? wrong : nullptr; }});
  set_leaves(session);
  return check_steps(session);
}

/// True for a fault that reads and writes where the right kernel does: this process does not survive all others.
bool computes_in_its_place(const Kernel& mutant) {
  const std::string_view classes[] = {"formula", "constant", "precision", "accumulation", "mask", "head_map"};
  return std::ranges::find(classes, mutant.fault_class) != std::end(classes);
}

class CheckedRuns : public OnDevice {};

TEST_P(CheckedRuns, OfRightKernelsPass) {
  for (const BlockCase& c : block_cases()) {
    const Differentiated d = block(c.name);
    Session session(d.program, *device_);
    set_leaves(session, c.name);
    const CheckedRun run = check_steps(session);
    EXPECT_FALSE(run.fault) << c << ": " << run.fault->label << ": " << run.fault->finding.message;
  }
  const Differentiated d = block();
  const CheckedRun run = checked(d, *device_);
  ASSERT_FALSE(run.fault) << run.fault->label << ": " << run.fault->finding.message;
  EXPECT_EQ(run.steps, d.program.steps.size());
  std::int64_t written = 0;
  for (const Step& step : d.program.steps)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role != Role::in) written += d.program[step.tensors[t]].shape.size();
  EXPECT_EQ(run.elements, written);  // the block is small enough for the whole oracle
  EXPECT_GT(run.nonzero, written / 2);
  EXPECT_GT(run.worst, 0);
  EXPECT_LE(run.worst, 1);
}

/// Blocks for planted faults: with adapters and padding; two sequences that see all of their own tokens; several tiles
/// in every dim; logits and their loss.
std::vector<BlockCase> faulty_blocks() {
  BlockCase encoders = block_case("encoder");
  encoders.name = "encoders", encoders.batch = 2;
  BlockCase tiles = block_case("lora_on_all");
  tiles.name = "tiles", tiles.s = tiles.length = 67;
  tiles.config.hidden = 66, tiles.config.intermediate = 130, tiles.config.head_dim = 18,
  tiles.config.adapters.rank = 17;
  return {block_case(kBlock), encoders, tiles, block_case("untied_loss")};
}

/// Faults that need what no call of these blocks has: operations' own campaigns draw it.
struct Unmet {
  std::string_view fault, needs;
};
constexpr Unmet kUnmet[] = {
    {"cpu/attention/groups_of_wide_heads", "heads of 64 elements, or more than 32 heads"},
    {"cpu/rope_backward/heads_beyond_32_forwards", "heads of 64 elements, or more than 32 heads"},
    {"cpu/attention/length_of_first_sequence", "four sequences"},
    {"cpu/attention/mask_aligned_to_the_end", "causal queries that begin behind other keys, as in decoding"},
    {"cpu/attention/one_query_sees_all", "causal queries that begin behind other keys, as in decoding"},
    {"cpu/attention/starts_ignored", "causal queries that begin behind other keys, as in decoding"},
    {"cpu/attention/padding_in_sum", "scores that grow by much from tile to tile, or are low"},
    {"cuda-host/attention/keys_by_query_count", "causal queries that begin behind other keys, as in decoding"},
    {"cuda-host/attention/mean_not_rescaled", "scores that grow by much from tile to tile, or are low"},
    {"cuda-host/attention/mma_sum_not_rescaled", "scores that grow by much from tile to tile, or are low"},
    {"cuda-host/attention/sum_not_rescaled", "scores that grow by much from tile to tile, or are low"},
    {"vulkan/attention/sums_not_rescaled", "scores that grow by much from tile to tile, or are low"},
    {"vulkan/attention/total_not_rescaled", "scores that grow by much from tile to tile, or are low"},
    {"cuda-host/attention/scale_by_d", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"vulkan/attention/own_scale", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cpu/residual_add/alpha_in_half", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cpu/residual_add/both_scaled", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cuda-host/linear/wgmma_tf32x3_every_other_tile", "sums over more than one tile of terms"},
    {"cuda-host/residual_add/alpha_ignored", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cuda-host/residual_add/alpha_on_skip", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"vulkan/residual_add/alpha_ignored", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cuda-host/accumulate/alpha_ignored", "a scale that is not 1 / sqrt(d), a factor that is not 1"},
    {"cpu/scale/alpha_in_bfloat16", "a scale that float16 does not hold, is negative or is no power of 2"},
    {"cpu/scale/bf16_alpha", "a scale that float16 does not hold, is negative or is no power of 2"},
    {"cuda-host/scale/divides", "a scale that float16 does not hold, is negative or is no power of 2"},
    {"vulkan/scale/sign_lost", "a scale that float16 does not hold, is negative or is no power of 2"},
    {"cpu/cross_entropy/cancels", "losses of confident rows"},
    {"cpu/cross_entropy/loss_by_difference", "losses of confident rows"},
    {"cpu/cross_entropy_backward/divided_by_rows", "the mean over all rows as the loss"},
    {"cpu/cross_entropy_backward/dtotal_ignored", "the mean over all rows as the loss"},
    {"cpu/cross_entropy_backward/normalizer_ignored", "the mean over all rows as the loss"},
    {"cuda-host/cross_entropy_backward/total_ignored", "the mean over all rows as the loss"},
    {"vulkan/cross_entropy_backward/normalizer_ignored", "the mean over all rows as the loss"},
    {"cpu/rmsnorm/eps_of_another_model", "rows near eps, another eps than 1e-6"},
    {"vulkan/rmsnorm/eps_outside", "rows near eps, another eps than 1e-6"},
    {"cpu/silu_mul_backward/saturates_at_10", "gates beyond 10, positions of many turns"},
    {"vulkan/rope/reduced_in_float", "gates beyond 10, positions of many turns"},
    {"cuda-host/linear/first_part_left_out", "sums of more than 256 terms"},
    {"cpu/matmul/strassen", "factors of which TF32 loses bits beyond the bound, products of 128"},
    {"cpu/matmul_nt/tensor_cores_for_whole_tiles",
     "factors of which TF32 loses bits beyond the bound, products of 128"},
};

/// A planted fault of a step's kernel is found at that step, except for those that no call here can show.
TEST_P(CheckedRuns, NameTheStepWhoseKernelIsWrong) {
  std::map<std::string_view, bool> faults;  // found
  for (const BlockCase& c : faulty_blocks()) {
    const Differentiated d = Block(c).differentiated();
    std::set<std::string_view> operations;
    for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
      const Step& step = d.program.steps[s];
      if (!operations.insert(step.op->name).second) continue;
      for (const Kernel& mutant : kernels()) {
        if (mutant.role != KernelRole::mutant || mutant.backend != GetParam() || mutant.op != step.op->name) continue;
        if (mutant.storage != DType::f32 || !computes_in_its_place(mutant)) continue;
        if (const auto known = faults.find(mutant.id); known != faults.end() && known->second) continue;
        std::size_t chosen = 0;
        std::optional<Session> session;
        try {
          session.emplace(d.program, *device_,
                          SessionOptions{.choose = [&](const Step&) { return chosen++ == s ? &mutant : nullptr; }});
          set_all(*session, c);
          session->run();  // gradients are not zero then
        } catch (const Unavailable&) {
          continue;  // the kernel refuses such rows
        }
        bool& found = faults[mutant.id];
        const CheckedRun run = check_steps(*session);
        if (!run.fault) continue;
        found = true;
        EXPECT_EQ(run.fault->step, s) << mutant.id;
        EXPECT_EQ(run.fault->label, describe(step)) << mutant.id;
      }
    }
  }
  for (const auto& [mutant, found] : faults) {
    const std::string_view fault = mutant.substr(std::string_view("mutant/").size());
    EXPECT_EQ(found, std::ranges::find(kUnmet, fault, &Unmet::fault) == std::end(kUnmet)) << mutant;
  }
  EXPECT_GT(faults.size(), 30u);
}

/// A right kernel, and then `meddle`.
Kernel then(std::string_view op, std::function<void(const Call&)> meddle) {
  const Kernel& right = *kernels_of(op).front();
  Kernel kernel = right;
  kernel.run = [&right, meddle = std::move(meddle)](const Call& call, Device& device) {
    right.run(call, device);
    meddle(call);
  };
  return kernel;
}

struct Planted {
  std::size_t step = SIZE_MAX;
  std::string value, says;
};
Planted fault_of(const CheckedRun& run) {
  if (!run.fault) return {};
  return {run.fault->step, run.fault->value, run.fault->finding.message};
}

/// The smallest wrong result: one element of one result of one step, beyond its bound.
TEST(CheckedSteps, EveryElementOfEveryResultCounts) {
  const Differentiated d = block();
  falsify::Random random(7);
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const Step& step = d.program.steps[s];
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      if (step.op->tensors[t].role == Role::in) continue;
      const auto at = random.below(static_cast<std::uint64_t>(d.program[step.tensors[t]].shape.size()));
      const Kernel off = then(step.op->name, [&](const Call& call) {
        float& y = static_cast<float*>(call.tensors[t].data)[at];
        y += 1 + std::fabs(y) / 8;
      });
      const Planted fault = fault_of(checked(d, device(Backend::cpu), s, &off));
      EXPECT_EQ(fault.step, s) << describe(step);
      EXPECT_EQ(fault.value, d.program[step.tensors[t]].name) << describe(step);
    }
  }
}

/// Where the oracle of a whole step takes too long, a sample of rows or of columns finds a fault of all of them.
TEST(CheckedSteps, LongOnesAreSampled) {
  Builder b;
  const Value x = b.input("x", {300, 128}), w = b.parameter("w", {128, 128});
  b.output(matmul_nt(b, x, w));
  const Program program = b.take();
  const auto run = [&](const Kernel* kernel) {
    Session session(program, device(Backend::cpu), {.choose = [&](const Step&) { return kernel; }});
    set_leaves(session);
    return check_steps(session);
  };
  const CheckedRun right = run(nullptr);
  EXPECT_FALSE(right.fault);
  EXPECT_GT(right.elements, 128);
  EXPECT_LT(right.elements, 300 * 128);
  const Kernel wrong = then("matmul_nt", [&](const Call& call) {
    for (Index i = 0; i < 300 * 128; ++i) static_cast<float*>(call.tensors.back().data)[i] += 100;
  });
  EXPECT_EQ(fault_of(run(&wrong)).step, 0u);
}

/// Long steps are judged while later ones run.
TEST(CheckedSteps, TheFirstOfSeveralWrongOnesIsNamed) {
  Builder b;
  Value x = b.input("x", {64, 64});
  for (const char* name : {"long", "short", "last"}) {
    const Builder::Scope scope(b, name);
    x = matmul_nt(b, x, b.parameter("w", {64, 64}));
    x = scale(b, x, 0.5);
  }
  b.output(x);
  const Program program = b.take();
  const Kernel product = then("matmul_nt", [](const Call&call) { *static_cast<float*>(call.tensors[2].data) += 100; }),
               factor = then("scale", [](const Call&call) { *static_cast<float*>(call.tensors[1].data) += 100; });
  for (std::size_t first = 0; first < program.steps.size(); ++first)
    for (std::size_t second = first; second < program.steps.size(); ++second) {
      std::size_t chosen = 0;
      Session session(program, device(Backend::cpu), {.choose = [&](const Step& step) -> const Kernel* {
                        const std::size_t s = chosen++;
                        if (s != first && s != second) return nullptr;
                        return step.op->name == "scale" ? &factor : &product;
                      }});
      set_leaves(session);
      const CheckedRun run = check_steps(session);
      EXPECT_EQ(fault_of(run).step, first);
      EXPECT_EQ(run.steps, first);
    }
}

TEST(CheckedSessions, CheckOneRunInSoManyAndThoseAskedFor) {
  const Differentiated d = block();
  CheckedRun all;
  int calls = 0;
  const Kernel counts = then("silu_mul", [&](const Call&) { ++calls; });
  Session checked(d.program, device(Backend::cpu),
                  {.choose = [&](const Step&step) { return step.op->name == "silu_mul" ? &counts : nullptr; },
                   .check = falsify::steps_within_bounds(all),
                   .check_every = 3}),
      plain(d.program, device(Backend::cpu));
  set_leaves(checked), set_leaves(plain);
  calls = 0;
  for (int run = 1; run <= 7; ++run) {
    checked.run(), plain.run();
    EXPECT_EQ(all.steps, static_cast<std::size_t>(run / 3) * d.program.steps.size());
    EXPECT_EQ(calls, run + 2 * (run / 3));  // a checked run is made on copies, as a whole and step by step
  }
  checked.run(Check::steps), plain.run();
  EXPECT_EQ(all.steps, 3 * d.program.steps.size());
  EXPECT_GT(all.elements, 0);
  for (const Value g : d.gradients) EXPECT_EQ(checked.get<float>(g), plain.get<float>(g));
  EXPECT_THROW(plain.run(Check::steps), InputError);
  EXPECT_THROW(Session(d.program, device(Backend::cpu), {.check_every = 2}), InputError);
}

TEST(CheckedSessions, ThrowWhatIsWrongAndGoOn) {
  const Differentiated d = block();
  CheckedRun all;
  bool wrong = false;
  const Kernel sometimes = then("silu_mul", [&](const Call& call) {
    if (wrong) *static_cast<float*>(call.tensors.back().data) += 100;
  });
  Session session(d.program, device(Backend::cpu),
                  {.choose = [&](const Step& step) { return step.op->name == "silu_mul" ? &sometimes : nullptr; },
                   .check = falsify::steps_within_bounds(all)});
  set_leaves(session);
  wrong = true;
  session.run();  // nobody looks
  EXPECT_FALSE(all.fault);
  try {
    session.run(Check::steps);
    ADD_FAILURE();
  } catch (const falsify::WrongStep& e) {
    EXPECT_EQ(e.fault.label, "mlp.silu_mul (silu_mul)");
    EXPECT_NE(std::string(e.what()).find("mlp.silu_mul (silu_mul): mlp.silu_mul.y: "), std::string::npos) << e.what();
  }
  EXPECT_TRUE(all.fault);
  wrong = false;
  const std::size_t before = all.steps;
  EXPECT_NO_THROW(session.run(Check::steps));
  EXPECT_EQ(all.steps, before + d.program.steps.size());
}

/// A run that nobody checks writes into a weight, by a kernel that is right whenever somebody looks.
TEST(CheckedSessions, NameAWeightThatARunInBetweenHasDamaged) {
  constexpr const char* kWeight = "self_attn.q_proj.weight";
  TransformerConfig c = full();
  c.trains = false;
  const BlockCase of{"", c, Part::layer};
  const Program p = Block(of).builder.program();
  const Value weight = parameter(p, kWeight).value, bias = parameter(p, "self_attn.q_proj.bias").value;
  bool damages = false;
  const Kernel sometimes = then("lora_linear", [&](const Call& call) {
    if (damages) static_cast<float*>(call.tensors[1].data)[3] += 1;
  });
  const auto choose = [&](const Step& step) {
    return step.label == "self_attn.q_proj.lora_linear" ? &sometimes : nullptr;
  };
  CheckedRun all;
  Session session(p, device(Backend::cpu), {.choose = choose, .check = falsify::steps_within_bounds(all)}),
      other(p, device(Backend::cpu), {.choose = choose, .shares = &session});
  set_all(session, of), set_all(other, of);
  const auto found = [&]() -> std::string {
    try {
      session.run(Check::steps);
    } catch (const falsify::WrongStep& e) {
      EXPECT_EQ(falsify::describe(e.fault, p.steps.size()), "a run since the last checked one");
      return e.fault.value;
    }
    return "nothing";
  };
  const std::vector<float> right = session.get<float>(weight);
  EXPECT_EQ(found(), "nothing") << "there is no checked run before";
  for (Session* by : {&session, &other}) {
    session.run(), other.run();
    EXPECT_EQ(found(), "nothing");
    damages = true;
    by->run();
    damages = false;
    EXPECT_EQ(found(), kWeight);
    EXPECT_EQ(found(), kWeight) << "until it is set anew";
    by->set(weight, right);
    EXPECT_EQ(found(), "nothing");
  }
  // The host changes weights through any session; so does a program that has one as its state.
  other.set(bias, std::vector<float>(16, 2));
  EXPECT_EQ(found(), "nothing");
  initialize(session, 3);
  EXPECT_EQ(found(), "nothing");
  Builder b;
  const Value state = b.state(kWeight, {16, 6}), more = b.input("more", {16, 6});
  accumulate(b, state, more, 1);
  Session update(b.take(), device(Backend::cpu), {.shares = &session});
  update.set(more, std::vector<float>(16 * 6, 1));
  update.run();
  EXPECT_EQ(session.get<float>(weight)[0], initial_values(kWeight, {16, 6}, 3)[0] + 1);
  EXPECT_EQ(found(), "nothing");
  set_all(session, of);
  session.set_param("self_attn.q_proj.lora_linear", "alpha", 3);
  EXPECT_EQ(found(), "nothing");
}

TEST(CheckedMemory, AStepLeavesWhatItReads) {
  const Differentiated d = block();
  const Kernel writes = then("rmsnorm", [](const Call& call) { static_cast<float*>(call.tensors[0].data)[4] += 1; });
  const Planted fault = fault_of(checked(d, device(Backend::cpu), 0, &writes));
  EXPECT_EQ(fault.step, 0u);
  EXPECT_EQ(fault.value, "x");
  EXPECT_NE(fault.says.find("it changed what it only reads"), std::string::npos) << fault.says;
}

/// A number that was put into a weight by a run that nobody checked, and is put there again.
TEST(CheckedMemory, AWeightThatAnEarlierRunChangedIsSeen) {
  const Differentiated d = block();
  const auto step = static_cast<std::size_t>(
      std::ranges::find(d.program.steps, "lora_linear", [](const Step& s) { return s.op->name; }) -
      d.program.steps.begin());
  std::vector<const Kernel*> wrong{&kernel("mutant/cpu/lora_linear/weight_clobbered")};
  Kernel other_constant =
      then("lora_linear", [](const Call& call) { static_cast<float*>(call.tensors[1].data)[0] = 3; });
  wrong.push_back(&other_constant);
  for (const Kernel* k : wrong) {
    std::size_t chosen = 0;
    Session session(d.program, device(Backend::cpu),
                    {.choose = [&](const Step&) { return chosen++ == step ? k : nullptr; }});
    set_leaves(session);
    session.run();
    const Planted fault = fault_of(check_steps(session));
    EXPECT_EQ(fault.step, step) << k->id;
    EXPECT_NE(fault.says.find("it changed what it only reads"), std::string::npos) << fault.says;
  }
}

/// Writes beyond the results, on either side, near and far: the process goes on, and the step is named.
TEST(CheckedMemory, AWriteOutsideOfTheResultsIsNamedWithItsStep) {
  const Differentiated d = block();
  for (const Index beyond : {-1000, -1, 0, 1, 5000}) {
    bool writes = false;
    const Kernel strays = then("silu_mul", [&](const Call& call) {
      const Tensor& y = call.tensors.back();
      if (writes) static_cast<float*>(y.data)[beyond < 0 ? beyond : y.shape.size() + beyond] = 7;
      writes = false;  // in memory of others it ends the process
    });
    Session session(d.program, device(Backend::cpu),
                    {.choose = [&](const Step& step) { return step.op->name == "silu_mul" ? &strays : nullptr; }});
    set_leaves(session);
    writes = true;
    const CheckedRun run = check_steps(session);
    ASSERT_TRUE(run.fault) << beyond;
    EXPECT_EQ(run.fault->label, "mlp.silu_mul (silu_mul)");
    EXPECT_EQ(run.fault->finding.kind, falsify::Finding::Kind::out_of_bounds);
    EXPECT_NE(run.fault->finding.message.find("it writes outside of its results"), std::string::npos)
        << run.fault->finding.message;
  }
}

/// Mutants that exchange rows and columns end a process that runs them unchecked.
TEST(CheckedMemory, MutantsThatWriteOutOfBoundsAreNamed) {
  const auto named = [](Index m, Index n, std::string_view id) {
    Builder b;
    const Value x = b.input("x", {m, 5}), w = b.input("w", {5, n});
    b.output(matmul(b, x, w));
    try {
      const Kernel& mutant = kernel(std::string(id));
      const Session session(b.take(), device(Backend::cpu), {.choose = [&](const Step& step) {
                              falsify::expect_in_its_place(step, mutant, device(Backend::cpu));
                              return &mutant;
                            }});
    } catch (const falsify::WrongStep& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  for (const char* id : {"mutant/cpu/matmul/swapped_grid", "mutant/cpu/matmul/column_major_store"}) {
    EXPECT_NE(named(2, 9, id).find("(matmul): c: it writes outside of its results"), std::string::npos) << id;
    EXPECT_EQ(named(1, 1, id), "nothing") << id;
  }
}

/// Checks the block with a kernel at `step` that adds 1 to one element of a tensor of another step.
Planted stray_write(std::size_t step, std::size_t other, std::size_t tensor, Index element) {
  const Differentiated d = block();
  float* stray = nullptr;  // null while the session prepares its kernels
  const Kernel writes = then(d.program.steps[step].op->name, [&](const Call&) {
    if (stray != nullptr) stray[element] += 1;
  });
  std::size_t chosen = 0;
  Session session(d.program, device(Backend::cpu),
                  {.reuse = false, .choose = [&](const Step&) { return chosen++ == step ? &writes : nullptr; }});
  set_leaves(session);
  stray = static_cast<float*>(session.call(other).tensors[tensor].data);
  return fault_of(check_steps(session));
}

/// The whole run leaves right results where the steps write theirs.
TEST(CheckedMemory, NoResultOfTheWholeRunStandsInForOneOfAStep) {
  const Differentiated d = block();
  for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
    const Step& step = d.program.steps[s];
    if (std::ranges::any_of(step.op->tensors, [](const TensorInfo& t) { return t.role == Role::inout; })) continue;
    const Kernel& right = *kernels_of(step.op->name).front();
    Kernel once = right;
    int calls = 0;
    once.run = [&](const Call& call, Device& device) {
      if (++calls <= 2) right.run(call, device);  // on copies, and in the whole run
    };
    std::size_t chosen = 0;
    Session session(d.program, device(Backend::cpu),
                    {.reuse = false, .choose = [&](const Step&) { return chosen++ == s ? &once : nullptr; }});
    set_leaves(session);
    calls = 0;
    EXPECT_EQ(fault_of(check_steps(session)).step, s) << describe(step);
  }
}

TEST(CheckedMemory, AnOperandIsAsItsWriterLeftIt) {
  const Differentiated d = block();
  const std::vector<Step>& steps = d.program.steps;
  const auto users = [&](Value v) {
    std::vector<std::size_t> all;
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (std::ranges::any_of(steps[s].tensors, [&](Value u) { return d.program[u].storage == d.program[v].storage; }))
        all.push_back(s);
    return all;
  };
  int tried = 0;
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (std::size_t t = 0; t < steps[s].tensors.size(); ++t) {
      const Value v = steps[s].tensors[t];
      const std::vector<std::size_t> at = users(v);
      const bool is_result = steps[s].op->tensors[t].role == Role::out;
      if (!is_result || d.program.storage_of(v).kind != Kind::temporary || at.front() != s) continue;
      if (at.size() < 2 || at[1] == s + 1) continue;  // no step is between writer and reader
      const Planted fault = stray_write(s + 1, s, t, 0);
      EXPECT_EQ(fault.step, at[1]) << describe(steps[s]);
      EXPECT_NE(fault.says.find("it reads what is no longer as " + describe(steps[s])), std::string::npos)
          << fault.says;
      ++tried;
    }
  EXPECT_GT(tried, 3);
}

TEST(CheckedMemory, NoStepWritesToTheParametersOfAnother) {
  const std::size_t last = block().program.steps.size() - 1;
  const Planted fault = stray_write(last, 0, 1, 3);
  EXPECT_EQ(fault.step, last + 1);
  EXPECT_EQ(fault.value, "input_layernorm.weight");
}

TEST(CheckedMemory, TheWholeRunHasTheBitsOfItsSteps) {
  const Differentiated d = block();
  std::size_t step = 0, calls = 0;
  while (d.program.steps[step].op->name != "rmsnorm_backward") ++step;
  Kernel drifts = then("rmsnorm_backward", [&](const Call& call) {  // within its bound, but not always the same
    float& y = static_cast<float*>(call.tensors.back().data)[0];
    if (++calls % 2 == 0) y = std::nextafter(y, 2 * y);
  });
  const CheckedRun run = checked(d, device(Backend::cpu), step, &drifts);
  ASSERT_TRUE(run.fault);
  EXPECT_EQ(run.steps, d.program.steps.size());
  EXPECT_EQ(run.fault->label, "the whole run");
  EXPECT_EQ(run.fault->finding.kind, falsify::Finding::Kind::bits);
  drifts.deterministic = false;
  EXPECT_FALSE(checked(d, device(Backend::cpu), step, &drifts).fault);
}

TEST(CheckedMemory, ACheckedRunLeavesWhatOneRunDoes) {
  const Differentiated d = block();
  Session once(d.program, device(Backend::cpu)), checked_once(d.program, device(Backend::cpu));
  set_leaves(once), set_leaves(checked_once);
  once.run();
  ASSERT_FALSE(check_steps(checked_once).fault);
  for (const Value g : d.gradients) EXPECT_EQ(once.get<float>(g), checked_once.get<float>(g));
}

INSTANTIATE_TEST_SUITE_P(On, CheckedRuns, testing::ValuesIn(built_backends()), backend_name);

}  // namespace
}  // namespace assay::program::check_test
