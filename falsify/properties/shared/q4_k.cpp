#include "falsify/properties/shared/q4_k.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace assay::falsify::q4_k {

Half Block::half(Index at) const {
  return {static_cast<std::uint16_t>(static_cast<unsigned>(bytes_[at]) | static_cast<unsigned>(bytes_[at + 1]) << 8U)};
}

void Block::set_half(Index at, Half x) {
  bytes_[at] = static_cast<float>(x.bits & 255U);
  bytes_[at + 1] = static_cast<float>(x.bits >> 8U);
}

void Block::packed(std::uint8_t (&to)[kBytes]) const {
  for (Index i = 0; i < kBytes; ++i) to[i] = static_cast<std::uint8_t>(bytes_[i]);
}

Scale Block::scale(Index b) const {
  std::uint8_t bytes[kBytes];
  packed(bytes);
  return unpack(bytes + kPacked, b);
}

void Block::set_scale(Index b, Scale s) {
  std::uint8_t bytes[kBytes], scales[12] = {};
  packed(bytes);
  for (Index other = 0; other < kSubBlocks; ++other)
    pack(scales, other, other == b ? s : unpack(bytes + kPacked, other));
  for (Index i = 0; i < 12; ++i) bytes_[kPacked + i] = scales[i];
}

unsigned Block::code(Index i) const {
  std::uint8_t bytes[kBytes];
  packed(bytes);
  return code_at(bytes, i);
}

void Block::set_code(Index i, unsigned code) {
  float& byte = bytes_[kCodes + i / 64 * 32 + i % 32];
  const unsigned old = static_cast<unsigned>(byte);
  byte = static_cast<float>(i % 64 < 32 ? (old & 0xf0U) | code : (old & 15U) | code << 4U);
}

float Block::decoded(Index i) const {
  std::uint8_t bytes[kBytes];
  packed(bytes);
  return value_at(bytes, i);
}

namespace {

Half any_half(unsigned least_exponent, unsigned largest_exponent, double negative, Random& random) {
  const auto exponent = static_cast<unsigned>(random.between(least_exponent, largest_exponent));
  const unsigned sign = random.chance(negative) ? 0x8000U : 0U;
  return {static_cast<std::uint16_t>(sign | exponent << 10U | random.below(1024))};
}

Half draw_half(Strategy strategy, Random& random) {
  switch (strategy) {
    case Strategy::one_hot:
    case Strategy::distinct_index:
    case Strategy::exact_integers: return to_half(1);
    case Strategy::graded: return any_half(0, 30, 0.5, random);
    case Strategy::subnormal: return any_half(0, 0, 0.3, random);
    case Strategy::huge: return any_half(29, 30, 0.3, random);
    case Strategy::signed_zeros:
      if (random.chance(0.4)) return {static_cast<std::uint16_t>(random.chance(0.5) ? 0x8000 : 0)};
      [[fallthrough]];
    default: return any_half(4, 12, 0.2, random);
  }
}

/// Draws eight distinct sub-block scales that use all bits, and minima in the same way.
void draw_distinct_scales(Block block, Random& random) {
  const auto stride = static_cast<unsigned>(random.between(0, 31) * 2 + 1),
             start = static_cast<unsigned>(random.below(64));
  for (Index b = 0; b < kSubBlocks; ++b) {
    const unsigned n = start + stride * static_cast<unsigned>(b);
    block.set_scale(b, {n & 63U, (n * 13 + 21) & 63U});
  }
}

/// Makes most values of sub-block b 0: d = dmin and m = sc c for their code c.
void make_cancelling(Block block, Random& random) {
  block.set_dmin(block.d());
  for (Index b = 0; b < kSubBlocks; ++b) {
    const auto scale = static_cast<unsigned>(random.between(1, 4)), code = static_cast<unsigned>(random.between(1, 15));
    block.set_scale(b, {scale, scale * code});
    for (Index i = 0; i < kSubBlock; ++i) block.set_code(b * kSubBlock + i, random.chance(0.1) ? code ^ 1U : code);
  }
}

}  // namespace

void make_blocks(std::vector<float>& bytes, Index rows, Index k, Strategy strategy, Random& random) {
  static constexpr Strategy kKinds[] = {Strategy::gaussian, Strategy::graded, Strategy::subnormal, Strategy::huge,
                                        Strategy::signed_zeros};
  const Strategy kind = strategy == Strategy::directed ? kKinds[random.below(std::size(kKinds))] : strategy;
  const bool cancelling = strategy == Strategy::directed && random.chance(0.25);
  for_each_block(bytes, rows, k, [&](Block block, Index, Index) {
    block.set_d(draw_half(kind, random));
    block.set_dmin(draw_half(kind, random));
    if (cancelling) make_cancelling(block, random);
    else if (strategy == Strategy::directed) draw_distinct_scales(block, random);
  });
  if (strategy != Strategy::nonfinite || bytes.empty()) return;
  for (auto n = random.below(3) + 1; n > 0; --n) {
    static constexpr std::uint16_t kBits[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff};
    const Half planted{kBits[random.below(std::size(kBits))]};
    const Index row = random.between(0, rows - 1), at = random.between(0, assay::q4_k::blocks_of(k) - 1);
    Block block = block_of(bytes, k, row, at);
    if (random.chance(0.5)) block.set_d(planted);
    else block.set_dmin(planted);
  }
}

namespace {

/// Makes weights -1, 0, 1, at most `most` of them nonzero in a row.
void make_selectors(std::vector<float>& blocks, Index rows, Index k, Index most, Random& random) {
  for_each_block(blocks, rows, k, [](Block block, Index, Index) {
    block.set_d(to_half(1));
    block.set_dmin(to_half(1));
    for (Index b = 0; b < kSubBlocks; ++b) block.set_scale(b, {1, 1});
    for (Index i = 0; i < kValues; ++i) block.set_code(i, 1);
  });
  for (Index row = 0; row < rows; ++row)
    for (Index n = std::min(most, k); n > 0; --n) {
      const auto at = most == 1 ? static_cast<Index>(random.below(static_cast<std::uint64_t>(k))) : n - 1;
      block_of(blocks, k, row, at / kValues)
          .set_code(at % kValues, most == 1 ? 2 : static_cast<unsigned>(random.below(3)));
    }
}

/// Makes a row of x that selects weights: -1, 0, 1 at most 16384 times (integers below 2^10: sums below 2^24), or once.
void make_selecting(std::span<float> x, bool once, Random& random) {
  std::ranges::fill(x, 0.0F);
  if (once) {
    const auto chosen = random.below(x.size());
    x[chosen] = static_cast<float>(random.sign());
    return;
  }
  const std::size_t step = (x.size() + 16383) / 16384;
  for (std::size_t i = 0; i < x.size(); i += step) x[i] = static_cast<float>(random.below(3)) - 1;
}

}  // namespace

void make_product(std::vector<float>& blocks, Index rows, std::vector<float>& x, Index x_rows, Index k,
                  Strategy strategy, Random& random) {
  const auto kind = random.below(3);
  make_blocks(blocks, rows, k, is_exact(strategy) && kind == 2 ? Strategy::directed : strategy, random);
  if (strategy == Strategy::nonfinite && random.chance(0.4))  // 0 * Inf, with no other NaN present
    for (float& element : x) element = static_cast<float>(0 * random.sign());
  if (!is_exact(strategy) || k == 0) return;
  if (kind == 0) return make_selectors(blocks, rows, k, strategy == Strategy::exact_integers ? 4096 : 1, random);
  for (Index i = 0; i < x_rows; ++i)
    make_selecting(std::span(x).subspan(static_cast<std::size_t>(i * k), static_cast<std::size_t>(k)),
                   kind == 2 || strategy == Strategy::one_hot, random);
}

void make_ones(std::vector<float>& bytes, Index rows, Index k) {
  for_each_block(bytes, rows, k, [](Block block, Index, Index) {
    block.set_d(to_half(1));
    for (Index b = 0; b < kSubBlocks; ++b) block.set_scale(b, {1, 0});
    for (Index i = 0; i < kValues; ++i) block.set_code(i, 1);
  });
}

void scramble_padding(std::vector<float>& bytes, Index rows, Index k, Random& random) {
  const Index last = assay::q4_k::blocks_of(k) - 1, used = k - last * kValues;
  for (Index row = 0; row < rows; ++row) {
    Block block = block_of(bytes, k, row, last);
    for (Index i = used; i < kValues; ++i) block.set_code(i, static_cast<unsigned>(random.below(16)));
    for (Index b = (used + kSubBlock - 1) / kSubBlock; b < kSubBlocks; ++b)
      block.set_scale(b, {static_cast<unsigned>(random.below(64)), static_cast<unsigned>(random.below(64))});
  }
}

std::vector<float> values_of(const std::vector<float>& bytes, Index rows, Index k) {
  const std::vector<std::uint8_t> packed(bytes.begin(), bytes.end());
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(rows * k));
  for (Index i = 0; i < rows; ++i)
    for (Index p = 0; p < k; ++p)
      values.push_back(value_at(packed.data() + i * row_bytes(k) + p / kValues * kBytes, p % kValues));
  return values;
}

std::vector<Index> ragged(const Trial& trial, Random& random) {
  auto [rows, k] = std::pair{trial.the_case().dims[0], trial.the_case().dims[1]};
  if (k % kValues == 0) k = std::max<Index>(0, k - kValues) + random.between(1, kValues - 1);
  return {std::max<Index>(rows, 1), k};
}

}  // namespace assay::falsify::q4_k
