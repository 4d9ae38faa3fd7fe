#include "falsify/engine/inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/half.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify {
namespace {

struct Extents {
  Index rows, columns;  // a vector is one row
};

Extents extents_of(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  const Index columns = shape[shape.rank() - 1];
  return {columns == 0 ? 0 : shape.size() / columns, columns};
}

/// Draws an odd integer with its top bit set, so that it uses all bits.
float odd_integer(int bits, Random& random) {
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  return static_cast<float>(random.either_sign(static_cast<double>((top + random.below(top)) | 1)));
}

float planted(Random& random) {
  switch (random.below(4)) {
    case 0: return std::numeric_limits<float>::infinity();
    case 1: return -std::numeric_limits<float>::infinity();
    default: {  // a quiet NaN with a payload of its own
      const auto payload = static_cast<std::uint32_t>(random.below(0x3fffff) + 1);
      return std::bit_cast<float>(0x7fc00000u | payload | static_cast<std::uint32_t>(random.below(2) << 31));
    }
  }
}

/// Draws a position that kernels treat specially: ends and tile edges.
Index edge_position(Index length, Random& random) {
  static constexpr Index kEdges[] = {0, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128};
  if (random.chance(0.4)) return random.chance(0.5) ? 0 : length - 1;
  if (random.chance(0.5)) {
    const Index edge = tile_edge(random.between(0, length - 1), random);
    return std::max<Index>(edge - random.between(0, 1), 0);
  }
  return std::min(kEdges[random.below(std::size(kEdges))], length - 1);
}

using Matrix = std::vector<float>;

template <class F>
void for_each(const Extents& e, F f) {
  for (Index i = 0; i < e.rows; ++i)
    for (Index j = 0; j < e.columns; ++j) f(i, j, static_cast<std::size_t>(i * e.columns + j));
}

/// Fills with a single 1 in each row, or in each column. Sums of selected 12-bit integers stay exact up to 4096 terms.
void fill_one_hot(Matrix& v, const Extents& e, Random& random) {
  std::ranges::fill(v, 0.0f);
  if (v.empty()) return;
  const bool by_row = e.rows == 1 || random.chance(0.5);
  for (Index line = 0; line < (by_row ? e.rows : e.columns); ++line) {
    const auto at = static_cast<Index>(random.below(static_cast<std::uint64_t>(by_row ? e.columns : e.rows)));
    v[static_cast<std::size_t>(by_row ? line * e.columns + at : at * e.columns + line)] = 1.0f;
  }
}

/// Fills with at most one 1 in each row and each column, so that a product selects and never adds.
void fill_selection(Matrix& v, const Extents& e, Random& random) {
  std::ranges::fill(v, 0.0f);
  const Index longer = std::max(e.rows, e.columns), shorter = std::min(e.rows, e.columns);
  if (shorter == 0) return;
  const Index shift = static_cast<Index>(random.below(static_cast<std::uint64_t>(longer)));
  const bool reverse = random.chance(0.5);
  for (Index d = 0; d < shorter; ++d) {
    const Index along = (reverse ? longer - 1 - d + shift : d + shift) % longer;
    const Index i = e.rows >= e.columns ? along : d, j = e.rows >= e.columns ? d : along;
    v[static_cast<std::size_t>(i * e.columns + j)] = 1.0f;
  }
}

/// Fills with -1, 0, 1, at most 4096 of them nonzero in any row or column: 4096 * 4095 < 2^24.
void fill_selectors(Matrix& v, const Extents& e, Index longest, Random& random) {
  const Index step = (longest + 4095) / 4096;
  for_each(e, [&](Index i, Index j, std::size_t at) {
    const auto draw = random.below(3);
    v[at] = step > 1 && (i + j) % step != 0 ? 0.0f : static_cast<float>(draw) - 1.0f;
  });
}

void fill_graded(Matrix& v, const Extents& e, Random& random) {
  std::vector<int> row(static_cast<std::size_t>(e.rows)), column(static_cast<std::size_t>(e.columns));
  for (int& x : row) x = static_cast<int>(random.between(-10, 10));
  for (int& x : column) x = static_cast<int>(random.between(-10, 10));
  for_each(e, [&](Index i, Index j, std::size_t at) {
    v[at] = static_cast<float>(
        std::ldexp(random.gaussian(), row[static_cast<std::size_t>(i)] + column[static_cast<std::size_t>(j)]));
  });
}

void fill_dominant(Matrix& v, const Extents& e, Random& random) {
  for (float& x : v) x = static_cast<float>(random.gaussian());
  if (v.empty()) return;
  const bool along_rows = random.chance(0.5);
  for (Index line = 0; line < (along_rows ? e.rows : e.columns); ++line) {
    const Index at = edge_position(along_rows ? e.columns : e.rows, random);
    float& x = v[static_cast<std::size_t>(along_rows ? line * e.columns + at : at * e.columns + line)];
    x = std::copysign(4096.0f * (1 + std::fabs(x)), x);
  }
}

/// Scales each row by Runs: negligible elements are zero or 2^-20 of the rest, so that products of several stay far
/// above subnormals and scale exactly.
void fill_runs(Matrix& v, const Extents& e, Random& random) {
  for (Index i = 0; i < e.rows; ++i) {
    const Runs runs(e.columns, random);
    const float dominated = random.chance(0.5) ? 0.0F : 0x1p-20F;
    for (Index j = 0; j < e.columns; ++j)
      v[static_cast<std::size_t>(i * e.columns + j)] =
          static_cast<float>(random.gaussian()) * (runs.counts(j) ? 1 : dominated);
  }
}

void fill_scaled(Matrix& v, int exponent, Random& random) {
  const double scale = std::ldexp(1.0, exponent);
  for (float& x : v) x = static_cast<float>(random.gaussian() * scale);
}

}  // namespace

Runs::Runs(Index n, Random& random) : begin_(0), end_(n), inside_(random.chance(0.25)) {
  const bool tiles = random.chance(0.4);
  const double bits = 8 * random.uniform();
  const Index length = std::min<Index>(n, std::lround(std::exp2(tiles ? std::ceil(bits) : bits)));
  switch (random.below(3)) {
    case 0: end_ = length; break;
    case 1: begin_ = tiles && n > 0 ? (n - 1) / length * length : n - length; break;
    default: begin_ = random.between(0, n - length), end_ = begin_ + length;
  }
}

std::vector<float> make_values(const Shape& shape, Strategy strategy, bool wide, int exact_bits, Index longest,
                               Random& random) {
  Matrix v(static_cast<std::size_t>(shape.size()));
  const Extents e = extents_of(shape);
  switch (strategy) {
    case Strategy::one_hot:
      if (wide)
        for (float& x : v) x = odd_integer(exact_bits, random);
      else fill_one_hot(v, e, random);
      break;
    case Strategy::distinct_index: {
      const std::size_t period = (std::size_t{1} << std::min(24, exact_bits * 2)) - 1;
      const std::size_t limit = exact_bits >= 12 ? period : (std::size_t{1} << exact_bits) - 1;
      if (wide)
        for (std::size_t at = 0; at < v.size(); ++at) v[at] = static_cast<float>(at % limit + 1);
      else fill_selection(v, e, random);
      break;
    }
    case Strategy::exact_integers:
      if (wide)
        for (float& x : v) x = odd_integer(exact_bits, random);
      else fill_selectors(v, e, longest, random);
      break;
    case Strategy::directed:  // the operation's hook fills the values
    case Strategy::gaussian: fill_scaled(v, 0, random); break;
    case Strategy::same_sign:
      for (float& x : v) x = static_cast<float>(random.uniform());
      break;
    case Strategy::cancellation:
      for_each(e, [&](Index i, Index j, std::size_t at) {
        const double sign = wide && ((i + j) & 1) ? -1.0 : 1.0;
        v[at] = static_cast<float>(sign * (1 + std::ldexp(random.gaussian(), -12)));
      });
      break;
    case Strategy::graded: fill_graded(v, e, random); break;
    case Strategy::dominant: fill_dominant(v, e, random); break;
    // Of one tensor, the values or their squares are subnormal or overflow.
    case Strategy::subnormal:
      fill_scaled(v,
                  !wide                 ? static_cast<int>(random.between(-16, 4))
                  : random.chance(0.75) ? -130
                                        : static_cast<int>(random.between(-76, -50)),
                  random);
      break;
    case Strategy::huge:
      fill_scaled(v,
                  !wide                 ? static_cast<int>(random.between(-12, 3))
                  : random.chance(0.75) ? 124
                                        : static_cast<int>(random.between(48, 66)),
                  random);
      break;
    case Strategy::signed_zeros:
      for (float& x : v) {
        const double g = random.gaussian();
        x = random.chance(0.5) ? static_cast<float>(g) : std::copysign(0.0f, static_cast<float>(g));
      }
      break;
    case Strategy::nonfinite:
      for (float& x : v) {
        const double g = random.gaussian();
        x = random.chance(0.25) ? std::copysign(0.0f, static_cast<float>(g)) : static_cast<float>(g);
      }
      if (!v.empty())
        for (auto n = random.below(3) + (wide ? 1 : 0); n > 0; --n) {
          const auto at = random.below(v.size());
          v[at] = planted(random);
        }
      break;
    case Strategy::runs: fill_runs(v, e, random); break;
  }
  return v;
}

namespace {

/// Draws integers in the tensor's range, its ends included; many near the limits of 15 and 16 bits if the range exceeds
/// them; counted up for `distinct_index`. Of ten tensors, one holds a single number, one the ends alone, one a part of
/// the range, one tile ends, and one numbers that agree in their low 8 or 16 bits. Tensors with a range of more than 16
/// bits mostly use the last kind.
std::vector<float> make_integers(const Problem& problem, std::size_t tensor, Strategy strategy, Random own,
                                 Random& random) {
  const TensorInfo& info = problem.op->tensors[tensor];
  std::vector<float> v(static_cast<std::size_t>(problem.shape(static_cast<int>(tensor)).size()));
  const Index least = info.least ? info.least(problem.dims) : 0,
              most = std::max(least, info.most ? info.most(problem.dims) : 255);
  enum class Kind { one, ends, part, tiles, alike, any };
  const auto drawn_kind = static_cast<Kind>(std::min<std::uint64_t>(own.below(10), 5));
  const bool wide = most - least > 1 << 16;
  const Kind kind = strategy == Strategy::distinct_index ? Kind::any
                    : wide && own.chance(0.6)            ? Kind::alike
                                                         : drawn_kind;
  const bool end = own.chance(0.5);
  const Index first = own.between(least, most), last = kind == Kind::one ? first : own.between(first, most);
  const auto either_end = [&](Random& r) { return r.chance(0.5) ? least : most; };
  const Index alone = end ? either_end(own) : first, limits[] = {1 << 15, 1 << 16, most};
  const Index period = Index{1} << (wide && own.chance(0.9) ? 16 : 8), periods = (most - least) / period;
  const auto any = [&](std::size_t i) -> Index {
    if (strategy == Strategy::distinct_index)
      return least + static_cast<Index>(i) % std::max<Index>(1, most - least + 1);
    const Index drawn = random.chance(0.1) ? either_end(random) : random.between(least, most);
    if (most < limits[0] || !own.chance(0.6)) return drawn;
    const Index limit = limits[own.below(3)];
    return limit + own.between(-64, 64);
  };
  const auto tile = [&] {
    const Index edge = tile_edge(own.between(least, most), own);
    return edge + own.between(-1, 1);
  };
  const auto alike = [&] {
    const Index base = least + (first - least) % period + (own.chance(0.125) ? 1 : 0);
    return periods > 0 && own.chance(0.5) ? base + period * own.between(1, std::min<Index>(periods, 2)) : base;
  };
  const auto draw = [&](std::size_t i) -> Index {
    switch (kind) {
      case Kind::one: return alone;
      case Kind::ends: return either_end(own);
      case Kind::part: return own.between(first, last);
      case Kind::tiles: return tile();
      case Kind::alike: return alike();
      case Kind::any: break;
    }
    return any(i);
  };
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(std::clamp(draw(i), least, most));
  return v;
}

/// True if the tensor counts places of a dim, from none to all, as lengths of sequences do.
bool counts_places(const OpDescriptor& op, const TensorInfo& tensor, std::span<const Index> dims) {
  if (!tensor.least || !tensor.most || tensor.least(dims) != 0) return false;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (range_depends_on(op, tensor, d) && tensor.most(dims) == dims[d]) return true;
  return false;
}

/// The axis of a tensor along which this dim lies; -1: along none, or along several.
int axis_of(const OpDescriptor& op, const TensorInfo& tensor, const std::vector<Index>& dims, std::size_t dim) {
  if (!shape_depends_on(op, tensor, dim)) return -1;
  const Shape shape = tensor.shape(dims);
  int found = -1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == dims[dim]) found = found < 0 ? axis : shape.rank();
  return found < shape.rank() ? found : -1;
}

/// f at each element among the last `places` along the axis.
template <class F>
void for_each_in_tail(std::vector<float>& values, const Shape& shape, int axis, Index places, F f) {
  Index behind = 1;
  for (int inner = axis + 1; inner < shape.rank(); ++inner) behind *= shape[inner];
  const Index block = behind * shape[axis], tail = behind * places;
  for (Index end = block; block > 0 && end <= shape.size(); end += block)
    for (Index at = end - tail; at < end; ++at) f(values[static_cast<std::size_t>(at)]);
}

/// Has the last 1 to 16 places of the longest dim decide, where it is long: a tail of a vector or a tile that a kernel
/// leaves out, or takes twice, shows beside tens of thousands of other terms by nothing less.
void decide_by_tail(Problem& problem, Strategy strategy, const std::vector<std::size_t>& reals, Random random) {
  const auto longest = static_cast<std::size_t>(std::ranges::max_element(problem.dims) - problem.dims.begin());
  if (problem.dims.empty() || problem.dims[longest] < kLongTail || random.chance(0.125)) return;
  const Index places = random.chance(0.5) ? 1 : random.between(1, 16);
  const bool negative = random.chance(0.25);
  for (std::size_t t = 0; t < problem.values.size(); ++t) {  // ids and lengths reach the tail
    const TensorInfo& tensor = problem.op->tensors[t];
    if (tensor.role == Role::out || !tensor.most || !range_depends_on(*problem.op, tensor, longest)) continue;
    for (float& x : problem.values[t])
      if (random.chance(0.5)) x = static_cast<float>(tensor.most(problem.dims));
  }
  for (const std::size_t t : reals) {
    const TensorInfo& tensor = problem.op->tensors[t];
    const int axis = axis_of(*problem.op, tensor, problem.dims, longest);
    if (axis < 0) continue;
    const Shape shape = tensor.shape(problem.dims);
    std::vector<float>& values = problem.values[t];
    if (strategy == Strategy::dominant) {
      for (float& x : values) x = static_cast<float>(random.gaussian());
      for_each_in_tail(values, shape, axis, places,
                       [&](float& x) { x = (negative ? -4096.0F : 4096.0F) * (1 + std::fabs(x)); });
    } else {
      Index left = random.between(1, 3);  // of those in the tail, from the first row on
      for_each_in_tail(values, shape, axis, places, [&](float& x) {
        if (left > 0 && random.chance(0.5)) x = planted(random), --left;
      });
    }
  }
}

/// Makes NaNs signalling. Arithmetic quiets a signalling NaN; a copy keeps it.
void make_signalling(std::vector<float>& values) {
  for (float& x : values)
    if (std::isnan(x)) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x400000u);
}

/// Returns x as stored, or the largest stored number of its sign if x is finite and its nearest one is not.
float nearest_finite(DType storage, float x) {
  const float y = stored(storage, x);
  return std::isfinite(y) || !std::isfinite(x) ? y : std::copysign(storage == DType::f16 ? 65504.0F : 0x1.fep127F, x);
}

}  // namespace

bool keeps_payloads(const OpDescriptor& op) {
  return std::ranges::find(op.pins, "nan_payload", &PinInfo::name) != op.pins.end();
}

Problem make_problem(const OpDescriptor& op, const Case& c, const Arithmetic& arithmetic, DType storage) {
  Problem problem{&op, c.dims, c.params, {}, storage};
  std::vector<std::size_t> inputs, reals;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.tensors[t].role == Role::out) continue;
    inputs.push_back(t);
    if (is_floating(op.tensors[t].dtype)) reals.push_back(t);
  }
  Random random(derive(c.seed, "values"));
  const std::size_t wide = reals.empty() ? 0 : reals[random.below(reals.size())];
  const Index longest = c.dims.empty() ? 1 : *std::ranges::max_element(c.dims);
  const int stored_bits = storage == DType::f16    ? significand_bits(Format::f16)
                          : storage == DType::bf16 ? significand_bits(Format::bf16)
                                                   : 12;
  const int bits =
      std::min({12, significand_bits(arithmetic.inputs), significand_bits(arithmetic.accumulator), stored_bits});
  problem.values.resize(op.tensors.size());
  if (!c.values.empty()) {
    problem.values = c.values;
    return problem;
  }
  problem.exact = is_exact(c, arithmetic) &&
                  std::ranges::find(op.obligations, "exact", &ObligationInfo::by) != op.obligations.end();
  for (std::size_t t : inputs)
    problem.values[t] = is_floating(op.tensors[t].dtype)
                            ? make_values(op.tensors[t].shape(c.dims), c.strategy, t == wide, bits, longest, random)
                            : make_integers(problem, t, c.strategy, Random(derive(c.seed + t, "integers")), random);
  // Kernels have paths of their own for shapes of models without padding.
  if (c.region >= 0 && Random(derive(c.seed, "whole")).chance(0.5))
    for (const std::size_t t : inputs)
      if (counts_places(op, op.tensors[t], c.dims))
        std::ranges::fill(problem.values[t], static_cast<float>(op.tensors[t].most(c.dims)));
  // A factor of zeros hides no nonfinite value of the other: 0 times NaN or infinity is NaN.
  if (c.strategy == Strategy::nonfinite)
    for (std::size_t t : reals)
      if (t != wide && Random(derive(c.seed + t, "all zeros")).chance(0.125))
        std::ranges::fill(problem.values[t], 0.0F);
  if (c.strategy == Strategy::dominant || c.strategy == Strategy::nonfinite)
    decide_by_tail(problem, c.strategy, reals, Random(derive(c.seed, "tail")));
  if (keeps_payloads(op) && Random(derive(c.seed, "signalling")).chance(0.5))
    for (std::size_t t : reals)
      if (problem.dtype(static_cast<int>(t)) == DType::f32) make_signalling(problem.values[t]);
  if (const InputHook hook = input_hook(op.name)) hook(problem, c.strategy, random);
  for (std::size_t t : inputs)
    if (op.tensors[t].storage)
      for (float& x : problem.values[t]) x = nearest_finite(storage, x);
  return problem;
}

}  // namespace assay::falsify
