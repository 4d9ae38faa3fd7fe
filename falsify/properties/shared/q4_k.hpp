// Q4_K super-blocks as inputs: valid ones of every kind, and changes of single parts.
#pragma once

#include <vector>

#include "core/q4_k.hpp"
#include "falsify/engine/random.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::q4_k {

using namespace assay::q4_k;

/// One super-block in the values of a u8 tensor, a byte in each.
class Block {
 public:
  explicit Block(float* bytes) : bytes_(bytes) {}

  Half d() const { return half(0); }
  Half dmin() const { return half(2); }
  void set_d(Half x) { set_half(0, x); }
  void set_dmin(Half x) { set_half(2, x); }
  Scale scale(Index b) const;
  void set_scale(Index b, Scale s);
  unsigned code(Index i) const;
  void set_code(Index i, unsigned code);
  /// Returns the value as core/q4_k.hpp decodes it.
  float decoded(Index i) const;

 private:
  Half half(Index at) const;
  void set_half(Index at, Half x);
  void packed(std::uint8_t (&to)[kBytes]) const;

  float* bytes_;
};

/// Returns super-block n of a row of a tensor [rows, row_bytes(k)].
inline Block block_of(std::vector<float>& bytes, Index k, Index row, Index n) {
  return Block(bytes.data() + row * row_bytes(k) + n * kBytes);
}

/// Calls f(block, row, number of the super-block in it).
template <class F>
void for_each_block(std::vector<float>& bytes, Index rows, Index k, F f) {
  for (Index i = 0; i < rows; ++i)
    for (Index n = 0; n < assay::q4_k::blocks_of(k); ++n) f(block_of(bytes, k, i, n), i, n);
}

/// Turns random bytes into blocks of the strategy: d and dmin ordinary, of any exponent, subnormal, near the largest
/// half, zeros of both signs, or (nonfinite) some NaN and infinite; 1 for exact strategies, so that values are
/// integers.
void make_blocks(std::vector<float>& bytes, Index rows, Index k, Strategy strategy, Random& random);

/// Makes blocks of W [rows, k] and the elements of X [x_rows, k] of a product X Wᵀ. For exact strategies: 12-bit integers
/// selected by weights, integer weights selected by x, or one weight of full precision.
void make_product(std::vector<float>& blocks, Index rows, std::vector<float>& x, Index x_rows, Index k,
                  Strategy strategy, Random& random);
/// Makes every weight 1.
void make_ones(std::vector<float>& bytes, Index rows, Index k);

/// Draws random codes for the padding of every row, and random scales for sub-blocks that are all padding.
void scramble_padding(std::vector<float>& bytes, Index rows, Index k, Random& random);

/// Returns the values [rows, k], as core/q4_k.hpp decodes them.
std::vector<float> values_of(const std::vector<float>& bytes, Index rows, Index k);

/// Returns the dims of the trial's case with at least one row, and a k whose rows have padding.
std::vector<Index> ragged(const Trial& trial, Random& random);
/// True if rows end within a super-block.
inline bool has_padding(const Problem& problem) { return problem.dims[1] % kValues != 0; }
inline Outcome no_padding() { return Outcome::not_applicable("the kernel takes whole super-blocks alone"); }
inline Outcome no_whole_blocks() { return Outcome::not_applicable("the kernel takes no rows of whole super-blocks"); }

}  // namespace assay::falsify::q4_k
