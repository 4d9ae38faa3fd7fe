// Faults of training steps by name: edits of the program of a whole step. `norm.` and `update.` follow the gradients.
#include <cmath>
#include <utility>

#include "falsify/program/block_edit.hpp"
#include "falsify/program/block_faults.hpp"

namespace assay::falsify {
namespace {

using E = BlockEdit;

const std::string kLayer = "model.layers.1.", kSelf = kLayer + "self_attn.", kQ = kSelf + "q_proj.lora_linear",
                  kAttention = kSelf + "attention", kScale = "update.scale", kClip = "update.clip_grad_norm",
                  kAdamW = "update.adamw_step", kNorm = "norm.global_grad_norm", kPool = "classifier.mean_pool";

std::string back(const std::string& label, std::string_view op) {
  return "backward." + label + "." + std::string(op) + "_backward";
}

/// A flat vector from `offset` on, as a matrix of 64 columns: storages of parameters are multiples of it.
Value matrix(E& e, Value v, Index offset = 0) {
  const Index n = e.info(v).shape.size() - offset;
  return e.view(v, {n / 64, 64}, {64, 1}, offset);
}
Value part(E& e, Value v, Index begin, Index end) { return e.view(v, {end - begin}, {1}, begin); }
/// The middle of a vector, at a multiple of 64.
Index middle(E& e, Value v) { return e.info(v).shape.size() / 128 * 64; }
Value gradients(E& e) { return e.tensor(kNorm, "g"); }

/// Leaves parameters out of the update, means excepted.
void restore(E& e, std::string_view in_name) {
  bool any = false;
  for (const program::Parameter& p : std::vector(e.program().parameters)) {
    if (!p.trainable || p.name.find(in_name) == p.name.npos) continue;
    const Value row = e.row(p.value), copy = e.row(e.fresh("copy of " + p.name, e.info(p.value).shape, Kind::state));
    const std::size_t at = e.at(kAdamW);
    e.insert(at + 1, E::sum(row, copy, 1)), e.insert(at + 1, E::sum(row, row, -1));
    e.insert(at, E::sum(copy, row, 1)), e.insert(at, E::sum(copy, copy, -1));
    any = true;
  }
  if (!any) throw InputError(std::string(in_name), "no parameter that trains has it in its name", "");
}

/// Drops the gradients of parameters whose names hold it, or of all others.
void lose_all(E& e, std::string_view in_name, bool others = false) {
  for (const program::Parameter& p : std::vector(e.program().parameters))
    if (p.trainable && (p.name.find(in_name) == p.name.npos) == others) e.lose(p.name);
}

/// Makes a step and its backward step read the extents of the buffers for the lengths of the samples.
void at_capacity(E& e, const std::string& label, std::string_view op, bool forward) {
  const std::string backward = back(label, op);
  const Value whole = e.fresh("capacity", e.info(e.tensor(backward, "lengths")).shape, Kind::input, DType::i32);
  e.tensor(backward, "lengths") = whole;
  if (forward) e.tensor(label, "lengths") = whole;
}

void both_read(E& e, const std::string& label, std::string_view op, std::string_view name, Value v) {
  e.tensor(label, name) = v, e.tensor(back(label, op), name) = v;
}

/// Divides the sum of gradients otherwise. Clipping would hide the scale.
void divide(E& e, double factor) {
  if (std::ranges::find(e.program().steps, kClip, &Step::label) != e.program().steps.end())
    throw InputError(kClip, "it hides the scale of the gradient", "plant the fault in a step that does not clip");
  e.param(kScale, "alpha") = factor;
}

constexpr BlockFault kStepFaults[] = {
    // the mean over samples
    {"every run is a boundary: the last micro-batch alone survives",
     [](E& e) {
       const Value all = matrix(e, gradients(e));
       e.insert(0, E::sum(all, all, -1));
     },
     "N34"},
    {"gradients are added up, not averaged", [](E& e) { divide(e, 1); }, "N34"},
    {"the number of runs is taken for that of samples", [](E& e) { divide(e, 0.5); }, "N85"},
    {"a mean over the places of each run, and of these means over the runs", [](E& e) { divide(e, 0.25); },
     "ANCHORS 1"},
    {"the rate is divided, not the gradient",
     [](E& e) { e.param(kAdamW, "lr") *= e.param(kScale, "alpha"), e.param(kScale, "alpha") = 1; }, "KAIZEN-014"},
    {"what fills a batch has a gradient",
     [](E& e) {
       Value& dloss = e.tensor(back("cross_entropy", "cross_entropy"), "dloss");
       dloss = e.view(dloss, e.info(dloss).shape, {0});
     },
     "ANCHORS 14"},
    {"gradients are not cleared behind a step",
     [](E& e) { e.program().storages[static_cast<std::size_t>(e.info(gradients(e)).storage)].kind = Kind::state; },
     "N83"},
    // the norm and clipping
    {"the gradient is clipped before its mean is taken",
     [](E& e) {
       Step clip = e.program().steps[e.at(kClip)];
       clip.tensors[0] = gradients(e);
       e.erase(e.at(kClip));
       e.insert(e.at(kScale), clip);
     },
     "N43"},
    {"each half is clipped by its own norm",
     [](E& e) {
       Step second = e.program().steps[e.at(kClip)];
       const Value g = second.tensors[0];
       const Index half = middle(e, g), n = e.info(g).shape.size();
       e.program().steps[e.at(kClip)].tensors[0] = part(e, g, 0, half);
       second.tensors = {part(e, g, half, n), e.fresh("norm of the second half", {1})};
       e.insert(e.at(kClip) + 1, second);
     },
     "N43"},
    {"the norm and clipping are of a part of the parameters",
     [](E& e) {
       const Value g = e.tensor(kClip, "g");
       e.tensor(kClip, "g") = part(e, g, 0, middle(e, g));
     },
     "N92"},
    {"the reported norm is of a part of the parameters",
     [](E& e) {
       const Value g = gradients(e);
       e.tensor(kNorm, "g") = part(e, g, 0, middle(e, g));
     },
     "N92"},
    {"nothing is clipped", [](E& e) { e.erase(e.at(kClip)); }, "N86"},
    {"the norm is counted four times",
     [](E& e) { e.insert(e.at(kNorm) + 1, E::sum(e.row(e.tensor(kNorm, "norm")), e.row(e.tensor(kNorm, "norm")), 3)); },
     "ANCHORS 3"},
    {"two ranks' norms are added once more", [](E& e) { e.param(kClip, "max_norm") /= std::sqrt(2); }, "ANCHORS 5"},
    {"the scale of the loss is taken from a gradient that is clipped with it",
     [](E& e) {
       const Value g = matrix(e, e.tensor(kClip, "g"));
       e.insert(e.at(kClip) + 1, E::sum(g, g, 1.0 / 8 - 1)), e.insert(e.at(kClip), E::sum(g, g, 8 - 1));
     },
     "ANCHORS 4"},
    // the update
    {"the weights are never updated", [](E& e) { e.erase(e.at(kAdamW)); }, "N59"},
    {"gradients are applied to nothing, and stay",
     [](E& e) {
       e.erase(e.at(kAdamW));
       e.program().storages[static_cast<std::size_t>(e.info(gradients(e)).storage)].kind = Kind::state;
     },
     "N83"},
    {"the update is made with the gradient of the step before",
     [](E& e) { e.mutant().stale_step = static_cast<int>(e.at(kScale)); }, "N93"},
    {"AdamW steps on an adapter's B times its scale",
     [](E& e) {
       const double scale = e.param(kQ, "alpha") / 2;
       const std::string name = kSelf + "q_proj.lora_B.weight";
       const Value b = e.parameter(name), g = e.program().steps[e.sums_into(name)[0]].tensors[0];
       e.insert(e.at(kAdamW) + 1, E::sum(b, b, 1 / scale - 1)), e.insert(e.at(kAdamW), E::sum(b, b, scale - 1));
       e.insert(e.at(kScale), E::sum(g, g, 1 / scale - 1));
     },
     "N46"},
    {"the decay is part of the gradient",
     [](E& e) {
       const double decay = std::exchange(e.param(kAdamW, "weight_decay"), 0);
       e.insert(e.at(kClip), E::sum(matrix(e, e.tensor(kClip, "g")), matrix(e, e.tensor(kAdamW, "p")), decay));
     }},
    {"the decay is part of the gradient that is clipped already",
     [](E& e) {
       const double decay = std::exchange(e.param(kAdamW, "weight_decay"), 0);
       e.insert(e.at(kAdamW), E::sum(matrix(e, e.tensor(kAdamW, "g")), matrix(e, e.tensor(kAdamW, "p")), decay));
     }},
    {"nothing decays", [](E& e) { e.param(kAdamW, "weight_decay") = 0; }},
    {"every step is the first", [](E& e) { e.param(kAdamW, "step") = 1; }},
    {"steps are counted from 0",
     [](E& e) {
       double& step = e.param(kAdamW, "step");
       if (step == 1) throw InputError("step", "the first one would be infinite", "");
       step -= 1;
     }},
    {"the means are not corrected", [](E& e) { e.param(kAdamW, "step") = 1e6; }},
    {"the two means have one decay", [](E& e) { e.param(kAdamW, "beta2") = e.param(kAdamW, "beta1"); }},
    {"the means begin at zero in every step",
     [](E& e) {
       const Value m = matrix(e, e.tensor(kAdamW, "m"));
       e.insert(e.at(kAdamW), E::sum(m, m, -1));
     }},
    // what is trained
    {"trained norms are lost", [](E& e) { restore(e, "layernorm.weight"); }, "N47"},
    {"the final norm's gradient is computed and never applied", [](E& e) { restore(e, "model.norm.weight"); }, "N48"},
    {"embeddings do not train", [](E& e) { restore(e, "embed_tokens"); }, "N48"},
    {"a layer that is not brought back is skipped", [](E& e) { restore(e, "layers.0."); }, "N49"},
    {"adapters never train", [](E& e) { restore(e, "lora_"); }, "N84"},
    {"two tensors of all adapters train",
     [](E& e) {
       for (const program::Parameter& p : std::vector(e.program().parameters))
         if (p.name.find("lora_") != p.name.npos && p.name.find("layers.0.self_attn.q_proj") == p.name.npos)
           e.lose(p.name);
     },
     "ANCHORS 13"},
    {"the head does not train", [](E& e) { restore(e, "classifier."); }},
    {"the bias of the head does not train", [](E& e) { e.lose("classifier.bias"); }},
    {"the hidden states are detached: the head alone gets gradients", [](E& e) { lose_all(e, "classifier.", true); },
     "N35"},
    {"several labels: nothing behind the head gets a gradient",
     [](E& e) {
       e.at("bce_with_logits");
       lose_all(e, "classifier.", true);
     },
     "N87"},
    {"adapters get no gradient, and decay", [](E& e) { lose_all(e, "lora_"); }, "N102"},
    {"every layer steps with the gradient of the first",
     [](E& e) {
       for (const std::string name : {"self_attn.q_proj.weight", "mlp.down_proj.weight"}) {
         const std::size_t first = e.sums_into("model.layers.0." + name)[0], second = e.sums_into(kLayer + name)[0];
         Step shared = e.program().steps[second];
         shared.tensors[1] = e.program().steps[first].tensors[1];
         e.insert(first, shared);
         e.erase(second);
       }
     },
     "N33"},
    // passes
    {"the backward pass runs on what an earlier forward pass has saved",
     [](E& e) { e.mutant().stale_step = static_cast<int>(e.at(kAttention)); }, "N36"},
    {"adapters hold a copy of the weights from before the first step",
     [](E& e) {
       const Value w = e.parameter(kSelf + "q_proj.weight"),
                   copy = e.fresh("stale weights", e.info(w).shape, Kind::state);
       both_read(e, kQ, "lora_linear", "weight", copy);
       e.insert(0, {&operation("scale"), {}, {1}, {w, copy}, "planted"});
       e.mutant().stale_step = 0;
     },
     "N50"},
    {"biases are not given to the block",
     [](E& e) {
       for (const char* of : {"q", "v"}) {
         Value& bias = e.tensor(kSelf + of + "_proj.lora_linear", "bias");
         bias = e.view(bias, {0, e.info(bias).shape[1]}, {e.info(bias).shape[1], 1});
       }
     },
     "N32"},
    {"no norm of heads in the block",
     [](E& e) {
       for (const std::string head : {"q_norm", "k_norm"}) {
         const std::string label = kSelf + head + ".rmsnorm";
         e.lose(kSelf + head + ".weight");
         e.bypass(back(label, "rmsnorm"), "dx", "dy"), e.bypass(label, "y", "x");
       }
     },
     "N32"},
    {"adapters are found by their place: keys have that of values",
     [](E& e) {
       for (const std::string of : {"a", "b"})
         both_read(e, kSelf + "k_proj.lora_linear", "lora_linear", of,
                   e.parameter(kSelf + "v_proj.lora_" + (of == "a" ? "A" : "B") + ".weight"));
     },
     "N52"},
    {"a weight is taken as [in, out]",
     [](E& e) {
       const Value w = e.parameter(kSelf + "q_proj.weight");
       both_read(e, kQ, "lora_linear", "weight", e.view(w, e.info(w).shape, {1, e.info(w).shape[0]}));
     },
     "N53"},
    {"the head is taken as [classes, hidden]",
     [](E& e) {
       const Value w = e.parameter("classifier.weight"), other = e.view(w, e.info(w).shape, {1, e.info(w).shape[0]});
       e.tensor("classifier.matmul", "b") = other;
     }},
    // lengths and weights of the loss
    {"padding counts in the mean over tokens", [](E& e) { at_capacity(e, kPool, "mean_pool", true); }, "N37"},
    {"the backward pass of the mean has the longest length", [](E& e) { at_capacity(e, kPool, "mean_pool", false); },
     "N90"},
    {"padding counts as keys", [](E& e) { at_capacity(e, "model.layers.0.self_attn.attention", "attention", true); },
     "N91"},
    {"the backward pass of attention has the longest length",
     [](E& e) { at_capacity(e, "model.layers.0.self_attn.attention", "attention", false); }, "N90"},
    {"positive labels have no weight",
     [](E& e) {
       const Value ones = e.fresh("one", e.info(e.tensor("bce_with_logits", "pos_weight")).shape, Kind::input);
       both_read(e, "bce_with_logits", "bce_with_logits", "pos_weight", ones);
     },
     "N88"},
    {"classes have no weight",
     [](E& e) {
       const Value ones = e.fresh("one", e.info(e.tensor("cross_entropy", "weights")).shape, Kind::input);
       both_read(e, "cross_entropy", "cross_entropy", "weights", ones);
     },
     "N95"},
};

}  // namespace

std::span<const BlockFault> step_faults() { return kStepFaults; }

}  // namespace assay::falsify
