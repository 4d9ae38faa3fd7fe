#include "falsify/program/block_faults.hpp"

#include <cmath>
#include <functional>

#include "falsify/program/block_edit.hpp"

namespace assay::falsify {

namespace {

using E = BlockEdit;

const std::string kLayer = "model.layers.1.", kSelf = kLayer + "self_attn.", kMlp = kLayer + "mlp.";
const std::string kAttention = kSelf + "attention", kQRope = kSelf + "rope", kKRope = kSelf + "rope.1";
const std::string kQNorm = kSelf + "q_norm.rmsnorm", kKNorm = kSelf + "k_norm.rmsnorm";
const std::string kInputNorm = kLayer + "input_layernorm.rmsnorm",
                  kPostNorm = kLayer + "post_attention_layernorm.rmsnorm";

/// Returns the label of the backward step.
std::string back(const std::string& label) {
  const std::string op = label.substr(label.rfind('.', label.size() - 3) + 1);
  return "backward." + label + "." + op.substr(0, op.find('.')) + "_backward";
}
std::string projection(std::string_view name) { return kSelf + std::string(name) + "_proj.lora_linear"; }

void both(E& e, const std::string& label, std::string_view param, double value) {
  e.param(label, param) = value, e.param(back(label), param) = value;
}
void both_ropes(E& e, std::string_view param, double value) {
  both(e, kQRope, param, value), both(e, kKRope, param, value);
}
/// Makes the forward and the backward step read `v` as that tensor.
void both_read(E& e, const std::string& label, std::string_view name, Value v) {
  e.tensor(label, name) = v, e.tensor(back(label), name) = v;
}
/// Returns a view that reads the matrix as if its memory held the transpose.
Value transposed(E& e, Value matrix) {
  const Shape shape = e.info(matrix).shape;
  return e.view(matrix, shape, {1, shape[0]});
}
/// An input of integers, of the shape of another one.
Value integers(E& e, std::string name, Value like) {
  return e.fresh(std::move(name), e.info(like).shape, Kind::input, DType::i32);
}
std::string self_attn(std::string_view name) { return kSelf + std::string(name); }

/// q, y or dy of attention, [1, s, heads, d], with another number of heads: every `step`-th one from `first` on.
Value heads_of(E& e, Value v, Index first, Index step) {
  const Shape shape = e.info(v).shape, strides = e.info(v).strides;
  return e.view(v, {1, shape[1], shape[2] / step, shape[3]}, {strides[0], strides[1], strides[2] * step, 1},
                first * strides[2]);
}

/// Leaves a norm out of both directions.
void without_norm(E& e, const std::string& norm) {
  e.lose(norm.substr(0, norm.rfind('.')) + ".weight");
  e.bypass(back(norm), "dx", "dy"), e.bypass(norm, "y", "x");
}

/// Calls f(tensor) for each tensor of that name that a step of these operations reads or writes.
void each(E& e, const std::vector<std::string_view>& ops, const std::vector<std::string_view>& names,
          const std::function<void(Value&)>& f) {
  for (Step& step : e.program().steps)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (std::ranges::find(ops, step.op->name) != ops.end() &&
          std::ranges::find(names, step.op->tensors[t].name) != names.end())
        f(step.tensors[t]);
}
const std::vector<std::string_view> kAttends{"attention", "attention_backward"};

/// Makes every sequence of attention read what the one at `offset` does.
void of_one_sequence(E& e, const std::vector<std::string_view>& names, bool last = false) {
  each(e, kAttends, names, [&](Value& v) {
    const Shape shape = e.info(v).shape;
    Shape strides = e.info(v).strides;
    const Index offset = last ? (shape[0] - 1) * strides[0] : 0;
    strides[0] = 0;
    v = e.view(v, shape, strides, offset);
  });
}
/// Makes one of the two rotations of each layer read other positions.
void at_places(E& e, std::string_view rotation, const std::string& name) {
  for (Step& step : e.program().steps)
    if (step.label.find(fmt::format("self_attn.{}.rope_backward", rotation)) != step.label.npos ||
        step.label.ends_with(fmt::format("self_attn.{}", rotation)))
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].name == "positions") step.tensors[t] = integers(e, name, step.tensors[t]);
}

constexpr BlockFault kBatchFaults[] = {
    {"the sequences of a batch attend across",
     [](E& e) {
       each(e, kAttends, {"q", "k", "v", "y", "dy", "dq", "dk", "dv"}, [&](Value& v) {
         const Shape shape = e.info(v).shape, strides = e.info(v).strides;
         v = e.view(v, {1, shape[0] * shape[1], shape[2], shape[3]}, {0, strides[1], strides[2], strides[3]});
       });
       each(e, kAttends, {"logsumexp"}, [&](Value& v) {
         const Shape shape = e.info(v).shape;
         v = e.view(v, {1, shape[1], shape[0] * shape[2]}, {0, shape[0] * shape[2], 1});
       });
       each(e, kAttends, {"lengths"},
            [&](Value& v) { v = e.fresh("rows of all sequences", {1}, Kind::input, DType::i32); });
       each(e, kAttends, {"starts"}, [&](Value& v) { v = e.view(v, {1}, {1}); });
     },
     "ANCHORS 8"},
    {"the keys and values of the first sequence serve all",
     [](E& e) {
       of_one_sequence(e, {"k", "v"});
     }},
    {"the queries of the last sequence serve all", [](E& e) { of_one_sequence(e, {"q"}, true); }},
    {"every sequence has the length of the first", [](E& e) { of_one_sequence(e, {"lengths"}); }},
    {"every sequence has the length of the last", [](E& e) { of_one_sequence(e, {"lengths"}, true); }},
    {"the keys of every sequence stand at the positions of the first",
     [](E& e) { at_places(e, "rope.1", "places of the first sequence"); }, "ANCHORS 7"},
    {"the positions of queries count on through the batch",
     [](E& e) { at_places(e, "rope", "places through the batch"); }, "ANCHORS 7"},
};

/// Returns the label of the step that is made once more.
std::string again(const std::string& label) {
  const std::string op = label.substr(label.rfind('.', label.size() - 3) + 1);
  return "again." + label + "." + op.substr(0, op.find('.'));
}

constexpr BlockFault kAgainFaults[] = {
    {"a norm is computed again from another value",
     [](E& e) { e.tensor(again(kPostNorm), "x") = e.tensor(kInputNorm, "x"); }},
    {"a product is computed again with the weight of another layer",
     [](E& e) { e.tensor(again(projection("k")), "weight") = e.parameter("model.layers.0.self_attn.k_proj.weight"); }},
    {"rotated queries are computed again at other positions",
     [](E& e) {
       Value& positions = e.tensor(again(kQRope), "positions");
       positions = integers(e, "later positions", positions);
     }},
    {"an activation is not computed again", [](E& e) { e.clear(again(kMlp + "silu_mul"), "y"); }},
};

constexpr BlockFault kFaults[] = {
    // constants
    {"the norm of queries has an eps of its own", [](E& e) { e.param(kQNorm, "eps") = 1e-5; }},
    {"the norms of layers have a fixed eps", [](E& e) { e.param(kInputNorm, "eps") = 1e-5; }},
    {"the final norm has another eps", [](E& e) { e.param("model.norm.rmsnorm", "eps") = 1e-5; }},
    {"the base of the rotation is 1e6 whatever the model's", [](E& e) { both_ropes(e, "theta", 1e6); }},
    {"neighbours are rotated for halves", [](E& e) { both_ropes(e, "interleaved", 1); }},
    {"keys are rotated in float32, queries in double", [](E& e) { both(e, kKRope, "float32_angle", 1); }},
    {"keys are one position ahead",
     [](E& e) {
       const Shape shape = e.info(e.tensor(kKRope, "positions")).shape;
       both_read(e, kKRope, "positions", e.fresh("later positions", shape, Kind::input, DType::i32));
     }},
    {"every row stands at the first one's position",
     [](E& e) {
       const Value positions = e.tensor(kQRope, "positions");
       for (const std::string& rope : {kQRope, kKRope})
         both_read(e, rope, "positions", e.view(positions, e.info(positions).shape, {0}));
     }},
    {"the scale of scores is missing", [](E& e) { both(e, kAttention, "scale", 1); }},
    {"the scale of scores is applied twice",
     [](E& e) { both(e, kAttention, "scale", std::pow(e.param(kAttention, "scale"), 2)); }},
    {"the scale of scores is missing in the backward pass", [](E& e) { e.param(back(kAttention), "scale") = 1; }},
    {"the causal mask is off by one",
     [](E& e) { both_read(e, kAttention, "starts", integers(e, "one", e.tensor(kAttention, "starts"))); }},
    {"no causal mask", [](E& e) { both(e, kAttention, "causal", 0); }},
    {"no causal mask in the backward pass", [](E& e) { e.param(back(kAttention), "causal") = 0; }},
    {"an adapter counts alpha times, not alpha / rank",
     [](E& e) { both(e, projection("q"), "alpha", 2 * e.param(projection("q"), "alpha")); }},
    {"an adapter counts alpha / sqrt(rank) times",
     [](E& e) { both(e, projection("q"), "alpha", std::sqrt(2) * e.param(projection("q"), "alpha")); }},
    {"the scale of an adapter is missing in the backward pass",
     [](E& e) { e.param(back(projection("q")), "alpha") = 2; }},
    // steps that are left out
    {"no rotation in training",
     [](E& e) {
       for (const std::string& rope : {kQRope, kKRope}) e.bypass(rope, "y", "x"), e.bypass(back(rope), "dx", "dy");
     }},
    {"queries come back unrotated", [](E& e) { e.bypass(kQRope, "y", "x"); }},
    {"rotation has no backward", [](E& e) { e.bypass(back(kQRope), "dx", "dy"); }},
    {"no norms of heads", [](E& e) { without_norm(e, kQNorm), without_norm(e, kKNorm); }},
    {"no norm before the feed-forward block", [](E& e) { without_norm(e, kPostNorm); }},
    {"the path of an adapter drops the bias",
     [](E& e) {
       e.tensor(projection("v"), "bias") = e.view(e.tensor(projection("v"), "bias"), {0, 8}, {8, 1});
     }},
    {"an adapter is not applied",
     [](E& e) {
       e.tensor(projection("q"), "b") =
           e.fresh("no adapter", e.info(e.tensor(projection("q"), "b")).shape, Kind::constant);
     }},
    // steps too many, and operands of another place
    {"values are rotated",
     [](E& e) {
       Step rope = e.program().steps[e.at(kKRope)];
       const Value v = e.tensor(kAttention, "v"), turned = e.fresh("rotated values", e.info(v).shape);
       const Shape shape = e.info(v).shape, rows{shape[1], shape[2], shape[3]};
       rope.tensors = {e.view(v, rows, row_major_strides(rows)), e.tensor(kKRope, "positions"),
                       e.view(turned, rows, row_major_strides(rows))};
       e.insert(e.at(kAttention), rope);
       both_read(e, kAttention, "v", turned);
     }},
    {"queries are of an input that is normed twice",
     [](E& e) {
       Step norm = e.program().steps[e.at(kInputNorm)];
       const Value n = norm.tensors[2], again = e.fresh("normed twice", e.info(n).shape);
       norm.tensors = {n, norm.tensors[1], again, e.fresh("its rrms", e.info(norm.tensors[3]).shape)};
       norm.label = "planted";
       e.insert(e.at(kInputNorm) + 1, norm);
       both_read(e, projection("q"), "x", again);
     }},
    {"the residual is taken after the norm",
     [](E& e) { e.tensor(self_attn("residual_add"), "x") = e.tensor(kInputNorm, "y"); }},
    {"a norm has the weight of another layer",
     [](E& e) { both_read(e, kInputNorm, "weight", e.parameter("model.layers.0.input_layernorm.weight")); }},
    {"a projection has the weight of another layer",
     [](E& e) { both_read(e, projection("k"), "weight", e.parameter("model.layers.0.self_attn.k_proj.weight")); }},
    {"adapters begin alike in every layer",
     [](E& e) { both_read(e, projection("q"), "a", e.parameter("model.layers.0.self_attn.q_proj.lora_A.weight")); }},
    {"query head h reads key-value head h % kv_heads",
     [](E& e) {
       // Queries 2 b + h as batch b and head h, on one key-value head for each h.
       for (const std::string_view name : {"q", "y"}) {
         const Shape shape = e.info(e.tensor(kAttention, name)).shape,
                     strides = e.info(e.tensor(kAttention, name)).strides;
         e.tensor(kAttention, name) = e.view(e.tensor(kAttention, name), {2, shape[1], 2, shape[3]},
                                             {2 * strides[2], strides[1], strides[2], 1});
       }
       for (const std::string_view name : {"k", "v"}) {
         const Shape shape = e.info(e.tensor(kAttention, name)).shape,
                     strides = e.info(e.tensor(kAttention, name)).strides;
         e.tensor(kAttention, name) =
             e.view(e.tensor(kAttention, name), {2, shape[1], shape[2], shape[3]}, {0, strides[1], strides[2], 1});
       }
       for (const std::string_view name : {"lengths", "starts"})
         e.tensor(kAttention, name) = e.view(e.tensor(kAttention, name), {2}, {0});
       const Index s = e.info(e.tensor(kAttention, "logsumexp")).shape[2];
       e.tensor(kAttention, "logsumexp") = e.view(e.tensor(kAttention, "logsumexp"), {2, 2, s}, {2 * s, s, 1});
     }},
    {"every query head reads key-value head 0",
     [](E& e) {
       for (const std::string_view name : {"k", "v"}) {
         const Shape shape = e.info(e.tensor(kAttention, name)).shape,
                     strides = e.info(e.tensor(kAttention, name)).strides;
         both_read(e, kAttention, name, e.view(e.tensor(kAttention, name), shape, {strides[0], strides[1], 0, 1}));
       }
     }},
    {"padding counts as keys",
     [](E& e) {
       const Value capacity = integers(e, "capacity", e.tensor(kAttention, "lengths"));
       for (const std::string layer : {"model.layers.0.", "model.layers.1."})
         both_read(e, layer + "self_attn.attention", "lengths", capacity);
     }},
    {"A is stored as [in, rank]",
     [](E& e) { both_read(e, projection("q"), "a", transposed(e, e.tensor(projection("q"), "a"))); }},
    {"B is stored as [rank, out]",
     [](E& e) { both_read(e, projection("q"), "b", transposed(e, e.tensor(projection("q"), "b"))); }},
    {"a weight is stored as [in, out]",
     [](E& e) { both_read(e, projection("q"), "weight", transposed(e, e.tensor(projection("q"), "weight"))); }},
    // buffers too small
    {"the gate's result goes to a buffer of the hidden size",
     [](E& e) {
       const Value y = e.tensor(kMlp + "silu_mul", "y");
       const Shape shape = e.info(y).shape;
       e.clear(kMlp + "silu_mul", e.view(y, {shape[0], shape[1] - 6}, {shape[1], 1}, 6));
     }},
    {"the heads' results go to a buffer of [s, hidden]",
     [](E& e) {
       const Value y = e.tensor(kAttention, "y");
       e.clear(kAttention, e.row(y, 6 * e.info(y).shape[1]));
     }},
    // gradients that are cut off
    {"rotated queries are a new leaf", [](E& e) { e.clear(back(kQRope), "dx"); }},
    {"normed queries are a new leaf", [](E& e) { e.clear(back(kQNorm), "dx"); }},
    {"the norm before attention has no backward", [](E& e) { e.clear(back(kInputNorm), "dx"); }},
    {"the heads' results are a new leaf",
     [](E& e) {
       for (const std::string_view out : {"dq", "dk", "dv"}) e.clear(back(kAttention), out);
     }},
    {"the last head's gradient is left out",
     [](E& e) {  // each position's last head, [s, d]
       const Value dq = e.tensor(back(kAttention), "dq");
       const Shape shape = e.info(dq).shape, strides = e.info(dq).strides;
       e.clear(back(kAttention), e.view(dq, {shape[1], shape[3]}, {strides[1], 1}, (shape[2] - 1) * strides[2]));
     }},
    {"keys and values get the gradient of one head of their group",
     [](E& e) {
       Step one = e.program().steps[e.at(back(kAttention))];
       const auto named = [&](std::string_view name) -> Value& {
         return one.tensors[static_cast<std::size_t>(std::ranges::find(one.op->tensors, name, &TensorInfo::name) -
                                                     one.op->tensors.begin())];
       };
       for (const std::string_view name : {"q", "y", "dy"}) named(name) = heads_of(e, named(name), 1, 2);
       named("dq") = e.fresh("unused", e.info(named("q")).shape);
       const Shape shape = e.info(named("logsumexp")).shape;
       named("logsumexp") = e.view(named("logsumexp"), {1, shape[1] / 2, shape[2]}, {0, 2 * shape[2], 1}, shape[2]);
       e.insert(e.at(back(kAttention)) + 1, one);
     }},
    {"attention hands its gradient to the queries, keys and values get none",
     [](E& e) {
       const Value dq = e.tensor(back(kAttention), "dq"), dy = e.tensor(back(kAttention), "dy");
       e.insert(e.at(back(kAttention)) + 1, E::sum(e.row(dq), e.row(dy), 1));
       for (const std::string_view out : {"dq", "dk", "dv"}) e.clear(back(kAttention), out);
     }},
    {"the gradients of keys and values are exchanged",
     [](E& e) { std::swap(e.tensor(back(kAttention), "dk"), e.tensor(back(kAttention), "dv")); }},
    {"the gate's second factor gets no gradient", [](E& e) { e.clear(back(kMlp + "silu_mul"), "dup"); }},
    {"a weight's gradient is lost on a transposed copy", [](E& e) { e.lose(self_attn("q_proj.weight")); }},
    {"the gradient of a bias is dropped", [](E& e) { e.lose(self_attn("k_proj.bias")); }},
    {"the gradient of a layer's norm is lost", [](E& e) { e.lose(kLayer + "input_layernorm.weight"); }},
    {"the gradient of the final norm is lost", [](E& e) { e.lose("model.norm.weight"); }},
    {"the forward pass has an adapter that the backward pass lacks",
     [](E& e) { e.lose(self_attn("k_proj.lora_A.weight")), e.lose(self_attn("k_proj.lora_B.weight")); }},
    {"two tensors of all adapters get gradients",
     [](E& e) {
       for (const program::Parameter& p : e.program().parameters)
         if (p.name.find("lora_") != p.name.npos && p.name.find("layers.0.self_attn.q_proj") == p.name.npos)
           e.lose(p.name);
     }},
    {"a tied table gets the gradient of the head alone",
     [](E& e) { e.erase(e.sums_into("model.embed_tokens.weight").back()); }},
    {"a tied table gets the gradient of the embedding alone",
     [](E& e) { e.erase(e.sums_into("model.embed_tokens.weight").front()); }},
    {"no gradient by way of the second residual", [](E& e) { e.erase(e.sum_to(back(kPostNorm), "dx")); }},
    {"the residual's gradient is added before the norm's backward",
     [](E& e) {
       const std::size_t sum = e.sum_to(back(kPostNorm), "dx");
       const Value skip = e.row(e.program().steps[sum].tensors[1]), dy = e.row(e.tensor(back(kPostNorm), "dy"));
       e.erase(sum);
       e.insert(e.at(back(kPostNorm)), E::sum(dy, skip, 1));
     }},
    {"keys give their input no gradient", [](E& e) { e.erase(e.sum_from(back(projection("k")), "dx")); }},
    // gradients that are summed wrongly
    {"a value on two paths is propagated twice", [](E& e) { e.repeat(e.sum_from(back(projection("k")), "dx")); }},
    {"the gradient of a weight is added twice", [](E& e) { e.repeat(e.sums_into(self_attn("o_proj.weight"))[0]); }},
    {"the gradients of two batches are averaged, not added",
     [](E& e) { e.program().steps[e.sums_into(self_attn("o_proj.weight"))[0]].params[0] = 0.5; }},
    {"the last of two batches alone survives",
     [](E& e) { e.mutant().forgetful_step = static_cast<int>(e.sums_into(self_attn("o_proj.weight"))[0]); }},
    {"gradients of heads outlive a run",
     [](E& e) {
       const Value dq = e.tensor(back(kAttention), "dq"), once = e.fresh("of one run", e.info(dq).shape);
       e.program().storages[static_cast<std::size_t>(e.info(dq).storage)].kind = Kind::gradient;
       e.tensor(back(kAttention), "dq") = once;
       e.insert(e.at(back(kAttention)) + 1, E::sum(e.row(dq), e.row(once), 1));
     }},
    {"every layer gets the gradient of the first",
     [](E& e) {
       const std::size_t first = e.sums_into("model.layers.0.self_attn.q_proj.weight")[0],
                         second = e.sums_into("model.layers.1.self_attn.q_proj.weight")[0];
       Step shared = e.program().steps[second];
       shared.tensors[1] = e.program().steps[first].tensors[1];
       e.insert(first, shared);
       e.erase(second);
     }},
    {"the first row's upstream gradient serves all rows",
     [](E& e) {
       const std::string loss = "backward.cross_entropy.cross_entropy_backward";
       e.tensor(loss, "dloss") = e.view(e.tensor(loss, "dloss"), e.info(e.tensor(loss, "dloss")).shape, {0});
     }},
};

}  // namespace

std::span<const BlockFault> block_faults() { return kFaults; }
std::span<const BlockFault> batch_faults() { return kBatchFaults; }
std::span<const BlockFault> recomputation_faults() { return kAgainFaults; }

ProgramMutant plant(const BlockFault& fault, const Program& program) {
  ProgramMutant mutant{ProgramFault::planted, std::string(fault.words), program, {}};
  if (!fault.bugs.empty()) mutant.description += fmt::format(" ({})", fault.bugs);
  BlockEdit edit(mutant);
  fault.edit(edit);
  mutant.plan = program::plan(mutant.program, false);  // memory that nothing writes holds the poison
  return mutant;
}

}  // namespace assay::falsify
