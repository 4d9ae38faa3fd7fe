// Systems: right ones pass on every back end, and each obligation fails for the fault that it is for.
#include "falsify/program/system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <nlohmann/json.hpp>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/random.hpp"
#include "falsify/program/block_edit.hpp"
#include "falsify/program/block_faults.hpp"
#include "on_device.hpp"

namespace assay::program::system_test {
namespace {

using falsify::everything;
using falsify::find_system;
using falsify::Outcome;
using falsify::System;
using falsify::SystemKernel;
using nlohmann::json;

class Systems : public OnDevice {};

TEST_P(Systems, Pass) {
  ASSERT_EQ(falsify::systems().size(), 8u);
  std::map<std::string, std::int64_t> elements;  // by obligation
  for (const System& system : falsify::systems()) {
    falsify::CampaignOptions options;
    options.cases = 5;
    const json result = run_campaign(SystemKernel(system, GetParam()), options);
    for (const json& o : result["obligations"]) {
      elements[o["id"]] += o["elements"].get<std::int64_t>();
      EXPECT_NE(o["verdict"], "falsified") << result["kernel"] << " " << o.dump(1);
    }
    EXPECT_NE(result["status"], "falsified");
  }
  for (const auto& [id, compared] : elements) EXPECT_GT(compared, 0) << id;
}

INSTANTIATE_TEST_SUITE_P(On, Systems, testing::ValuesIn(built_backends()), backend_name);

/// A default campaign draws each layer in use, on every back end, and no layer in a small case.
TEST(SystemCases, AreOfLayersInUse) {
  for (const System& system : falsify::systems())
    for (const Backend backend : {Backend::cpu, Backend::vulkan}) {
      std::map<int, int> regions;
      Index rows = 0;
      for (int number = 0; number < falsify::kDefaultCases; ++number) {
        const auto c = draw_practice(system, backend, number, falsify::derive(1, std::to_string(number)));
        if (!c) continue;
        ASSERT_GE(c->region, 0);
        EXPECT_TRUE(falsify::lies_in(system.op, system.op.shapes[static_cast<std::size_t>(c->region)], c->dims));
        rows += block_of(system, *c).rows();
        ++regions[c->region];
      }
      EXPECT_EQ(regions.size(), system.op.shapes.size()) << system.op.name;
      const bool whole = system.part == Part::training || system.part == Part::decode || system.part == Part::step;
      EXPECT_GE(system.op.shapes.size(), whole                                                          ? 1u
                                         : system.part == Part::loss || system.part == Part::classifier ? 2u
                                                                                                        : 4u);
      EXPECT_GT(rows, whole ? 0 : 4) << system.op.name;
    }
}

Outcome outcome(std::string_view system, std::string_view obligation, const std::function<void(Program&)>& alter = {},
                std::string_view kernel = {}, bool causal = true) {
  const System& s = *find_system(system);
  falsify::Case c = everything(s, true);
  for (std::size_t p = 0; p < c.params.size() && !causal; ++p)
    if (s.op.params[p].name == "causal") c.params[p] = 0;
  const Kernel* const of_steps = kernel.empty() ? nullptr : &assay::kernel(kernel);
  return run_case(SystemKernel(s, of_steps != nullptr ? of_steps->backend : Backend::cpu, of_steps), obligation, c,
                  alter);
}

/// Sets a parameter of every step of an operation.
std::function<void(Program&)> with(std::string_view op, std::string_view param, double factor, double summand = 0) {
  return [=](Program& p) {
    for (Step& step : p.steps)
      for (std::size_t i = 0; i < step.op->params.size() && step.op->name == op; ++i)
        if (step.op->params[i].name == param) step.params[i] = factor * step.params[i] + summand;
  };
}
/// Alters programs of which some parameter's name ends so.
std::function<void(Program&)> where(std::string_view name, const std::function<void(Program&)>& alter) {
  return [=](Program& p) {
    if (std::ranges::any_of(p.parameters, [&](const Parameter& x) { return x.name.ends_with(name); })) alter(p);
  };
}
/// Alters programs whose attention has this many query heads, or so many key-value heads.
std::function<void(Program&)> of_heads(std::string_view tensor, Index heads,
                                       const std::function<void(Program&)>& alter) {
  return [=](Program& p) {
    for (const Step& step : p.steps)
      for (std::size_t t = 0; t < step.op->tensors.size() && step.op->name == "attention"; ++t)
        if (step.op->tensors[t].name == tensor && p[step.tensors[t]].shape[2] == heads) return alter(p);
  };
}
/// Alters programs of this many sequences.
std::function<void(Program&)> of_sequences(Index batch, const std::function<void(Program&)>& alter) {
  return [=](Program& p) {
    for (const Step& step : p.steps)
      if ((step.op->name == "attention" || step.op->name == "attention_decode") && p[step.tensors[0]].shape[0] == batch)
        return alter(p);
  };
}
/// Drops the last sum into a leaf's gradient.
void lose_last(Program& p) {
  for (std::size_t s = p.steps.size(); s-- > 0;)
    if (p.steps[s].op->name == "accumulate" && p.storage_of(p.steps[s].tensors[0]).kind == Kind::gradient) {
      p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(s));
      return;
    }
}

/// Drops the first step of an operation.
std::function<void(Program&)> lose_first(std::string_view op) {
  return [=](Program& p) {
    const auto at = std::ranges::find_if(p.steps, [&](const Step& step) { return step.op->name == op; });
    if (at != p.steps.end()) p.steps.erase(at);
  };
}

/// Gives a parameter the shape of its transpose.
std::function<void(Program&)> transposed(std::string_view name) {
  return [=](Program& p) {
    for (Parameter& x : p.parameters)
      if (x.name == name) std::swap(x.shape[0], x.shape[1]);
  };
}
/// Gives the value of a parameter another shape.
std::function<void(Program&)> shaped(std::string_view name, const Shape& shape) {
  return [=](Program& p) {
    for (const Parameter& x : p.parameters)
      if (x.name == name) p.values[static_cast<std::size_t>(x.value.id)].shape = shape;
  };
}
/// Gives a parameter the name of another one, and so its first numbers.
std::function<void(Program&)> renamed(std::string_view name, std::string_view other) {
  return [=](Program& p) {
    for (Parameter& x : p.parameters)
      if (x.name == name) x.name = other;
  };
}
/// Takes an element from every result.
void shorter(Program& p) {
  for (const Value v : p.outputs) --p.values[static_cast<std::size_t>(v.id)].shape[0];
}
std::function<void(Program&)> planted(const falsify::BlockFault& fault) {
  return [&](Program& p) { p = plant(fault, p).program; };
}

/// Each run begins with gradients of zero.
void without_earlier_runs(Program& p) {
  static const falsify::BlockFault fault{
      "gradients do not add up over runs", [](falsify::BlockEdit& e) {
        for (std::size_t i = e.program().values.size(); i-- > 0;) {
          const Value v{static_cast<std::int32_t>(i)};
          if (e.program().storage_of(v).kind != Kind::gradient || e.program().base_of(v) != v) continue;
          const Value row = e.row(v);
          e.insert(0, falsify::BlockEdit::sum(row, row, -1));
        }
      }};
  p = plant(fault, p).program;
}

/// Makes the reciprocal rms that the backward pass reads a temporary of the forward pass.
void unsaved(Program& p) {
  for (Storage& storage : p.storages)
    if (storage.kind == Kind::state && storage.name.ends_with(".rrms"))
      storage.name += p.outputs.empty() ? " read" : "";
}

/// Every sequence is pooled over the first one's length.
void pool_over_first_length(Program& p) {
  for (Step& step : p.steps)
    if (step.op->name == "mean_pool") {
      ValueInfo lengths = p[step.tensors[1]];
      lengths.strides = {0};
      p.values.push_back(lengths);
      step.tensors[1] = {static_cast<std::int32_t>(p.values.size()) - 1};
    }
}
/// Every class has the first one's weight, in both directions.
void weigh_classes_alike(Program& p) {
  for (Step& step : p.steps)
    if (step.op->name.starts_with("cross_entropy")) {
      const auto t = std::ranges::find(step.op->tensors, "weights", &TensorInfo::name) - step.op->tensors.begin();
      ValueInfo ones = p[step.tensors.at(static_cast<std::size_t>(t))];
      ones.strides = {0};
      p.values.push_back(ones);
      step.tensors[static_cast<std::size_t>(t)] = {static_cast<std::int32_t>(p.values.size()) - 1};
    }
}

struct Planted {
  std::string_view system, obligation;
  std::function<void(Program&)> alter;
};

TEST(SystemObligations, FailForWhatTheyAreFor) {
  const auto not_causal = with("attention", "causal", 0), scaled = with("attention", "scale", 2);
  const Planted all[] = {
      {"attention_block", "FALSIFY-SYS-002", scaled},
      {"attention_block", "FALSIFY-SYS-002", not_causal},
      {"attention_block", "FALSIFY-SYS-003", with("attention_backward", "scale", 2)},
      {"decoder_layer", "FALSIFY-SYS-003", lose_last},
      {"decoder_layer", "FALSIFY-SYS-005", lose_last},
      {"attention_block", "FALSIFY-SYS-007", not_causal},
      {"attention_block", "FALSIFY-SYS-011", of_sequences(2, not_causal)},
      {"decoder_layer", "FALSIFY-SYS-011", of_sequences(2, scaled)},
      {"attention_block", "FALSIFY-SYS-008", where("lora_A.weight", not_causal)},
      {"feed_forward", "FALSIFY-SYS-009", with("lora_linear", "alpha", 2)},
      {"model_loss", "FALSIFY-SYS-010",
       where("model.norm.weight",
             [](Program& p) {
               if (std::ranges::none_of(p.parameters, [](const Parameter& x) { return x.name == "lm_head.weight"; }))
                 lose_last(p);
             })},
      {"decoder_layer", "FALSIFY-A5", with("rmsnorm", "eps", 0, -1)},
      {"attention_block", "FALSIFY-SYS-012", with("attention_decode", "scale", 2)},
      {"attention_block", "FALSIFY-SYS-012", lose_first("cache_append")},
      {"attention_block", "FALSIFY-SYS-012", lose_first("rope")},
      {"decode_step", "FALSIFY-SYS-002", with("attention_decode", "scale", 2)},
      {"decode_step", "FALSIFY-SYS-011", of_sequences(2, with("attention_decode", "scale", 2))},
      {"decode_step", "FALSIFY-SYS-013", lose_first("rope")},
      {"decode_step", "FALSIFY-SYS-014", with("attention_decode", "scale", 2)},
      {"decode_step", "FALSIFY-SYS-014", lose_first("cache_append")},
      {"classifier_loss", "FALSIFY-SYS-002", pool_over_first_length},
      {"classifier_loss", "FALSIFY-SYS-002", weigh_classes_alike},
      {"classifier_loss", "FALSIFY-SYS-003", lose_last},
      {"classifier_loss", "FALSIFY-SYS-005", lose_last},
      {"classifier_loss", "FALSIFY-SYS-006", pool_over_first_length},
      {"classifier_loss", "FALSIFY-SYS-011", of_sequences(2, pool_over_first_length)},
      {"training_forward", "FALSIFY-SYS-003", lose_last},
      {"training_forward", "FALSIFY-SYS-018", with("rmsnorm", "eps", 10)},
      {"training_forward", "FALSIFY-SYS-019", unsaved},
      {"decode_step", "FALSIFY-SYS-009", with("lora_linear", "alpha", 2)},
      {"decode_step", "FALSIFY-SYS-009", with("lora_unmerge", "alpha", 2)},
      {"attention_block", "FALSIFY-SYS-027", of_sequences(2, with("accumulate", "alpha", 0.5))},
      {"model_loss", "FALSIFY-SYS-027", of_sequences(2, lose_last)},
      {"attention_block", "FALSIFY-SYS-004", without_earlier_runs},
      {"decoder_layer", "FALSIFY-SYS-004", without_earlier_runs},
      {"decoder_layer", "FALSIFY-SYS-028", with("attention_backward", "scale", 2)},
      {"decode_step", "FALSIFY-SYS-028", with("rmsnorm", "eps", 10)},
      {"training_step", "FALSIFY-SYS-028", with("rope", "theta", 2)},
      {"attention_block", "FALSIFY-A1", transposed("self_attn.q_proj.weight")},
      {"attention_block", "FALSIFY-A1", transposed("self_attn.o_proj.lora_A.weight")},
      {"attention_block", "FALSIFY-A2", shaped("self_attn.k_proj.weight", {16, 6})},  // of heads
      {"decoder_layer", "FALSIFY-A2", shaped("self_attn.v_proj.weight", {6, 8})},
      {"attention_block", "FALSIFY-A3", shorter},
      {"model_loss", "FALSIFY-A3", shorter},
      {"model_loss", "FALSIFY-A4",
       renamed("model.layers.1.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.weight")},
      {"decoder_layer", "FALSIFY-A4", renamed("self_attn.k_proj.weight", "self_attn.v_proj.weight")},
      {"attention_block", "FALSIFY-GQ-001", shaped("self_attn.q_proj.weight", {6, 6})},
      {"decoder_layer", "FALSIFY-GQ-001", shaped("self_attn.o_proj.weight", {16, 6})},
      {"attention_block", "FALSIFY-GQ-002", of_heads("k", 2, scaled)},
      {"attention_block", "FALSIFY-GQ-006", of_heads("q", 4, scaled)},
  };
  for (const auto& [system, obligation, alter] : all) {
    const Outcome right = outcome(system, obligation), wrong = outcome(system, obligation, alter);
    EXPECT_EQ(right.kind, Outcome::Kind::passed)
        << system << " " << obligation << (right.finding ? right.finding->message : right.reason);
    EXPECT_GT(right.elements, 0) << system << " " << obligation;
    EXPECT_EQ(wrong.kind, Outcome::Kind::falsified) << system << " " << obligation;
  }
}

/// Tries the small cases of a default campaign. Returns the first one that falsifies, or -1.
int falsified_at(const System& system, std::string_view obligation, const std::function<void(Program&)>& alter) {
  const SystemKernel on(system, Backend::cpu);
  for (int number = 0; number < falsify::kDefaultCases; ++number) {
    const std::uint64_t seed = falsify::derive(1, "case " + std::to_string(number));
    const falsify::Case c = draw(system, true, falsify::derive(seed, "small"));
    Program whole = falsify::Block(block_of(system, c)).differentiated().program, changed = whole;
    alter(changed);
    const auto same = [](const Step& a, const Step& b) { return a.tensors == b.tensors && a.params == b.params; };
    if (std::ranges::equal(whole.steps, changed.steps, same)) continue;
    if (run_case(on, obligation, c, alter).kind == Outcome::Kind::falsified) return number;
  }
  return -1;
}

/// Of two layers it is none.
TEST(SystemCampaigns, FindAThirdLayerThatReadsTheFirstOne) {
  const auto alter = [](Program& p) {
    Value result_of[2];
    const auto layer = [](const Step& step, int n) {
      return step.label.starts_with("model.layers." + std::to_string(n) + ".");
    };
    for (const Step& step : p.steps)
      for (const int n : {0, 1})
        if (layer(step, n) && step.op->name == "residual_add") result_of[n] = step.tensors.back();
    for (Step& step : p.steps)
      if (layer(step, 2)) std::ranges::replace(step.tensors, result_of[1], result_of[0]);
  };
  for (const char* name : {"model_loss", "training_forward", "classifier_loss", "decode_step", "training_step"}) {
    const int found = falsified_at(*find_system(name), "FALSIFY-SYS-002", alter);
    EXPECT_GE(found, 0) << name;
    EXPECT_LT(found, 34) << name << ": later than in the shortest campaign that counts";
  }
}

/// Constants of heads that are wider than 64, and of no others: those of models in use.
TEST(SystemCampaigns, FindConstantsOfWideHeadsAlone) {
  const auto alter = [](std::string_view param, double value) {
    return [=](Program& p) {
      for (Step& step : p.steps)
        for (std::size_t i = 0; i < step.params.size(); ++i)
          if (step.op->params[i].name == param && step.op->name.starts_with(param == "theta" ? "rope" : "attention"))
            if (const Shape& q = p[step.tensors[0]].shape; q[q.rank() - 1] > 64) step.params[i] = value;
    };
  };
  for (const char* name : {"attention_block", "decoder_layer", "model_loss", "training_forward", "classifier_loss",
                           "decode_step", "training_step"})
    for (const auto& [param, value] : {std::pair{"scale", 0.125}, {"theta", 20000.0}}) {
      EXPECT_GE(falsified_at(*find_system(name), "FALSIFY-SYS-002", alter(param, value)), 0) << name << " " << param;
      EXPECT_GE(falsified_at(*find_system(name), "FALSIFY-SYS-028", alter(param, value)), 0) << name << " " << param;
    }
}

/// Four cases of a gradient check cover every leaf and every kind of heads.
TEST(GradientCases, CoverEveryLeafAndEveryKindOfHeads) {
  for (const char* name : {"attention_block", "feed_forward", "decoder_layer", "model_loss", "training_step"}) {
    const System& system = *find_system(name);
    std::set<std::string> leaves, kinds;
    for (int number = 0; number < 4; ++number) {
      const falsify::BlockCase c = block_of(system, gradient_case(system, number, 1));
      const falsify::Block block(c);
      for (const Value v : block.leaves()) {
        const std::string& leaf = block.builder.program()[v].name;
        const std::size_t part = std::min(leaf.find("self_attn."), leaf.find("mlp."));
        leaves.insert(part == leaf.npos ? leaf : leaf.substr(part));
      }
      const TransformerConfig& t = c.config;
      kinds.insert(t.kv_heads == t.heads ? "each its own" : t.kv_heads == 1 ? "one for all" : "groups");
      kinds.insert(t.heads * t.head_dim == t.hidden ? "as wide as hidden" : "of another width");
      kinds.insert(c.s == 1 ? "one position" : "several positions");
      kinds.insert(t.adapters.on.empty() ? "no adapters" : "adapters");
    }
    for (const Projection p : kProjections) {
      const bool feed = p == Projection::gate || p == Projection::up || p == Projection::down;
      if (feed ? system.part == Part::attention : system.part == Part::feed_forward) continue;
      const std::string layer = (feed ? "mlp." : "self_attn.") + std::string(program::name(p)) + ".";
      for (const char* leaf : {"weight", "bias", "lora_A.weight", "lora_B.weight"})
        EXPECT_TRUE(leaves.contains(layer + leaf)) << name << " " << layer << leaf;
    }
    for (const char* leaf : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"})
      EXPECT_TRUE(leaves.contains(leaf) || system.part == Part::feed_forward) << name << " " << leaf;
    for (const char* kind : {"each its own", "one for all", "groups", "as wide as hidden", "of another width",
                             "one position", "several positions", "no adapters", "adapters"})
      EXPECT_TRUE(kinds.contains(kind) || system.part == Part::feed_forward) << name << " " << kind;
  }
}

/// A kernel that computes a step with other integers or constants than it was given, as of a host that sets them wrongly.
Kernel given_others(std::string_view op, std::function<void(Call&, std::vector<std::int32_t>&)> change,
                    std::size_t integers) {
  const Kernel& right = *std::ranges::find_if(kernels(), [&](const Kernel& k) {
    return k.op == op && k.backend == Backend::cpu && k.role == KernelRole::kernel && k.storage == DType::f32;
  });
  Kernel kernel = right;
  kernel.run = [&right, integers, change = std::move(change)](const Call& call, Device& device) {
    Call other = call;
    std::vector<std::int32_t> own;
    if (integers < call.tensors.size()) {
      const auto* const given = static_cast<const std::int32_t*>(call.tensors[integers].data);
      own.assign(given, given + call.tensors[integers].shape.size());
      other.tensors[integers].data = own.data();
    }
    change(other, own);
    right.run(other, device);
  };
  return kernel;
}

TEST(SystemObligations, SeeWhatADecoderSetsWrongly) {
  const System& system = *find_system("decode_step");
  falsify::Case chunk, one = everything(system, true);
  for (const auto& [name, c] : mutated_cases(system))
    if (name == "chunk") chunk = c;
  const std::pair<std::string_view, Kernel> all[] = {
      {"chunks stand a place too late", given_others(
                                            "rope",
                                            [](Call& call, std::vector<std::int32_t>& positions) {
                                              if (positions.size() < 3) return;  // a step of two sequences
                                              for (std::int32_t& place : positions) ++place;
                                              call.tensors[1].data = positions.data();
                                            },
                                            1)},
      {"of a chunk the first token alone is seen", given_others(
                                                       "attention",
                                                       [](Call& call, std::vector<std::int32_t>& lengths) {
                                                         const auto* const starts =
                                                             static_cast<const std::int32_t*>(call.tensors[4].data);
                                                         for (std::size_t b = 0; b < lengths.size(); ++b)
                                                           lengths[b] = starts[b] + 1;
                                                       },
                                                       3)},
  };
  for (const falsify::Case& c : {chunk, one}) {
    const Outcome right = run_case(SystemKernel(system, Backend::cpu), "FALSIFY-SYS-029", c);
    EXPECT_EQ(right.kind, Outcome::Kind::passed) << (right.finding ? right.finding->message : right.reason);
    EXPECT_GT(right.elements, 20);
  }
  for (const auto& [words, wrong] : all) {
    EXPECT_EQ(run_case(SystemKernel(system, Backend::cpu, &wrong), "FALSIFY-SYS-029", chunk).kind,
              Outcome::Kind::falsified)
        << words;
    EXPECT_EQ(run_case(SystemKernel(system, Backend::cpu, &wrong), "FALSIFY-SYS-014", chunk).kind,
              Outcome::Kind::passed)
        << words << ": no program is wrong";
  }
}

TEST(SystemObligations, SeeALearningRateThatDoesNotReachTheUpdate) {
  const System& system = *find_system("training_step");
  const falsify::Case c = everything(system, true);
  const Kernel wrong = given_others(
      "adamw_step", [&](Call& call, std::vector<std::int32_t>&) { call.params[0] = block_of(system, c).step.lr; },
      SIZE_MAX);
  EXPECT_EQ(run_case(SystemKernel(system, Backend::cpu), "FALSIFY-SYS-004", c).kind, Outcome::Kind::passed);
  const Outcome found = run_case(SystemKernel(system, Backend::cpu, &wrong), "FALSIFY-SYS-004", c);
  EXPECT_EQ(found.kind, Outcome::Kind::falsified);
}

/// It is named before the process that runs it comes to harm.
TEST(SystemObligations, NameTheStepThatWritesOutOfBounds) {
  for (const char* fault : {"mutant/cpu/matmul/swapped_grid", "mutant/cpu/matmul/column_major_store"}) {
    const Outcome wrong = outcome("classifier_loss", "FALSIFY-SYS-001", {}, fault);
    ASSERT_TRUE(wrong.finding) << fault;
    EXPECT_NE(wrong.finding->message.find("(matmul): c: it writes outside of its results"), std::string::npos)
        << wrong.finding->message;
  }
}

/// Merging into a packed base and taking it out again: each way has a fault of its own.
TEST(SystemObligations, AdaptersLeaveAPackedBase) {
  const System& s = *find_system("decode_step");
  falsify::Case c = everything(s);
  for (std::size_t p = 0; p < c.params.size(); ++p)
    if (s.op.params[p].name == "weights") c.params[p] = 1;
  const SystemKernel on(s, Backend::cpu);
  const Outcome right = run_case(on, "FALSIFY-SYS-009", c);
  EXPECT_EQ(right.kind, Outcome::Kind::passed) << (right.finding ? right.finding->message : right.reason);
  for (const char* op : {"lora_merge", "lora_unmerge"})
    EXPECT_EQ(run_case(on, "FALSIFY-SYS-009", c, with(op, "alpha", 2)).kind, Outcome::Kind::falsified) << op;
}

/// The mean of the sequences' means, where they have 3 and 2 tokens.
TEST(SystemObligations, AMeanOfMeansIsNoSum) {
  const auto weighted = [](Program& p) {
    bool batch = false;
    for (const Step& step : p.steps) batch |= step.op->name == "attention" && p[step.tensors[0]].shape[0] == 2;
    if (batch) return;
    for (Step& step : p.steps)  // of a single sequence
      if (step.op->name == "accumulate" && p.storage_of(step.tensors[0]).kind == Kind::gradient)
        step.params[0] *= 2.5 / static_cast<double>(p[p.outputs[0]].shape[0]);
  };
  EXPECT_EQ(outcome("model_loss", "FALSIFY-SYS-027", weighted).kind, Outcome::Kind::falsified);
}

/// A sequence of a batch that reads anything of another one.
TEST(SystemObligations, SequencesOfABatchAreAlone) {
  for (const falsify::BlockFault& fault : falsify::batch_faults())
    for (const char* system : {"attention_block", "decoder_layer", "model_loss"}) {
      // Longer sequences are seen without a causal mask.
      bool seen = false;
      for (const bool causal : {true, false})
        seen = seen || outcome(system, "FALSIFY-SYS-011", of_sequences(2, planted(fault)), {}, causal).finding;
      EXPECT_TRUE(seen) << system << ": " << fault.words;
    }
}

TEST(SystemObligations, TheCheckOfHeadsIsSeenToBeMissing) {
  const System& s = *find_system("attention_block");
  falsify::Case wide = everything(s);
  for (std::size_t d = 0; d < wide.dims.size(); ++d)
    if (s.op.dims[d].name == "heads") wide.dims[d] = 32;
    else if (s.op.dims[d].name == "kv_heads") wide.dims[d] = 8;
  const auto refuses = [&](const falsify::SystemTrial::Check& check) {
    return run_case(SystemKernel(s, Backend::cpu), "FALSIFY-GQ-004", wide, {}, check).kind;
  };
  EXPECT_EQ(refuses(check), Outcome::Kind::passed);
  EXPECT_EQ(refuses([](const TransformerConfig&) {}), Outcome::Kind::falsified);
  EXPECT_EQ(refuses([](const TransformerConfig& c) {
              if (c.kv_heads == 0) check(c);
            }),
            Outcome::Kind::falsified);
  EXPECT_EQ(refuses([](const TransformerConfig& c) {
              if (c.kv_heads == 0 || c.heads > 256 || c.heads < c.kv_heads) check(c);
            }),
            Outcome::Kind::falsified)
      << "of many heads, which attention takes";
}

/// The numbers of heads and of positions at which the originals of these obligations hold.
TEST(SystemObligations, HoldAtTheRangesOfTheirOriginals) {
  const System& s = *find_system("attention_block");
  const auto judged = [&](std::string_view obligation, Index heads, Index kv_heads, Index positions, Index hidden,
                          std::uint64_t seed) {
    falsify::Case c = everything(s);
    c.seed = seed;
    const std::map<std::string_view, Index> given{
        {"batch", 1},     {"s", positions},       {"length", positions},       {"hidden", hidden},
        {"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", hidden / heads}};
    for (std::size_t d = 0; d < c.dims.size(); ++d)
      if (const auto at = given.find(s.op.dims[d].name); at != given.end()) c.dims[d] = at->second;
    const Outcome result = run_case(SystemKernel(s, Backend::cpu), obligation, c);
    EXPECT_NE(result.kind, Outcome::Kind::falsified)
        << obligation << " of " << heads << "/" << kv_heads << ", " << positions << " positions";
    return result.elements;
  };
  falsify::Random random(1);
  constexpr std::pair<Index, Index> kHeads[] = {{2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}, {8, 2}, {8, 4}};
  for (int number = 0; number < 50; ++number) {
    const auto [heads, kv_heads] = kHeads[static_cast<std::size_t>(number) % std::size(kHeads)];
    const Index positions = random.between(2, 6), hidden = 8 * heads;
    for (const char* obligation : {"FALSIFY-A2", "FALSIFY-A3", "FALSIFY-GQ-001", "FALSIFY-GQ-004"})
      EXPECT_GT(judged(obligation, heads, kv_heads, positions, hidden, random.bits()), 0) << obligation;
    EXPECT_EQ(judged("FALSIFY-GQ-002", heads, kv_heads, 3, hidden, random.bits()) > 0, heads != kv_heads);
  }
  for (int number = 0; number < 30; ++number)
    EXPECT_GT(judged("FALSIFY-GQ-006", 4, 1, random.between(2, 5), 64, random.bits()), 0);
}

TEST(SystemObligations, OfDecodersFailForWrongKernels) {
  constexpr std::pair<std::string_view, std::string_view> kWrong[] = {{"FALSIFY-SYS-001", "heads_interleaved"},
                                                                      {"FALSIFY-SYS-004", "first_head_appended"},
                                                                      {"FALSIFY-SYS-015", "lengths_of_first"},
                                                                      {"FALSIFY-SYS-016", "stale_place_attended"}};
  for (const auto& [obligation, fault] : kWrong) {
    const Outcome right = outcome("decode_step", obligation),
                  wrong = outcome("decode_step", obligation, {}, "mutant/cpu/attention_decode/" + std::string(fault));
    EXPECT_EQ(right.kind, Outcome::Kind::passed) << obligation << (right.finding ? right.finding->message : "");
    EXPECT_GT(right.elements, 0) << obligation;
    EXPECT_EQ(wrong.kind, Outcome::Kind::falsified) << obligation << " " << fault;
  }
}

class WrongKernels : public OnDevice {};

TEST_P(WrongKernels, AreNamedByTheirStep) {
  const std::string prefix = "mutant/" + std::string(name(GetParam())) + "/attention/";
  int found = 0;
  for (const Kernel& k : kernels()) {
    constexpr std::string_view kFaults[] = {"scale_missing", "mask_absent", "mask_off_by_one", "causal_off_by_one",
                                            "lengths_ignored"};
    if (!k.id.starts_with(prefix) || std::ranges::find(kFaults, k.id.substr(prefix.size())) == std::end(kFaults))
      continue;
    const Outcome wrong = outcome("attention_block", "FALSIFY-SYS-001", {}, k.id);
    ASSERT_TRUE(wrong.finding) << k.id;
    EXPECT_NE(wrong.finding->message.find("self_attn.attention (attention): "), std::string::npos)
        << wrong.finding->message;
    const bool padding = k.id.ends_with("lengths_ignored");  // which only an encoder's tokens see
    EXPECT_TRUE(!padding || outcome("attention_block", "FALSIFY-SYS-006", {}, k.id, false).finding) << k.id;
    ++found;
  }
  EXPECT_GE(found, 1);
}

INSTANTIATE_TEST_SUITE_P(On, WrongKernels, testing::ValuesIn(built_backends()), backend_name);

TEST(SystemCases, AreReplayedByIdAndRefusedInWords) {
  const System& system = *find_system("attention_block");
  const SystemKernel kernel =
      SystemKernel::from_id(system, "attention_block/vulkan/program+mutant/cpu/attention/scale_missing");
  EXPECT_EQ(kernel.kernel().id, "attention_block/vulkan/program+mutant/cpu/attention/scale_missing");
  EXPECT_THROW(SystemKernel::from_id(system, "decoder_layer/cpu/program"), InputError);
  falsify::Case c = everything(system);
  c.dims[2] = 5;
  try {
    block_of(system, c);
    ADD_FAILURE();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "attention_block: length is 5, and s 4; `assay explain attention_block` has the dims");
  }
}

}  // namespace
}  // namespace assay::program::system_test
