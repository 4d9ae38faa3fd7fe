#include "falsify/program/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/program/check.hpp"
#include "falsify/program/step.hpp"

namespace assay::falsify {
namespace {

using namespace program;

constexpr std::string_view kSources[] = {
    "Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.2", "Ainslie et al., GQA, arXiv:2305.13245",
    "Su et al., RoFormer, arXiv:2104.09864", "Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, equation 6",
    "Hu et al., LoRA, arXiv:2106.09685, section 4.1"};

constexpr DimInfo kBatch{.name = "batch", .min = 1, .max = 256, .says = "sequences"},
    kS{.name = "s", .min = 1, .max = 4096, .says = "positions of each sequence"},
    kLength{.name = "length",
            .min = 1,
            .max = 4096,
            .says = "keys of the first sequence that are no padding; of each further one, one fewer"},
    kHidden{.name = "hidden", .min = 2, .max = 65536, .says = "elements of a position"},
    kIntermediate{.name = "intermediate", .min = 1, .max = 65536, .says = "elements between gate and down"},
    kKvHeads{.name = "kv_heads", .min = 1, .max = 256, .says = "key-value heads"},
    kHeads{.name = "heads", .min = 1, .max = 256, .says = "query heads, a multiple of kv_heads"},
    kHeadDim{
        .name = "head_dim", .min = 1, .max = 256, .says = "elements of a head; heads * head_dim need not be hidden"},
    kLayers{.name = "layers", .min = 1, .max = 64, .says = "decoder layers"},
    kTokens{
        .name = "s", .min = 1, .max = 4096, .says = "tokens that each sequence gets; several are a chunk of a prompt"},
    kHeld{.name = "held",
          .min = 0,
          .max = 4096,
          .says = "tokens in the first sequence's cache; in each further one, one fewer"},
    kCapacity{.name = "capacity", .min = 2, .max = 16384, .says = "places of a cache, for two runs at least"},
    kPart{.name = "part",
          .min = 0,
          .max = 262144,
          .says = "rows of a part of the table, for a device that binds no more; 0: it is whole"},
    kVocabulary{.name = "vocabulary", .min = 2, .max = 262144, .says = "words"},
    kClasses{.name = "classes", .min = 2, .max = 65536, .says = "classes or labels"},
    kRank{.name = "rank", .min = 1, .max = 256, .says = "of adapters"},
    kSamples{.name = "batch", .min = 1, .max = 256, .says = "samples of the first micro-batch, which is full"},
    kMicroBatches{.name = "micro_batches",
                  .min = 1,
                  .max = 16,
                  .says = "runs whose gradients add up, each with one sample fewer, as long as one is left"},
    kPlaces{.name = "s", .min = 1, .max = 4096, .says = "tokens that a sample may have"},
    kTokensOfSample{.name = "length", .min = 1, .max = 4096, .says = "tokens of the longest sample"},
    kSteps{.name = "steps", .min = 0, .max = 999000, .says = "steps before"};

constexpr double kSwitch[] = {0, 1}, kTrainable[] = {0, 1, 2, 3}, kFormats[] = {0, 1, 2, 3, 4},
                 kBaseFormats[] = {0, 1, 3, 4}, kStoredFormats[] = {0, 3, 4};
constexpr WeightFormat kWeightFormats[] = {WeightFormat::f32, WeightFormat::nf4, WeightFormat::q4_k, WeightFormat::bf16,
                                           WeightFormat::f16};
constexpr ParamInfo kTheta{.name = "theta", .max = 1e7, .typical = 10000, .says = "base of the rotation; 0: none"},
    kEps{.name = "eps", .min = 1e-12, .max = 1e-3, .typical = 1e-6, .says = "of every norm"},
    kBiases{.name = "biases", .max = 127, .says = "of projections, a sum as of adapters; Qwen2 has 7", .integer = true},
    kHeadNorms{
        .name = "head_norms", .max = 3, .says = "each head is normed: sum of 1 q, 2 k; Qwen3 has 3", .integer = true},
    kCausal{.name = "causal", .typical = 1, .says = "0: an encoder", .choices = kSwitch},
    kTied{.name = "tied_head", .says = "1: logits by the table of embeddings", .choices = kSwitch},
    kAdapters{
        .name = "adapters", .max = 127, .says = "sum of 1 q, 2 k, 4 v, 8 o, 16 gate, 32 up, 64 down", .integer = true},
    kAlpha{.name = "alpha", .min = 0.25, .max = 64, .typical = 8, .says = "an adapter counts alpha / rank times"},
    kWeights{.name = "weights",
             .says = "of projections and an untied head: 0 f32, 1 nf4, 2 q4_k; of the whole model 3 bf16, 4 f16",
             .choices = kFormats},
    kStored{.name = "weights",
            .says =
                "of the whole model, which then has no leaves but x, adapters and a classifier's head: 0 f32, 3 bf16, "
                "4 f16",
            .choices = kStoredFormats},
    kFrozen{.name = "frozen", .says = "1: where there are adapters, nothing else trains", .choices = kSwitch},
    kBase{.name = "weights",
          .says = "of projections: 0 f32, 1 nf4; of the whole base 3 bf16, 4 f16",
          .choices = kBaseFormats},
    kTrains{.name = "trains",
            .says = "0 everything; with adapters 1 the head, 2 head and norms, 3 nothing else",
            .choices = kTrainable},
    kMultiLabel{
        .name = "multi_label", .says = "1: a loss for each class, else one class a sequence", .choices = kSwitch},
    kLr{.name = "lr", .max = 1, .typical = 0.001, .says = "learning rate"},
    kDecay{.name = "weight_decay", .max = 1, .typical = 0.01, .says = "of every parameter that trains"},
    kMaxNorm{
        .name = "max_norm", .max = 1000, .typical = 1, .says = "of all gradients together; 0: they are not clipped"},
    kAdamEps{.name = "adam_eps", .min = 1e-12, .max = 1e-3, .typical = 1e-8, .says = "of AdamW"};

constexpr DimInfo kAttentionDims[] = {kBatch, kS, kLength, kHidden, kKvHeads, kHeads, kHeadDim, kRank},
                  kFeedForwardDims[] = {kBatch, kS, kHidden, kIntermediate, kRank},
                  kLayerDims[] = {kBatch, kS, kLength, kHidden, kIntermediate, kKvHeads, kHeads, kHeadDim, kRank},
                  kLossDims[] = {kBatch, kS,       kLength, kHidden,     kIntermediate, kKvHeads,
                                 kHeads, kHeadDim, kLayers, kVocabulary, kRank},
                  kClassifierDims[] = {kBatch, kS,       kLength, kHidden,     kIntermediate, kKvHeads,
                                       kHeads, kHeadDim, kLayers, kVocabulary, kClasses,      kRank},
                  kDecodeDims[] = {kBatch, kTokens,  kHeld,   kCapacity,   kHidden, kIntermediate, kKvHeads,
                                   kHeads, kHeadDim, kLayers, kVocabulary, kPart,   kRank},
                  kStepDims[] = {kSamples, kMicroBatches, kPlaces, kTokensOfSample, kHidden,  kIntermediate, kKvHeads,
                                 kHeads,   kHeadDim,      kLayers, kVocabulary,     kClasses, kRank,         kSteps};
constexpr ParamInfo kAttentionParams[] = {kTheta, kEps, kBiases, kHeadNorms, kCausal, kAdapters, kAlpha, kFrozen},
                    kFeedForwardParams[] = {kEps, kBiases, kAdapters, kAlpha, kFrozen},
                    kLayerParams[] = {kTheta, kEps, kBiases, kHeadNorms, kCausal, kAdapters, kAlpha, kFrozen, kStored},
                    kLossParams[] = {kTheta, kEps, kBiases, kHeadNorms, kCausal, kTied, kAdapters, kAlpha, kFrozen},
                    kTrainingParams[] = {kTheta, kEps,      kBiases, kHeadNorms, kCausal,
                                         kTied,  kAdapters, kAlpha,  kFrozen,    kStored},
                    kClassifierParams[] = {kTheta,      kEps,      kBiases, kHeadNorms, kCausal,
                                           kMultiLabel, kAdapters, kAlpha,  kFrozen,    kStored},
                    kDecodeParams[] = {kTheta, kEps, kBiases, kHeadNorms, kTied, kAdapters, kAlpha, kWeights},
                    kStepParams[] = {kTheta, kEps,    kBiases,     kHeadNorms, kCausal, kAdapters, kAlpha,
                                     kBase,  kTrains, kMultiLabel, kLr,        kDecay,  kMaxNorm,  kAdamEps};

constexpr std::string_view kProjectionEquation = "linear(x) = x Wᵀ + bias + alpha / rank (x Aᵀ) Bᵀ",
                           kNormEquation = "norm(x) = x / sqrt(mean(x²) + eps) w, row by row",
                           kAttentionEquation =
                               "h = x + o(attention(rope(norm(q(n))), rope(norm(k(n))), v(n))), n = norm(x)",
                           kMaskEquation =
                               "attention: head h reads key-value head floor(h / (heads / kv_heads)); scores q · k / "
                               "sqrt(head_dim); position i sees the keys j < length and, if causal, j <= i",
                           kFeedForwardEquation = "y = x + down(silu(gate(n)) up(n)), n = norm(x)";
constexpr std::string_view
    kAttentionEquations[] = {kAttentionEquation, kMaskEquation, kProjectionEquation, kNormEquation},
    kFeedForwardEquations[] = {kFeedForwardEquation, kProjectionEquation, kNormEquation},
    kLayerEquations[] = {kAttentionEquation, "y = h + down(silu(gate(n)) up(n)), n = norm(h)", kMaskEquation,
                         kProjectionEquation, kNormEquation},
    kLossEquations[] = {"x = table[ids]; every layer in turn; logits = norm(x) headᵀ",
                        "loss[i] = -weights[target] log softmax(logits[i])[target]",
                        "layer: "
                        "h = x + o(attention(...)), y = h + down(silu(gate(n)) up(n))"},
    kClassifierEquations[] =
        {"x = norm of every layer in turn of table[ids]; logits = mean over a sequence's tokens of "
         "x, times W [hidden, classes], + bias",
         "loss = -weights[target] log softmax(logits)[target], or the mean over the classes of "
         "-(weights t log sigmoid(logits) + (1 - t) log(1 - sigmoid(logits)))",
         "layer: "
         "h = x + o(attention(...)), y = h + down(silu(gate(n)) up(n))"},
    kTrainingEquations[] = {"x = table[ids]; every layer in turn; logits = norm(x) headᵀ",
                            "loss[i] = -weights[target] log softmax(logits[i])[target]",
                            "saved of a layer: its input, norm(input) and 1 / rms, rope(norm(q(n))), "
                            "rope(norm(k(n))), v(n), attention(...), log sum exp(scores)",
                            "saved of a layer: h, norm(h) and 1 / rms, gate(n), up(n), silu(gate(n)) up(n)",
                            kMaskEquation,
                            kProjectionEquation,
                            kNormEquation},
    kDecodeEquations[] = {"x = table[ids]; every layer in turn; logits = norm(x) headᵀ",
                          "layer: keys[held + i] = rope(norm(k(n)), held + i), values[held + i] = v(n); h = x + "
                          "o(attention(...)) over the first held + i + 1 places, y = h + down(silu(gate(n)) up(n))",
                          kMaskEquation, kProjectionEquation, kNormEquation};

constexpr std::string_view kStepSources[] = {
    "Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.2",
    "Hu et al., LoRA, arXiv:2106.09685, section 4.1",
    "Dettmers et al., QLoRA, NeurIPS 2023, section 3",
    "Reimers & Gurevych, Sentence-BERT, EMNLP 2019, section 3",
    "Pascanu, Mikolov & Bengio, On the difficulty of training recurrent neural networks, ICML 2013, algorithm 1",
    "Loshchilov & Hutter, Decoupled Weight Decay Regularization, ICLR 2019, algorithm 2"};
constexpr std::string_view kStepEquations[] = {
    "x = table[tokens]; every layer in turn; logits = mean over the tokens of norm(x), times W, plus bias",
    "loss = weights[label] (log sum exp(logits) - logits[label]), or the mean over classes of weights t log(1 + exp(-x)) + "
    "(1 - t) log(1 + exp(x))",
    "g = sum over all samples of dloss / samples; norm = |g|, of all parameters that train; g' = g min(1, max_norm / norm)",
    "m' = beta1 m + (1 - beta1) g', v' = beta2 v + (1 - beta2) g'²",
    "p' = p - lr (m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + adam_eps) + weight_decay p), t = steps + 1",
    kAttentionEquation,
    kFeedForwardEquation,
    kMaskEquation,
    kProjectionEquation,
    kNormEquation};

/// A layer that is in use.
struct Practice {
  std::string_view name;
  Index hidden, intermediate, kv_heads, heads, head_dim, vocabulary;
  double theta;
  bool qkv_bias, qk_norm, causal;
};
constexpr Practice kPractice[] = {
    {"qwen2-0.5b", 896, 4864, 2, 14, 64, 151936, 1e6, true, false, true},
    {"qwen3-0.6b", 1024, 3072, 8, 16, 128, 151936, 1e6, false, true, true},
    {"encoder of bert's size", 768, 3072, 12, 12, 64, 32000, 0, true, false, false},
    {"llama-3-8b", 4096, 14336, 8, 32, 128, 128256, 500000, false, false, true},
};
/// Layers in the turn of the cases that are of such layers: one case in 24, each once in a default campaign. A whole
/// model costs more: only two of them (-1: none).
constexpr int kFirst = 5, kEvery = 24;
constexpr int kTurns[] = {0, 1, 2, 3}, kLossTurns[] = {2, -1, 0, -1}, kDecodeTurns[] = {0, -1, -1, -1},
              kTrainingTurns[] = {2, -1, -1, -1};

std::span<const int> turns(BlockPart part) {
  switch (part) {
    case BlockPart::loss:
    case BlockPart::classifier: return kLossTurns;
    case BlockPart::training:
    case BlockPart::step: return kTrainingTurns;
    case BlockPart::decode: return kDecodeTurns;
    default: return kTurns;
  }
}

/// Shapes of practice of a system: dims that a layer gives, others drawn.
std::vector<std::vector<Index>> shapes_of_practice(const OpDescriptor& op) {
  std::vector<std::vector<Index>> all;
  for (const Practice& p : kPractice) {
    const std::map<std::string_view, Index> n{{"hidden", p.hidden},        {"intermediate", p.intermediate},
                                              {"kv_heads", p.kv_heads},    {"heads", p.heads},
                                              {"head_dim", p.head_dim},    {"layers", 1},
                                              {"vocabulary", p.vocabulary}};
    all.emplace_back();
    for (const DimInfo& d : op.dims) all.back().push_back(n.contains(d.name) ? n.at(d.name) : kDrawnSmall);
  }
  return all;
}

OpDescriptor descriptor(BlockPart part) {
  OpDescriptor op;
  op.file = "falsify/program/system.cpp", op.sources = kSources;
  switch (part) {
    case BlockPart::attention:
      op.name = "attention_block", op.summary = "attention of the normed x, with its residual";
      op.dims = kAttentionDims, op.params = kAttentionParams, op.equations = kAttentionEquations;
      break;
    case BlockPart::feed_forward:
      op.name = "feed_forward", op.summary = "gated feed-forward block of the normed x, with its residual";
      op.dims = kFeedForwardDims, op.params = kFeedForwardParams, op.equations = kFeedForwardEquations;
      break;
    case BlockPart::layer:
      op.name = "decoder_layer", op.summary = "an attention block and a feed-forward block";
      op.dims = kLayerDims, op.params = kLayerParams, op.equations = kLayerEquations;
      break;
    case BlockPart::loss:
      op.name = "model_loss", op.summary = "a whole decoder of several layers, and the loss of each position";
      op.dims = kLossDims, op.params = kLossParams, op.equations = kLossEquations;
      break;
    case BlockPart::training:
      op.name = "training_forward", op.summary = "the forward pass of model_loss with what its backward pass needs";
      op.dims = kLossDims, op.params = kTrainingParams, op.equations = kTrainingEquations;
      break;
    case BlockPart::classifier:
      op.name = "classifier_loss", op.summary = "a whole model, the mean over each sequence, and the loss of its class";
      op.dims = kClassifierDims, op.params = kClassifierParams, op.equations = kClassifierEquations;
      break;
    case BlockPart::decode:
      op.name = "decode_step",
      op.summary = "tokens of each sequence through a whole decoder, behind those in its caches";
      op.dims = kDecodeDims, op.params = kDecodeParams, op.equations = kDecodeEquations;
      break;
    case BlockPart::step:
      op.name = "training_step", op.summary = "a classifier behind an update by the gradients of several batches";
      op.dims = kStepDims, op.params = kStepParams, op.equations = kStepEquations, op.sources = kStepSources;
      break;
  }
  return op;
}

std::vector<System> make_systems() {
  const auto lacks = [](std::string_view name) {
    return std::ranges::none_of(operations(), [&](const OpDescriptor* op) { return op->name == name; });
  };
  for (const std::string_view name : {"adamw_step",    "attention",    "attention_decode", "bce_with_logits",
                                      "bias_add",      "cache_append", "clip_grad_norm",   "cross_entropy",
                                      "embedding",     "gemv",         "global_grad_norm", "linear",
                                      "lora_linear",   "matmul",       "matmul_nt",        "mean_pool",
                                      "nf4_matmul_nt", "q4_k_gemv",    "residual_add",     "rmsnorm",
                                      "rope",          "scale",        "q4_k_matmul_nt",   "silu_mul"})
    if (lacks(name)) return {};
  std::vector<System> all;
  for (const BlockPart part : {BlockPart::attention, BlockPart::layer, BlockPart::feed_forward, BlockPart::loss,
                               BlockPart::training, BlockPart::classifier, BlockPart::decode, BlockPart::step}) {
    System system{part, descriptor(part), {}, {}, {}, {}};
    for (const SystemObligation& o : part == BlockPart::step ? step_obligations() : system_obligations())
      if (std::ranges::find(o.parts, part) != o.parts.end()) system.obligations.push_back(&o);
    for (const SystemObligation* o : system.obligations) system.infos.push_back(o->info);
    system.op.obligations = system.infos;
    system.extents = shapes_of_practice(system.op);
    for (const int turn : {0, 1, 2, 3})
      if (std::ranges::find(turns(part), turn) != turns(part).end())
        system.shapes.push_back({kPractice[turn].name, system.extents[static_cast<std::size_t>(turn)]});
    system.op.shapes = system.shapes;
    all.push_back(std::move(system));
  }
  return all;
}

/// The numbers of a case by name.
class Named {
 public:
  Named(const System& system, const Case& c) : op_(system.op), c_(c) {}

  Index dim(std::string_view name, Index absent) const {
    for (std::size_t d = 0; d < op_.dims.size(); ++d)
      if (op_.dims[d].name == name) return c_.dims[d];
    return absent;
  }
  double param(std::string_view name, double absent) const {
    for (std::size_t p = 0; p < op_.params.size(); ++p)
      if (op_.params[p].name == name) return c_.params[p];
    return absent;
  }

 private:
  const OpDescriptor& op_;
  const Case& c_;
};

/// The extent of that name.
Index& number(const System& system, Case& c, std::string_view name) {
  const auto at = std::ranges::find(system.op.dims, name, &DimInfo::name) - system.op.dims.begin();
  return c.dims.at(static_cast<std::size_t>(at));
}
void set_param(const System& system, Case& c, std::string_view name, double value) {
  const auto at = std::ranges::find(system.op.params, name, &ParamInfo::name) - system.op.params.begin();
  c.params.at(static_cast<std::size_t>(at)) = value;
}

}  // namespace

std::span<const System> systems() {
  static const std::vector<System> all = make_systems();
  return all;
}

const System* find_system(std::string_view name) {
  const auto found = std::ranges::find(systems(), name, [](const System& s) { return s.op.name; });
  return found == systems().end() ? nullptr : &*found;
}

SystemKernel::SystemKernel(const System& system, Backend backend, const Kernel* of_steps)
    : system_(&system), of_steps_(of_steps), id_(std::make_shared<std::string>()), kernel_(std::make_shared<Kernel>()) {
  *id_ = fmt::format("{}/{}/program{}{}", system.op.name, name(backend), of_steps != nullptr ? "+" : "",
                     of_steps != nullptr ? of_steps->id : "");
  *kernel_ = {.op = system.op.name,
              .id = *id_,
              .backend = backend,
              .source = "src/program/model/transformer.cpp",
              .summary = "steps by the back end's preferred kernels",
              .role = of_steps != nullptr ? of_steps->role : KernelRole::kernel,
              .fault = of_steps != nullptr ? of_steps->fault : ""};
}

SystemKernel SystemKernel::from_id(const System& system, std::string_view id) {
  const std::size_t slash = id.find('/'), plus = id.find('+');
  const std::string_view whole = id.substr(0, plus);
  const std::size_t end = whole.rfind('/');
  if (slash == id.npos || end <= slash || id.substr(0, slash) != system.op.name || whole.substr(end) != "/program")
    throw InputError("kernel '" + std::string(id) + "'", fmt::format("is no program of {}", system.op.name),
                     fmt::format("as in {}/cpu/program", system.op.name));
  return {system, backend_from(std::string(whole.substr(slash + 1, end - slash - 1))),
          plus == id.npos ? nullptr : &assay::kernel(id.substr(plus + 1))};
}

BlockCase block_of(const System& system, const Case& c) {
  const Named given(system, c);
  const auto fail = [&](const std::string& problem) {
    throw InputError(std::string(system.op.name), problem,
                     fmt::format("`assay explain {}` has the dims", system.op.name));
  };
  for (std::size_t d = 0; d < c.dims.size(); ++d)
    if (c.dims[d] < system.op.dims[d].min || c.dims[d] > system.op.dims[d].max)
      fail(fmt::format("{} is {}, and may be {} to {}", system.op.dims[d].name, c.dims[d], system.op.dims[d].min,
                       system.op.dims[d].max));
  BlockCase b{.name = std::string(system.op.name), .config = {}, .part = system.part, .s = given.dim("s", 1)};
  const bool decodes = system.part == BlockPart::decode;
  b.batch = given.dim("batch", 1), b.length = given.dim(decodes ? "held" : "length", b.s), b.seed = c.seed;
  b.capacity = given.dim("capacity", 0), b.classes = given.dim("classes", 0);
  b.multi_label = given.param("multi_label", 0) != 0;
  if (!decodes && b.length > b.s) fail(fmt::format("length is {}, and s {}", b.length, b.s));
  if (const Index needed = b.length + 2 * b.s; decodes && b.capacity < needed)
    fail(fmt::format("capacity is {}, and two runs need {} places", b.capacity, needed));
  TransformerConfig& t = b.config;
  t.hidden = given.dim("hidden", 2), t.intermediate = given.dim("intermediate", 1);
  t.kv_heads = given.dim("kv_heads", 1), t.heads = given.dim("heads", 1), t.head_dim = given.dim("head_dim", 2);
  t.layers = given.dim("layers", 1), t.vocabulary = given.dim("vocabulary", 1);
  t.theta = given.param("theta", 0), t.eps = given.param("eps", 1e-6);
  t.causal = given.param("causal", 1) != 0, t.tied_head = given.param("tied_head", 0) != 0;
  t.adapters.rank = given.dim("rank", 1), t.adapters.alpha = given.param("alpha", 8);
  const unsigned here = system.part == BlockPart::attention ? 15 : system.part == BlockPart::feed_forward ? 112 : 127;
  const auto set_of = [&](std::string_view param) {
    const auto sum = static_cast<unsigned>(given.param(param, 0)) & here;
    std::set<Projection> set;
    for (std::size_t p = 0; p < kProjections.size(); ++p)
      if ((sum >> p & 1U) != 0) set.insert(kProjections[p]);
    return set;
  };
  const auto normed = static_cast<unsigned>(given.param("head_norms", 0));
  t.q_norm = (normed & 1U) != 0, t.k_norm = (normed & 2U) != 0;
  t.biases = set_of("biases"), t.adapters.on = set_of("adapters");
  t.decodes = decodes;
  const double trains = given.param("trains", 0);
  StepCase& step = b.step;
  step = {given.dim("micro_batches", 1),  given.dim("steps", 0),      given.param("lr", 0),
          given.param("weight_decay", 0), given.param("max_norm", 0), given.param("adam_eps", 1e-8)};
  if (trains == 2) t.trained.emplace_back("*norm.weight");
  if (trains == 3) t.trained.clear();
  t.weights = kWeightFormats[static_cast<std::size_t>(given.param("weights", 0))];
  if (const Index part = given.dim("part", 0); part > 0)
    t.largest_buffer = static_cast<std::size_t>(
        (part + 1) * row_bytes(is_packed(t.weights) ? WeightFormat::f32 : t.weights, t.hidden));
  t.trains = !decodes && (given.param("frozen", 0) == 0 || t.adapters.on.empty()) && trains == 0 && !in_16_bits(b);
  check(t);
  if (system.part == BlockPart::training && in_16_bits(b) && t.adapters.on.empty()) fail("nothing trains");
  if (system.part != BlockPart::step) return b;
  if (trains == 3 && t.adapters.on.empty()) fail("nothing trains");
  if (step.max_norm != 0 && step.max_norm < 1e-4)
    fail(fmt::format("max_norm is {}, and may be 0 or 1e-4 at least", step.max_norm));
  return b;
}

Case everything(const System& system, bool tied_head) {
  const std::map<std::string_view, double> n{
      {"batch", 2},          {"s", 4},           {"length", 3},
      {"held", 3},           {"capacity", 6},    {"weights", 0},
      {"part", 0},           {"hidden", 6},      {"intermediate", 10},
      {"kv_heads", 2},       {"heads", 4},       {"head_dim", 4},
      {"layers", 2},         {"vocabulary", 7},  {"rank", 2},
      {"theta", 10000},      {"eps", 1e-6},      {"biases", 7},
      {"head_norms", 3},     {"causal", 1},      {"tied_head", tied_head ? 1 : 0},
      {"adapters", 127},     {"alpha", 8},       {"frozen", 0},
      {"micro_batches", 2},  {"classes", 3},     {"steps", 2},
      {"trains", 0},         {"multi_label", 0}, {"lr", 0.01},
      {"weight_decay", 0.1}, {"max_norm", 0.05}, {"adam_eps", 1e-3}};
  Case c;
  for (const DimInfo& d : system.op.dims) c.dims.push_back(static_cast<Index>(n.at(d.name)));
  for (const ParamInfo& p : system.op.params) c.params.push_back(n.at(p.name));
  if (system.part == BlockPart::decode) number(system, c, "s") = 1;
  return c;
}

std::vector<std::pair<std::string_view, Case>> mutated_cases(const System& system) {
  const Case one = everything(system, true);
  if (system.part == BlockPart::step) {
    // Clipping hides the scale of the gradient, and a causal mask the padding: neither is in the second case.
    Case nf4 = one;
    set_param(system, nf4, "max_norm", 0);
    set_param(system, nf4, "weights", 1), set_param(system, nf4, "trains", 2), set_param(system, nf4, "causal", 0);
    set_param(system, nf4, "multi_label", 1), number(system, nf4, "layers") = 1, number(system, nf4, "steps") = 0;
    return {{"", one}, {"nf4", nf4}};
  }
  if (system.part != BlockPart::decode) return {{"", one}};
  Case chunk = one, nf4 = everything(system), q4_k = nf4;
  number(system, chunk, "s") = 2, number(system, chunk, "capacity") = 8;
  number(system, chunk, "hidden") = 20;  // more than the queries have
  set_param(system, nf4, "weights", 1), set_param(system, q4_k, "weights", 2);
  number(system, nf4, "part") = 3;
  return {{"", one}, {"chunk", chunk}, {"nf4", nf4}, {"q4_k", q4_k}};
}

Case draw(const System& system, bool small, std::uint64_t seed, std::span<const Index> given) {
  Random random(seed);
  const auto one_of = [&](std::initializer_list<Index> all) { return all.begin()[random.below(all.size())]; };
  std::map<std::string_view, double> n;
  const Index s = small ? random.between(1, 4) : one_of({1, 2, 7, 16, 17, 33, 48});
  n["batch"] = static_cast<double>(random.chance(0.6) ? 1 : small ? 2 : one_of({2, 3, 5}));
  n["s"] = static_cast<double>(s);
  n["length"] = static_cast<double>(random.chance(0.6) ? s : random.between(1, s));
  n["hidden"] = static_cast<double>(small ? random.between(2, 6) : one_of({2, 5, 8, 24, 33, 64, 70}));
  n["intermediate"] = static_cast<double>(small ? random.between(1, 8) : one_of({1, 6, 16, 31, 65, 96}));
  const Index kv_heads = small ? random.between(1, 2) : one_of({1, 2, 3});
  n["kv_heads"] = static_cast<double>(kv_heads);
  n["heads"] = static_cast<double>(kv_heads * (small ? random.between(1, 3) : one_of({1, 2, 3, 7})));
  const bool rotates = random.chance(0.75);
  const Index half = small ? random.between(1, 3) : one_of({1, 3, 8, 9, 16, 33});
  n["head_dim"] = static_cast<double>(rotates ? 2 * half : random.between(1, 2 * half));
  n["theta"] = rotates ? static_cast<double>(one_of({10000, 1000000, 500})) : 0;
  n["layers"] = static_cast<double>(random.between(1, 2));
  n["vocabulary"] = static_cast<double>(small ? random.between(2, 7) : one_of({2, 17, 100}));
  n["rank"] = static_cast<double>(small ? random.between(1, 3) : one_of({1, 4, 8, 17}));
  n["eps"] = random.chance(0.7) ? 1e-6 : 1e-5;
  const bool biased = random.chance(0.5), normed = random.chance(0.5);
  n["causal"] = random.chance(0.75);
  n["tied_head"] = random.chance(0.5);
  const bool adapted = random.chance(0.6);
  const auto any_set = static_cast<Index>(random.below(128));
  n["adapters"] = adapted ? static_cast<double>(one_of({5, 15, 112, 127, any_set})) : 0;
  n["alpha"] = static_cast<double>(one_of({2, 8, 16}));
  Random sets(derive(seed, "biases, norms of heads, classes"));
  n["biases"] = !biased ? 0 : sets.chance(0.5) ? 7 : static_cast<double>(sets.below(128));
  n["head_norms"] = !normed ? 0 : sets.chance(0.5) ? 3 : static_cast<double>(sets.below(4));
  n["classes"] = static_cast<double>(sets.between(2, small ? 4 : 40)), n["multi_label"] = sets.chance(0.5);
  // Constants may depend on a size, and a layer may read one that is not the one before it. Such cases have few rows,
  // and cost as much as others.
  Random few(derive(seed, "three layers, heads of models in use"));
  if (small && few.chance(0.2)) {
    n["layers"] = 3;
    n["batch"] = 1, n["s"] = std::min(n["s"], 2.0), n["length"] = std::min(n["length"], n["s"]);
  } else if (small && few.chance(0.125)) {
    constexpr std::pair<int, int> kHeadsInUse[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {1, 7}, {2, 14}, {8, 32}};
    // A training step takes many passes.
    const auto [kv, all] = kHeadsInUse[few.below(system.part == BlockPart::step ? 4 : std::size(kHeadsInUse))];
    constexpr int kHeadDims[] = {64, 80, 96, 128};
    constexpr double kThetas[] = {10000, 500000, 1000000};
    n["kv_heads"] = kv, n["heads"] = all, n["head_dim"] = kHeadDims[few.below(std::size(kHeadDims))];
    n["theta"] = kThetas[few.below(std::size(kThetas))], n["eps"] = few.chance(0.5) ? 1e-6 : 1e-5;
    n["rank"] = few.chance(0.5) ? 8 : 2, n["alpha"] = few.chance(0.5) ? 16 : 32;
    n["hidden"] = std::min(n["hidden"], 4.0), n["layers"] = 1;
    n["batch"] = 1, n["s"] = std::min(n["s"], 2.0), n["length"] = std::min(n["length"], n["s"]);
  }
  Case c;
  c.seed = random.bits();
  n["frozen"] = random.chance(0.25);
  if (system.part == BlockPart::step) {
    n["batch"] = static_cast<double>(random.between(1, 3));
    if (!small) {  // every case is two passes and an update
      n["s"] = std::min(n["s"], 17.0), n["length"] = std::min(n["length"], n["s"]);
      n["layers"] = random.chance(0.3) ? 2 : 1;
    }
    n["micro_batches"] = static_cast<double>(random.between(1, 3));
    n["classes"] = static_cast<double>(small ? random.between(2, 4) : one_of({2, 3, 10, 33}));
    n["steps"] = static_cast<double>(one_of({0, 1, 7, 1000})), n["multi_label"] = random.chance(0.4);
    n["trains"] = static_cast<double>(n["adapters"] != 0 ? random.below(4) : random.chance(0.2) ? 1 : 0);
    n["weights"] = n["trains"] != 0 && random.chance(0.6);
    n["lr"] = random.chance(0.1) ? 0 : random.chance(0.5) ? 0.01 : 0.0003;
    n["weight_decay"] = random.chance(0.3) ? 0 : 0.1;
    n["max_norm"] = random.chance(0.3) ? 0 : random.chance(0.5) ? 0.03125 : 1;
    n["adam_eps"] = random.chance(0.5) ? 1e-8 : 1e-3;
    if (small && n["head_dim"] >= 64) n["batch"] = std::min(n["batch"], 2.0), n["micro_batches"] = 1;
  }
  if (system.part == BlockPart::decode) {
    const bool chunk = random.chance(0.4), packed = random.chance(0.5);
    const Index tokens = !chunk ? 1 : small ? random.between(2, 3) : one_of({2, 5, 16});
    const Index held = random.chance(0.1) ? 0 : small ? random.between(1, 4) : one_of({1, 7, 16, 33, 64});
    n["s"] = static_cast<double>(tokens), n["held"] = static_cast<double>(held);
    n["capacity"] = static_cast<double>(held + 2 * tokens + (random.chance(0.5) ? 0 : random.between(1, 9)));
    n["weights"] = packed ? static_cast<double>(random.between(1, 2)) : 0;
    if (n["weights"] == 2) n["batch"] = n["s"] = 1;
    n["part"] = n["weights"] != 2 && random.chance(0.3) ? static_cast<double>(random.between(1, 5)) : 0;
  }
  // Every fourth case that may be is in 16 bits.
  Random formats(derive(seed, "formats of 16 bits"));
  const double format = formats.chance(0.25) ? static_cast<double>(formats.between(3, 4)) : 0;
  const bool may = system.part == BlockPart::decode     ? n["weights"] != 2
                   : system.part == BlockPart::step     ? n["trains"] != 0
                   : system.part == BlockPart::training ? n["adapters"] != 0
                                                        : true;
  if (format != 0 && may) n["weights"] = format;
  else if (system.part != BlockPart::decode && system.part != BlockPart::step) n["weights"] = 0;
  for (std::size_t d = 0; d < system.op.dims.size(); ++d)
    c.dims.push_back(d < given.size() && given[d] != kDrawnSmall ? given[d]
                                                                 : static_cast<Index>(n.at(system.op.dims[d].name)));
  for (const ParamInfo& p : system.op.params) c.params.push_back(n.at(p.name));
  if (given.empty()) return c;
  // Given numbers displace drawn ones.
  const auto at = [&](std::string_view name) -> Index* {
    for (std::size_t d = 0; d < c.dims.size(); ++d)
      if (system.op.dims[d].name == name && given[d] == kDrawnSmall) return &c.dims[d];
    return nullptr;
  };
  const Named now(system, c);
  if (Index* length = at("length")) *length = std::min(*length, now.dim("s", 1));
  if (Index* capacity = at("capacity")) *capacity = std::max(*capacity, now.dim("held", 0) + 2 * now.dim("s", 1));
  if (Index* heads = at("heads")) *heads = now.dim("kv_heads", 1) * std::max<Index>(1, *heads / now.dim("kv_heads", 1));
  else if (Index* shared = at("kv_heads"); shared != nullptr && now.dim("heads", 1) % *shared != 0) *shared = 1;
  for (std::size_t p = 0; p < c.params.size(); ++p)
    if (system.op.params[p].name == "theta" && now.dim("head_dim", 2) % 2 != 0) c.params[p] = 0;
    else if (system.op.params[p].name == "weights" && c.params[p] == 2 && now.dim("batch", 1) * now.dim("s", 1) > 1)
      c.params[p] = 1;
  return c;
}

Case gradient_case(const System& system, int number, std::uint64_t seed) {
  if (number > 3) return draw(system, true, derive(seed, fmt::format("gradient {}", number)));
  Case c = everything(system, number == 1);
  const auto dim = [&](std::string_view name, Index extent) {
    const auto at = std::ranges::find(system.op.dims, name, &DimInfo::name);
    if (at != system.op.dims.end()) c.dims[static_cast<std::size_t>(at - system.op.dims.begin())] = extent;
  };
  const auto param = [&](std::string_view name, double value) {
    const auto at = std::ranges::find(system.op.params, name, &ParamInfo::name);
    if (at != system.op.params.end()) c.params[static_cast<std::size_t>(at - system.op.params.begin())] = value;
  };
  if (number > 1) dim("batch", 1), dim("layers", 1);
  if (number == 2) dim("kv_heads", 2), dim("heads", 2), param("biases", 127), param("causal", 0);
  if (number == 3) {
    dim("s", 1), dim("length", 1), dim("kv_heads", 1), dim("heads", 3), dim("head_dim", 2);  // as wide as hidden
    param("adapters", 0), param("head_norms", 0);
  }
  return c;
}

std::optional<Case> draw_practice(const System& system, Backend backend, int number, std::uint64_t seed) {
  if (number % kEvery != kFirst) return {};
  const bool step = system.part == BlockPart::step, loss = system.part == BlockPart::loss ||
                                                           system.part == BlockPart::training ||
                                                           system.part == BlockPart::classifier;
  const int turn = turns(system.part)[static_cast<std::size_t>(number / kEvery) % std::size(kTurns)];
  if (turn < 0) return {};
  const Practice& p = kPractice[turn];
  Random random(seed);
  const auto one_of = [&](std::initializer_list<Index> all) { return all.begin()[random.below(all.size())]; };
  const auto batch = one_of({1, 1, 2}), rank = one_of({8, 16}), adapters = one_of({0, 53, 117, 127});
  const bool padded = random.chance(0.4);
  // Gradients of so many weights cost more than the layer: practice adapts such layers.
  const bool frozen = loss || step || p.hidden * p.intermediate > 1 << 24 || random.chance(0.5);
  std::map<std::string_view, double> n{{"batch", batch},
                                       {"s", 1},
                                       {"length", 1},
                                       {"held", 40},
                                       {"weights", loss || system.part == BlockPart::layer ? 0 : 1},
                                       {"part", 0},
                                       {"rank", rank},
                                       {"theta", p.theta},
                                       {"eps", 1e-6},
                                       {"biases", p.qkv_bias ? 7 : 0},
                                       {"head_norms", p.qk_norm ? 3 : 0},
                                       {"causal", p.causal},
                                       {"tied_head", 1},
                                       {"adapters", adapters == 0 && frozen ? 127 : adapters},
                                       {"alpha", 16},
                                       {"frozen", frozen},
                                       {"micro_batches", 2},
                                       {"classes", 5},
                                       {"steps", 7},
                                       {"trains", 2},
                                       {"multi_label", 0},
                                       {"lr", 0.0003},
                                       {"weight_decay", 0.01},
                                       {"max_norm", 1},
                                       {"adam_eps", 1e-8}};
  const auto region = std::ranges::find(system.op.shapes, p.name, &ShapeRegion::name) - system.op.shapes.begin();
  Case c;
  c.seed = random.bits(), c.region = static_cast<int>(region);
  for (std::size_t d = 0; d < system.op.dims.size(); ++d)
    if (const Index extent = system.op.shapes[static_cast<std::size_t>(region)].extents[d]; extent != kDrawnSmall)
      n[system.op.dims[d].name] = static_cast<double>(extent);
  const auto with_rows = [&](Index s) {
    n["s"] = static_cast<double>(s), n["length"] = static_cast<double>(padded ? s / 2 + 1 : s);
    n["capacity"] = n["held"] + 2 * n["s"] + 1;
    c.dims.clear(), c.params.clear();
    for (const DimInfo& d : system.op.dims) c.dims.push_back(static_cast<Index>(n.at(d.name)));
    for (const ParamInfo& param : system.op.params) c.params.push_back(n.at(param.name));
    double seconds = 0;
    for (const Step& step : Block(block_of(system, c)).differentiated().program.steps)
      seconds += case_cost(*step.op, step.dims, traits(backend).blocks, OracleUse::sample);
    return seconds;
  };
  // As many rows as cost at most a second more than a single one.
  const double least = with_rows(1);
  if (system.part == BlockPart::decode) return c;
  if (step) {  // the table and the update cost as much whatever the rows
    with_rows(4);
    return c;
  }
  for (const Index s : {one_of({64, 50, 33}), one_of({17, 16}), Index{7}, Index{4}, Index{2}, Index{1}})
    if (with_rows(s) <= least + 1) return c;
  return c;
}

SessionOptions SystemTrial::options() const {
  return {.choose = [kernel = kernel_.of_steps(), &device = on()](const Step& step) -> const Kernel* {
    if (kernel == nullptr || step.op->name != kernel->op) return nullptr;
    expect_in_its_place(step, *kernel, device);
    return kernel;
  }};
}

const Wiring& SystemTrial::wiring() const {
  if (!wiring_) wiring_ = std::make_unique<Wiring>(block_);
  return *wiring_;
}

const StepOfCase& SystemTrial::step() const {
  if (!step_) step_ = std::make_shared<const StepOfCase>(block_);
  return *step_;
}

}  // namespace assay::falsify
