#include <cmath>

#include "falsify/program/block_edit.hpp"
#include "falsify/program/block_faults.hpp"

namespace assay::falsify {
namespace {

using E = BlockEdit;

const std::string kFirst = "model.layers.0.", kLayer = "model.layers.1.", kSelf = kLayer + "self_attn.",
                  kMlp = kLayer + "mlp.";
const std::string kDecode = kSelf + "attention_decode", kTraining = kSelf + "attention",
                  kChunk = kFirst + "self_attn.attention", kQRope = kSelf + "rope", kKRope = kSelf + "rope.1",
                  kInputNorm = kLayer + "input_layernorm.rmsnorm",
                  kPostNorm = kLayer + "post_attention_layernorm.rmsnorm", kLastNorm = "model.norm.rmsnorm",
                  kSilu = kMlp + "silu_mul";

std::string projection(std::string_view name) { return kSelf + std::string(name) + "_proj.lora_linear"; }
std::string feed(std::string_view name) { return kMlp + std::string(name) + "_proj.lora_linear"; }

double& param_of(E& e, std::size_t step, std::string_view name) {
  const auto& params = e.program().steps[step].op->params;
  const auto at = std::ranges::find(params, name, &ParamInfo::name) - params.begin();
  return e.program().steps[step].params.at(static_cast<std::size_t>(at));
}
Value& tensor_of(E& e, std::size_t step, std::string_view name) {
  const auto& tensors = e.program().steps[step].op->tensors;
  const auto at = std::ranges::find(tensors, name, &TensorInfo::name) - tensors.begin();
  return e.program().steps[step].tensors.at(static_cast<std::size_t>(at));
}

/// Makes adapters of the second layer's projections add nothing.
void without_adapters(E& e, std::span<const std::string> labels) {
  for (const std::string& label : labels)
    e.tensor(label, "b") = e.fresh("no adapter of " + label, e.info(e.tensor(label, "b")).shape, Kind::constant);
}

/// Leaves a step out whose result is zeros at first.
void skip(E& e, const std::string& label, std::string_view out) {
  e.program().storages[static_cast<std::size_t>(e.info(e.tensor(label, out)).storage)].kind = Kind::state;
  e.erase(e.at(label));
}

/// Makes every row read what the first one does.
void first_row(E& e, const std::string& label, std::string_view name) {
  const Value v = e.tensor(label, name);
  e.tensor(label, name) = e.view(v, e.info(v).shape, {0});
}

Value integers(E& e, std::string name, Value like) {
  return e.fresh(std::move(name), e.info(like).shape, Kind::input, DType::i32);
}

Value transposed(E& e, Value matrix) {
  const Shape shape = e.info(matrix).shape;
  return e.view(matrix, shape, {1, shape[0]});
}

/// Makes the result's elements behind the first ones of each row zero.
void cut_rows(E& e, const std::string& label, std::string_view out, Index kept) {
  const Value y = e.tensor(label, out);
  const Index rows = e.info(y).shape[0], width = e.info(y).shape.size() / rows;
  e.clear(label, e.view(y, {rows, width - kept}, {width, 1}, kept));
}

constexpr Index kHidden = 6;  ///< of the case with everything at once

constexpr BlockFault kDecodeFaults[] = {
    // constants
    {"layer norms have a fixed eps, and the last norm the configured one",
     [](E& e) {
       for (const std::size_t s : e.all("rmsnorm"))
         if (e.program().steps[s].label != kLastNorm) param_of(e, s, "eps") = 1e-5;
     },
     "N60"},
    {"the norm before attention has a fixed eps", [](E& e) { e.param(kInputNorm, "eps") = 1e-5; }, "N60"},
    {"the last norm has another eps", [](E& e) { e.param(kLastNorm, "eps") = 1e-5; }, "N60"},
    {"the base of the rotation is 1e6 whatever the model's",
     [](E& e) { e.param(kQRope, "theta") = 1e6, e.param(kKRope, "theta") = 1e6; }},
    {"neighbours are rotated for halves",
     [](E& e) { e.param(kQRope, "interleaved") = 1, e.param(kKRope, "interleaved") = 1; }, "N80"},
    {"decoding rotates by angles in float32, the prompt in double",
     [](E& e) {
       e.at(kDecode);
       e.param(kQRope, "float32_angle") = 1, e.param(kKRope, "float32_angle") = 1;
     },
     "N70"},
    {"the scale of scores is missing", [](E& e) { e.param(kDecode, "scale") = 1; }},
    {"a chunk's scale of scores is missing", [](E& e) { e.param(kChunk, "scale") = 1; }},
    {"adapters are merged, and still applied",
     [](E& e) {
       for (const std::size_t s : e.all("lora_linear")) param_of(e, s, "alpha") *= 2;
     },
     "N73"},
    {"adapters of a packed base are merged, and still applied",
     [](E& e) { e.param(kSelf + "q_proj.residual_add", "alpha") *= 2; }, "N73"},
    {"an adapter counts alpha times, not alpha / rank", [](E& e) { e.param(projection("q"), "alpha") *= 2; }},
    // passes that are left out
    {"a weight above the binding limit is left to nothing", [](E& e) { skip(e, feed("gate"), "y"); }, "N63"},
    {"a head above the binding limit is left to nothing", [](E& e) { skip(e, "lm_head.matmul_nt", "c"); }, "N63"},
    {"a chunk leaves out what only one row multiplies",
     [](E& e) {
       e.at(kChunk);
       skip(e, kFirst + "mlp.down_proj.lora_linear", "y");
     },
     "N64"},
    {"a packed projection is left out", [](E& e) { skip(e, kMlp + "up_proj.nf4_matmul_nt", "y"); }, "N64"},
    {"a projection in Q4_K is left out where there are several rows",
     [](E& e) { skip(e, kMlp + "up_proj.q4_k_matmul_nt", "y"); }, "N64"},
    {"groups beyond the limit are not run",
     [](E& e) {
       const Value y = e.tensor(kSilu, "y");
       e.clear(kSilu, e.row(y, e.info(y).shape.size() / 2));
     },
     "N65"},
    {"no norm of the heads of queries and keys",
     [](E& e) { e.bypass(kSelf + "q_norm.rmsnorm", "y", "x"), e.bypass(kSelf + "k_norm.rmsnorm", "y", "x"); }, "N68"},
    {"no adapter is applied",
     [](E& e) {
       for (const std::size_t s : e.all("lora_linear")) {
         const Shape shape = e.info(tensor_of(e, s, "b")).shape;
         tensor_of(e, s, "b") = e.fresh("no adapter of " + e.program().steps[s].label, shape, Kind::constant);
       }
     },
     "N69"},
    {"no adapter of a packed base is applied", [](E& e) { e.bypass(kSelf + "v_proj.residual_add", "y", "x"); }, "N69"},
    {"adapters are applied on q and v alone",
     [](E& e) {
       const std::string others[] = {projection("k"), projection("o"), feed("gate"), feed("up"), feed("down")};
       without_adapters(e, others);
     },
     "N77"},
    {"adapters are applied on q, k and v alone",
     [](E& e) {
       const std::string others[] = {projection("o"), feed("gate"), feed("up"), feed("down")};
       without_adapters(e, others);
     },
     "N77"},
    {"queries are not rotated", [](E& e) { e.bypass(kQRope, "y", "x"); }},
    {"no rotation", [](E& e) { e.bypass(kQRope, "y", "x"), e.bypass(kKRope, "y", "x"); }},
    {"no norm before the head", [](E& e) { e.bypass(kLastNorm, "y", "x"); }},
    {"no norm before the feed-forward block", [](E& e) { e.bypass(kPostNorm, "y", "x"); }},
    // rows, buffers and layouts
    {"a norm counts one row, whatever the batch",
     [](E& e) {
       Step& norm = e.program().steps[e.at(kPostNorm)];
       for (const std::string_view name : {"y", "rrms"})
         e.program().storages[static_cast<std::size_t>(e.info(e.tensor(kPostNorm, name)).storage)].kind = Kind::state;
       for (const std::string_view name : {"x", "y", "rrms"}) {
         const ValueInfo info = e.info(e.tensor(kPostNorm, name));
         Shape one = info.shape;
         one[0] = 1;
         e.tensor(kPostNorm, name) = e.view(e.tensor(kPostNorm, name), one, info.strides);
       }
       norm.dims[0] = 1;
     },
     "N61"},
    {"o_proj's result goes to the buffer of the queries, which is smaller",
     [](E& e) {
       const std::string o = kFirst + "self_attn.o_proj.lora_linear";
       const Value y = e.tensor(o, "y");
       const Index queries = e.info(e.tensor(kFirst + "self_attn.q_proj.lora_linear", "y")).shape.size();
       if (queries >= e.info(y).shape.size()) throw InputError("hidden", "it is no larger than the queries", "");
       e.clear(o, e.row(y, queries));
     },
     "N62"},
    {"the gate's result goes to a buffer of the hidden size",
     [](E& e) {
       if (e.info(e.tensor(kSilu, "y")).shape[1] <= kHidden) throw InputError("intermediate", "it is too small", "");
       cut_rows(e, kSilu, "y", kHidden);
     }},
    {"the heads' results go to a buffer of the hidden size", [](E& e) { cut_rows(e, kDecode, "y", kHidden); }},
    {"a bias of another length is cut",
     [](E& e) {
       const Value bias = e.tensor(projection("v"), "bias"), cut = e.fresh("cut bias", e.info(bias).shape, Kind::state);
       const Index kept = e.info(bias).shape.size() / 2;
       const auto first = [&](Value v) { return e.view(v, {1, kept}, {kept, 1}); };
       // Made of zeros in each run.
       e.tensor(projection("v"), "bias") = cut;
       e.insert(e.at(projection("v")), E::sum(first(cut), first(bias), 1));
       e.insert(e.at(projection("v")), E::sum(first(cut), first(cut), -1));
     },
     "N75"},
    {"a bias is read with the stride of another length",
     [](E& e) {
       const Value bias = e.tensor(projection("k"), "bias");
       e.tensor(projection("k"), "bias") = e.view(bias, e.info(bias).shape, {0, 0});
     },
     "N75"},
    {"A is stored as [in, rank]",
     [](E& e) { e.tensor(projection("q"), "a") = transposed(e, e.tensor(projection("q"), "a")); }, "N77"},
    {"B is stored as [rank, out]",
     [](E& e) { e.tensor(projection("q"), "b") = transposed(e, e.tensor(projection("q"), "b")); }, "N77"},
    {"a weight is stored as [in, out]",
     [](E& e) { e.tensor(projection("q"), "weight") = transposed(e, e.tensor(projection("q"), "weight")); }, "N78"},
    {"the head's table is stored as [hidden, vocabulary]",
     [](E& e) { e.tensor("lm_head.matmul_nt", "b") = transposed(e, e.tensor("lm_head.matmul_nt", "b")); }, "N78"},
    {"the residual is taken after the norm",
     [](E& e) { e.tensor(kSelf + "residual_add", "x") = e.tensor(kInputNorm, "y"); }},
    {"a projection has the weight of another layer",
     [](E& e) { e.tensor(projection("k"), "weight") = e.parameter("model.layers.0.self_attn.k_proj.weight"); }},
    {"biases of queries are left out",
     [](E& e) {
       e.tensor(projection("q"), "bias") = e.view(e.tensor(projection("q"), "bias"), {0, 16}, {16, 1});
     }},
    // positions
    {"positions do not count from the length of the cache",
     [](E& e) {
       for (const std::string& rope : {kQRope, kKRope})
         e.tensor(rope, "positions") = integers(e, "later positions of " + rope, e.tensor(rope, "positions"));
     },
     "N67"},
    {"keys are one position ahead of their place",
     [](E& e) { e.tensor(kKRope, "positions") = integers(e, "next positions", e.tensor(kKRope, "positions")); }, "N67"},
    {"every sequence stands at the first one's position",
     [](E& e) {
       e.at(kDecode);
       first_row(e, kQRope, "positions"), first_row(e, kKRope, "positions");
     }},
    {"the tokens of a chunk stand at one position",
     [](E& e) {
       e.at(kChunk);
       first_row(e, kQRope, "positions"), first_row(e, kKRope, "positions");
     }},
    {"positions of a chunk count from its beginning",
     [](E& e) {
       e.at(kChunk);
       for (const std::string& rope : {kQRope, kKRope})
         e.tensor(rope, "positions") = integers(e, "places in the chunk of " + rope, e.tensor(rope, "positions"));
     }},
    // caches
    {"caches are allocated and never used",
     [](E& e) {
       for (const std::string_view name : {"k_cache", "v_cache"})
         e.tensor(kDecode, name) =
             e.fresh("another " + std::string(name), e.info(e.tensor(kDecode, name)).shape, Kind::state);
     },
     "N66"},
    {"caches are allocated again in every run",
     [](E& e) { e.mutant().forgetful_step = static_cast<int>(e.at(kDecode)); }, "N66"},
    {"a key lies one place too far",
     [](E& e) { e.tensor(kDecode, "lengths") = integers(e, "next starts", e.tensor(kDecode, "lengths")); }},
    {"every sequence appends at the first one's place", [](E& e) { first_row(e, kDecode, "lengths"); }},
    {"every sequence reads and writes the first one's cache",
     [](E& e) {
       for (const std::string_view name : {"k_cache", "v_cache"}) {
         const ValueInfo cache = e.info(e.tensor(kDecode, name));
         e.tensor(kDecode, name) =
             e.view(e.tensor(kDecode, name), cache.shape, {0, cache.strides[1], cache.strides[2], 1});
       }
     }},
    {"all layers share the first one's cache",
     [](E& e) {
       for (const std::string_view name : {"k_cache", "v_cache"})
         e.tensor(kDecode, name) = e.tensor(kFirst + "self_attn.attention_decode", name);
     }},
    {"keys and values exchange caches",
     [](E& e) { std::swap(e.tensor(kDecode, "k_cache"), e.tensor(kDecode, "v_cache")); }},
    {"values are cached as keys, and keys as values",
     [](E& e) { std::swap(e.tensor(kDecode, "k"), e.tensor(kDecode, "v")); }},
    {"keys are cached as they were before their rotation", [](E& e) { e.bypass(kKRope, "y", "x"); }},
    {"keys are cached as they were before their norm", [](E& e) { e.bypass(kSelf + "k_norm.rmsnorm", "y", "x"); }},
    {"values are rotated",
     [](E& e) {
       Step rope = e.program().steps[e.at(kKRope)];
       const Value v = e.tensor(kDecode, "v"), turned = e.fresh("rotated values", e.info(v).shape);
       const Shape shape = e.info(v).shape;
       rope.tensors = {e.view(v, shape, row_major_strides(shape)), e.tensor(kKRope, "positions"), turned};
       e.insert(e.at(kDecode), rope);
       e.tensor(kDecode, "v") = turned;
     }},
    {"a chunk's keys are not cached", [](E& e) { e.erase(e.at(kSelf + "cache_append")); }},
    {"a chunk's values are not cached", [](E& e) { e.erase(e.at(kSelf + "cache_append.1")); }},
    {"a chunk is cached from the first place on",
     [](E& e) {
       for (const std::string append : {"cache_append", "cache_append.1"})
         e.tensor(kSelf + append, "lengths") =
             integers(e, "no starts of " + append, e.tensor(kSelf + append, "lengths"));
     }},
    {"a chunk sees nothing before it",
     [](E& e) { e.tensor(kChunk, "starts") = integers(e, "no starts", e.tensor(kChunk, "starts")); }},
    {"the tokens of a chunk see those behind them", [](E& e) { e.param(kChunk, "causal") = 0; }},
    {"a chunk's last token sees none of the chunk",
     [](E& e) { e.tensor(kChunk, "lengths") = e.tensor(kChunk, "starts"); }},
    {"all places count as keys",
     [](E& e) {
       e.param(kChunk, "causal") = 0;
       e.tensor(kChunk, "lengths") = integers(e, "all places", e.tensor(kChunk, "lengths"));
     }},
};

/// Makes a saved tensor of the first layer lie in the memory of the second one's.
void reused(E& e, const std::string& label, std::string_view name) {
  e.move(e.tensor(kFirst + label, name), e.tensor(kLayer + label, name));
}
std::string backward(const std::string& label, std::string_view op) {
  return "backward." + label + "." + std::string(op) + "_backward";
}

constexpr BlockFault kTrainingFaults[] = {
    {"queries are saved before their rotation",
     [](E& e) {
       const ValueInfo rotated = e.info(e.tensor(kTraining, "q"));
       e.tensor(backward(kTraining, "attention"), "q") = e.view(e.tensor(kQRope, "x"), rotated.shape, rotated.strides);
     },
     "N71"},
    {"keys are saved before their rotation",
     [](E& e) {
       const ValueInfo rotated = e.info(e.tensor(kTraining, "k"));
       e.tensor(backward(kTraining, "attention"), "k") = e.view(e.tensor(kKRope, "x"), rotated.shape, rotated.strides);
     },
     "N71"},
    {"the next layer reuses the buffer of queries", [](E& e) { reused(e, "self_attn.rope", "y"); }, "N71"},
    {"the next layer reuses the buffer of keys", [](E& e) { reused(e, "self_attn.rope.1", "y"); }, "N71"},
    {"the next layer reuses the buffer of values", [](E& e) { reused(e, "self_attn.v_proj.lora_linear", "y"); }, "N71"},
    {"the next layer reuses the buffer of the gate", [](E& e) { reused(e, "mlp.gate_proj.lora_linear", "y"); }, "N71"},
    {"the next layer reuses the buffer of up", [](E& e) { reused(e, "mlp.up_proj.lora_linear", "y"); }, "N71"},
    {"the next layer reuses the buffer of the residual", [](E& e) { reused(e, "self_attn.residual_add", "y"); }, "N71"},
    {"the input of a layer is not saved", [](E& e) { reused(e, "mlp.residual_add", "y"); }, "N71"},
    {"attn_norm_out is not saved", [](E& e) { reused(e, "input_layernorm.rmsnorm", "y"); }, "N71"},
    {"ffn_norm_out is not saved", [](E& e) { reused(e, "post_attention_layernorm.rmsnorm", "y"); }, "N71"},
    {"attn_output is not saved", [](E& e) { reused(e, "self_attn.attention", "y"); }, "N71"},
    {"silu_gate_output is not saved", [](E& e) { reused(e, "mlp.silu_mul", "y"); }, "N71"},
    {"the reciprocal rms of the norm before attention is allocated and never written",
     [](E& e) { e.tensor(kInputNorm, "rrms") = e.fresh("elsewhere", e.info(e.tensor(kInputNorm, "rrms")).shape); }},
    {"the reciprocal rms of the norm before the feed-forward block is of another layer",
     [](E& e) { reused(e, "post_attention_layernorm.rmsnorm", "rrms"); }},
    {"logsumexp is of another layer", [](E& e) { reused(e, "self_attn.attention", "logsumexp"); }},
};

}  // namespace

std::span<const BlockFault> decode_faults() { return kDecodeFaults; }
std::span<const BlockFault> training_faults() { return kTrainingFaults; }

}  // namespace assay::falsify
