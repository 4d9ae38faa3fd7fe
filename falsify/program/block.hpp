// Blocks of transformers as programs with numbers: what systems, gradient checks, mutants and tests run.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "falsify/engine/random.hpp"
#include "falsify/program/execute.hpp"
#include "program/differentiate.hpp"
#include "program/model/decode.hpp"
#include "program/model/training.hpp"
#include "program/session.hpp"

namespace assay::falsify {

enum class BlockPart { attention, feed_forward, layer, loss, training, classifier, decode, step };

/// A training step, of as many micro-batches, behind `steps` others.
struct StepCase {
  Index micro_batches = 1, steps = 0;
  double lr = 0.01, weight_decay = 0.01, max_norm = 1, eps = 1e-8;
};

/// A block of one configuration, for `batch` sequences of s rows each. Attention, feed_forward and layer read x
/// [batch * s, hidden]. `loss` reads ids and gives a loss for each row; `training` is the same and keeps its
/// activations. `classifier` gives a loss for each sequence. `decode` appends ids to caches and gives logits if s is 1.
/// `step` is a training step of a classifier, whose batches have at most `batch` samples of at most `length` tokens
/// (step.hpp).
struct BlockCase {
  std::string name;
  program::TransformerConfig config;
  BlockPart part = BlockPart::layer;
  Index s = 3;
  Index length = 3;  ///< keys of the first sequence that are no padding; of `decode`, tokens that its cache holds
  Index batch = 1;
  Index capacity = 0;  ///< of the caches of `decode`
  std::uint64_t seed = 0;
  Index classes = 0;         ///< of a classifier
  bool multi_label = false;  ///< binary cross-entropy, else cross-entropy
  bool recomputes = false;   ///< the backward pass computes again what inputs_of_layers() does not name
  StepCase step{};

  Index rows() const { return batch * s; }
  /// Keys of a sequence that are no padding, or tokens in its cache: each has one fewer than that before it, as long as
  /// one is left.
  Index length_of(Index sequence) const {
    return std::max<Index>(part == BlockPart::decode ? 0 : 1, length - sequence);
  }

  friend std::ostream& operator<<(std::ostream& out, const BlockCase& c) { return out << c.name; }
};

/// Several heads, and their width is not the hidden size, as in llama.
inline program::TransformerConfig llama() {
  return {.hidden = 6, .intermediate = 10, .heads = 2, .kv_heads = 2, .head_dim = 4};
}
/// Everything at once: groups of heads, biases, norms of heads, an adapter on every projection.
program::TransformerConfig full();

/// Returns true if activations are stored in 16 bits.
inline bool in_16_bits(const BlockCase& c) { return program::activation_dtype(c.config.weights) != DType::f32; }

struct Block {
  program::Builder builder;
  program::Value x,
      y;  ///< x: of a loss and of decoding, ids; y: of a chunk, which has no logits, the last layer's values
  std::vector<program::Value> caches;  ///< of decoding: keys and values of each layer
  bool recomputes = false;

  explicit Block(const BlockCase& c);

  std::vector<program::Activation> activations;  ///< of training
  std::optional<program::Differentiated> step;   ///< of a training step, with its update
  /// Every parameter that trains, and x where it is real.
  std::vector<program::Value> leaves() const;
  /// Of training, the activations and all that the backward pass reads are states.
  program::Differentiated differentiated() const;
  /// Of training: both passes as two programs, of which differentiated() is the one behind the other.
  program::Passes passes() const;
};

/// Makes float32 numbers for an input, which differ from run to run, or for a parameter. Weights are small against the
/// residual, and so bounds of whole blocks stay small.
std::vector<double> numbers_of(const BlockCase& c, const program::Program& program, program::Value of, int run = 0);

/// Calls f(value) for every input and parameter, and in run 0 for every cache: a cache that a run leaves is that of the
/// next one.
void for_each_set_by_host(const program::Program& program, const std::function<void(program::Value)>& f, int run = 0);

/// The weights of a case that are not in f32, or are in parts, as a model in float32 has them, by name.
std::map<std::string, std::vector<double>> whole_weights(const BlockCase& c, const program::Program& program);

/// Of decoding: the ids of a run, and ids as its program takes them.
std::vector<double> tokens_of(const BlockCase& c, int run = 0);
std::vector<double> taken(const BlockCase& c, const std::vector<double>& tokens);

/// Sets every input and parameter of a session, and in run 0 its caches.
void set_all(program::Session& session, const BlockCase& c, int run = 0);
/// Sets one of them, converted to its type.
void set(program::Session& session, program::Value v, const std::vector<double>& numbers);

template <class T>
void write(View<T> view, const std::vector<double>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) view.data()[i] = T(numbers[i]);
}

template <class T>
std::vector<T> read(View<T> view) {
  return {view.data(), view.data() + view.size()};
}

template <class T>
void set_all(Execution<T>& execution, const program::Program& program, const BlockCase& c, int run = 0) {
  for_each_set_by_host(
      program, [&](program::Value v) { write(execution[v], numbers_of(c, program, v, run)); }, run);
}

}  // namespace assay::falsify
