#include "falsify/engine/draw.hpp"

#include <rapidcheck/Random.h>
#include <rapidcheck/seq/Create.h>
#include <rapidcheck/shrinkable/Create.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "falsify/engine/inputs.hpp"
#include "falsify/engine/joint.hpp"

namespace assay::falsify {
namespace {

constexpr Index kSmall[] = {1, 2, 3, 4, 5, 7, 8, 9};
constexpr Index kMedium[] = {15, 16, 17, 31, 32, 33, 47, 61};
constexpr Index kLarge[] = {63, 64, 65, 100, 127, 128, 129, 130};
constexpr Index kHuge[] = {kMinLarge, 516, 577, 640, 769, 1000, 1021, 1024, 1025};
constexpr Index kLong[] = {191, 255, 256, 257, 300, 509, 512, 513, 1021, 1024, 1025};

/// Each problem of a batch costs a tile or more per head. Above kMaxBatch problems, all other dims are at most
/// kSmallDim.
constexpr Index kMaxBatch = 300, kSmallDim = 2;

template <std::size_t N>
Index pick(const Index (&list)[N], Random& random) {
  return list[random.below(N)];
}

Index draw_dim(const DimInfo& info, Random& random) {
  if (info.max - info.min == 1) return random.between(info.min, info.max);  // a choice
  if (!info.typical.empty() && random.chance(0.05)) return info.typical[random.below(info.typical.size())];
  const double p = random.uniform();
  const Index drawn = p < 0.03   ? 0
                      : p < 0.33 ? pick(kSmall, random)
                      : p < 0.70 ? pick(kMedium, random)
                      : p < 0.95 ? pick(kLarge, random)
                                 : pick(kLong, random);
  // For a dim of blocks, draw as many blocks as a dim of single elements would have groups of 16.
  const Index scaled = info.multiple > 1 ? (drawn + 15) / 16 * info.multiple : drawn;
  return std::clamp(scaled, info.min, info.max);
}

/// Returns the float32 in the range that is nearest to x: kernels take parameters as float32.
double float_inside(const ParamInfo& info, double x) {
  auto nearest = static_cast<float>(x);
  if (nearest < info.min) nearest = std::nextafter(nearest, INFINITY);
  if (nearest > info.max) nearest = std::nextafter(nearest, -INFINITY);
  return nearest;
}

/// Draws a value at which kernels branch: an end of the range; -1, 0 or 1 if inside the range; for integers also values
/// at the limits of 8, 15 and 16 bits.
double special_value(const ParamInfo& info, Random& random) {
  std::vector<double> list{info.min, info.max};
  for (const double x : {-1.0, 0.0, 1.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 65536.0})
    if (info.min < x && x < info.max && (info.integer || x <= 1)) list.push_back(x);
  return float_inside(info, list[random.below(list.size())]);
}

double draw_param(const ParamInfo& info, Random& random) {
  if (!info.choices.empty()) return info.choices[random.below(info.choices.size())];
  const double p = random.uniform();
  if (p < 0.4)
    return info.usual.size() < 2 || random.chance(0.5) ? info.typical : info.usual[random.below(info.usual.size())];
  if (p < 0.7) return special_value(info, random);
  // Draw a factor as a power of two in a few draws.
  if (!info.integer && info.min <= -4 && info.max >= 4 && random.chance(0.25))
    return std::ldexp(random.either_sign(1), static_cast<int>(random.between(-4, 2)));
  // For a range of several orders of magnitude, draw the logarithm uniformly.
  const bool by_magnitude = info.min > 0 && info.max / info.min >= 100;
  // For a decay just below 1, draw the distance from 1 by magnitude.
  const bool below_one = 0.9 <= info.max && info.max < 1 && random.chance(0.5);
  const double drawn = below_one      ? 1 - (1 - info.max) * std::pow((1 - info.min) / (1 - info.max), random.uniform())
                       : by_magnitude ? info.min * std::pow(info.max / info.min, random.uniform())
                                      : info.min + random.uniform() * (info.max - info.min);
  return info.integer ? std::round(drawn) : float_inside(info, drawn);
}

double volume(const std::vector<Index>& dims) {
  double product = 1;
  for (Index d : dims) product *= static_cast<double>(std::max<Index>(d, 1));
  return product;
}

/// Draws more outputs or longer sums than an obligation can afford whose oracle costs as much as the kernel. The dims
/// of the outputs are large; with `any_two`, two random dims.
std::vector<Index> draw_large_dims(const OpDescriptor& op, const DrawSpec& spec, Random& random) {
  std::vector<bool> large;
  for (std::size_t d = 0; d < op.dims.size(); ++d) large.push_back(in_outputs(op, d));
  if (spec.any_two) {
    large.assign(large.size(), false);
    for (int two = 0; two < 2; ++two) large[random.below(large.size())] = true;
  }
  std::vector<Index> dims;
  for (std::size_t d = 0; d < op.dims.size(); ++d) {
    const Index demanded =
        random.chance(0.5) ? spec.largest - random.between(0, 1) : random.between(spec.largest / 2, spec.largest);
    const Index drawn = spec.largest > 0 ? demanded : large[d] ? pick(kHuge, random) : 1;
    dims.push_back(std::clamp(drawn, op.dims[d].min, op.dims[d].max));
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (spec.largest > 0 || large[d]) continue;
    const auto room = static_cast<Index>(static_cast<double>(spec.volume) / volume(dims));
    dims[d] = std::clamp(draw_dim(op.dims[d], random), dims[d], std::max(room, dims[d]));
  }
  make_valid(op, dims);
  return dims;
}

std::vector<Index> draw_dims(const OpDescriptor& op, const DrawSpec& spec, Random& random) {
  if (spec.large) return draw_large_dims(op, spec, random);
  std::vector<Index> dims;
  for (const DimInfo& info : op.dims) dims.push_back(draw_dim(info, random));
  if (spec.long_reductions && !dims.empty()) {
    const std::size_t d = random.below(dims.size());
    dims[d] = std::clamp(pick(kLong, random), op.dims[d].min, op.dims[d].max);
  }
  // Square shapes hide some faults and are the only shapes to show others.
  if (!spec.long_reductions && random.chance(0.15))
    for (std::size_t d = 1; d < dims.size(); ++d) dims[d] = std::clamp(dims[0], op.dims[d].min, op.dims[d].max);
  // One case in fifty may have eight times the volume. In the others the largest dims shrink; in half of the cases one
  // random dim is kept, so that operations with many dims get a long one at times. Every term of an operation with a
  // batch (attention) costs several bounded operations: use an eighth of the volume.
  const std::optional<std::size_t> batch = batch_of(op);
  const double limit = static_cast<double>(spec.volume) * (random.chance(0.02) ? 8 : 1) / (batch ? 8 : 1);
  const std::size_t kept = random.chance(0.5) && !dims.empty() ? random.below(dims.size()) : dims.size();
  // A few independent problems are enough to show a dependence.
  if (batch && kept != *batch)
    dims[*batch] = std::clamp(std::min(dims[*batch], pick(kSmall, random)), op.dims[*batch].min, op.dims[*batch].max);
  while (volume(dims) > limit) {
    std::size_t largest = dims.size();
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const bool can_shrink = dims[d] > std::max<Index>(op.dims[d].min, 1) && d != kept;
      if (can_shrink && (largest == dims.size() || dims[d] > dims[largest])) largest = d;
    }
    if (largest == dims.size()) largest = kept;
    if (largest == dims.size() || dims[largest] <= std::max<Index>(op.dims[largest].min, 1)) break;
    const Index drawn = random.chance(0.5) ? pick(kSmall, random) : pick(kMedium, random);
    dims[largest] = std::min(dims[largest], std::clamp(drawn, op.dims[largest].min, op.dims[largest].max));
  }
  if (has_heads(op) && batch && dims[*batch] > kMaxBatch)
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (d != *batch) dims[d] = std::max(op.dims[d].min, std::min(dims[d], kSmallDim));
  make_valid(op, dims);
  return dims;
}

/// Limits in seconds on a case in a joint shape: usual; usual with heads, whose other cases cost as much. If a region
/// has no shape within the limit, its cheapest may cost more: kMaxOfModels for the differential, whose campaigns need
/// every region; kMaxOfWhole with a whole oracle (only with heads or in blocks), else kMaxOfSampled. One case in ten
/// without a whole oracle takes any shape within kMaxOfSampled. Such a region is visited in one of kVisits turns.
constexpr std::uint64_t kVisits = 4;
constexpr double kUsualJoint = 0.015, kUsualHeads = 0.04, kMaxOfWhole = 0.04, kMaxOfSampled = 0.2, kMaxOfModels = 1.2,
                 kSampledShare = 0.1;

bool whole_tiles(const std::vector<Index>& dims) {
  return std::ranges::all_of(dims, [](Index n) { return n < 4 || n % (n < 16 ? 4 : 16) == 0; });
}

/// Limit in seconds on a case of an operation with heads when kernels run in blocks: larger numbers of batches and
/// heads are left to draw_any_extent().
constexpr double kMaxOfHeads = 0.1;

/// Halves the largest dim until the case costs at most kMaxOfHeads.
void keep_few_tiles(const OpDescriptor& op, const DrawSpec& spec, std::vector<Index>& dims) {
  while (case_cost(op, dims, true, spec.oracle_use) > kMaxOfHeads) {
    const std::size_t largest = static_cast<std::size_t>(std::ranges::max_element(dims) - dims.begin());
    std::vector<Index> fewer = dims;
    fewer[largest] = std::max(dims[largest] / 2, op.dims[largest].min);
    make_valid(op, fewer);
    if (fewer == dims) return;
    dims = std::move(fewer);
  }
}

constexpr Index kFarDims[] = {1030, 4160, 2049, 8200};

/// Sets one dim beyond the range of other cases, just above a possible kernel limit of 1024, 2048, 4096 or 8192, and
/// keeps all others small, so that the case costs no more than average. Uses at most half of a dim's maximum, since an
/// obligation may concatenate two inputs. The turn selects the dim and the extent.
void stretch_one_dim(const OpDescriptor& op, const DrawSpec& spec, Case& c) {
  const OversizedDim& turn = *spec.far;
  std::vector<std::size_t> long_dims;
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (op.dims[d].max / 2 > kFarDims[0]) long_dims.push_back(d);
  if (long_dims.empty()) return;
  // Each dim goes through all of kFarDims, for any number of dims.
  const std::size_t n = long_dims.size();
  const Index wanted = kFarDims[(turn.obligation / n + turn.round / n + turn.round % n) % std::size(kFarDims)];
  Random random(derive(c.seed, "far"));
  const bool whole = random.chance(1.0 / 3);  // a whole number of wide tiles
  const bool bounded = spec.in_blocks && has_heads(op);
  const std::optional<std::size_t> batch = batch_of(op);
  double least = INFINITY;
  for (std::size_t next = 0; next < n && least > kMaxOfHeads; ++next) {
    const std::size_t chosen = long_dims[(turn.obligation + turn.round + next) % n];
    const bool of_batch = chosen == batch;  // a thousand problems are enough
    const Index far = of_batch ? kFarDims[0] : wanted, extent = whole ? (far + 255) / 256 * 256 : far;
    for (const Index most : {!batch ? Index{5} : of_batch && has_heads(op) ? kSmallDim : Index{3}, Index{1}}) {
      std::vector<Index> dims;
      for (std::size_t d = 0; d < op.dims.size(); ++d)
        dims.push_back(d == chosen ? std::clamp(extent, op.dims[d].min, op.dims[d].max / 2)
                                   : few_of(op.dims[d], most, random));
      make_valid(op, dims);
      const double seconds = bounded ? case_cost(op, dims, true, spec.oracle_use) : 0;
      if (seconds < least) least = seconds, c.dims = std::move(dims);
      if (least <= kMaxOfHeads) break;
    }
  }
}

/// Draws an extent near `drawn`: a power of two or a neighbour in a quarter of the draws, a multiple of 16 to 512 or a
/// neighbour in another quarter, any residue modulo 64 in the other half.
Index beside_edge(Index drawn, Index least, Index most, Random& random) {
  const auto kind = random.below(4);
  if (kind > 1) return std::clamp<Index>(drawn / 64 * 64 + random.between(0, 63), least, most);
  const Index power = Index{1} << std::lround(std::log2(static_cast<double>(drawn)));
  const Index edge = kind == 0 ? power : tile_edge(drawn + 16, random);
  return std::clamp<Index>(edge + (random.chance(0.5) ? 0 : random.between(-1, 1)), least, most);
}

/// Draws an extent up to `most`, uniform in its octave.
Index any_extent(Index least, Index most, Random& random) {
  const double octaves = std::log2(static_cast<double>(most) / static_cast<double>(least));
  return beside_edge(static_cast<Index>(static_cast<double>(least) * std::exp2(octaves * random.uniform())), least,
                     most, random);
}

/// Limits of a filled case: its seconds; the seconds of a whole oracle, since a plain kernel may take a fifth of a
/// microsecond per term; the smallest fraction of the seconds that a case is drawn for; octaves of the product of its
/// large dims, and of the largest dim.
constexpr double kMaxFilled = 0.15, kMaxFilledInBlocks = 0.1, kMaxTermsFilled = 0.25, kMinFilled = 0.4,
                 kOctavesFilled = 40, kLongestFilled = 18;
/// Three of five filled cases are slender and cheaper: one dim is long, a second one large, and the others get a part
/// of their octaves. One in eight has few lines of more than 2^16 elements each, together more than 2^20: counters of
/// tiles wrap there.
constexpr double kSlender = 0.6, kSlenderCost = 0.3, kSlenderOctaves = 0.45, kLines = 1.0 / 8;
constexpr Index kLongLine = 1 << 16, kManyElements = 1 << 20;

/// Returns the order of the dims of a filled case: the longest first, then the second longest, each pair of dims in
/// turn; the others in random order. Batches and heads are independent: few of them are enough, so they are rarely
/// among the large dims.
std::vector<std::size_t> dims_in_turn_order(const OpDescriptor& op, const OversizedDim& turn, Random& random) {
  const auto alone = [&](std::size_t d) {
    const auto counts = [&](const DimInfo& other) { return other.multiple_of == static_cast<int>(d); };
    return has_heads(op) &&
           (op.dims[d].independent || op.dims[d].multiple_of >= 0 || std::ranges::any_of(op.dims, counts));
  };
  std::vector<std::size_t> order, rest;
  const bool with_all = random.chance(0.25);
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    (op.dims[d].max > 16 && (with_all || !alone(d)) ? order : rest).push_back(d);
  for (std::size_t place = 1; place < rest.size(); ++place) std::swap(rest[place], rest[random.below(place + 1)]);
  if (const std::size_t n = order.size(); n > 1) {
    const std::uint64_t pair = (turn.round + turn.obligation) % (n * (n - 1));
    std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(pair % n));
    std::swap(order[1], order[1 + pair / n]);
    for (std::size_t place = 3; place < n; ++place) std::swap(order[place], order[2 + random.below(place - 1)]);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

/// Makes few long lines: one of the first two dims is the line, of any residue beyond kLongLine; of the other there are
/// as many as kManyElements takes, and up to eight more. False: the dims do not allow it, or a case cannot afford it.
bool fill_with_lines(const OpDescriptor& op, const DrawSpec& spec, const std::vector<std::size_t>& order,
                     Random& random, Case& c) {
  if (order.size() < 2) return false;
  const std::size_t first = random.below(2), line = order[first], many = order[1 - first];
  if (op.dims[line].max < 2 * kLongLine || op.dims[many].max <= 2 * kManyElements / kLongLine) return false;
  std::vector<Index> dims(op.dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = few_of(op.dims[d], 1, random);
  dims[line] = kLongLine + random.between(1, 1024);
  dims[many] = std::max<Index>(kManyElements / dims[line] + 1 + random.between(0, 8), op.dims[many].min);
  make_valid(op, dims);
  if (case_cost(op, dims, spec.in_blocks, spec.oracle_use) > 2 * (spec.in_blocks ? kMaxFilledInBlocks : kMaxFilled))
    return false;
  c.dims = std::move(dims);
  return true;
}

/// Makes two or three dims, in a third of the draws all dims, as large as a case can afford: kernels have special paths
/// for many rows of many columns, and for many tiles of long sums.
void fill(const OpDescriptor& op, const DrawSpec& spec, Case& c) {
  Random random(derive(c.seed, "filled"));
  const std::size_t n = op.dims.size();
  const std::vector<std::size_t> order = dims_in_turn_order(op, *spec.filled, random);
  Random shape(derive(c.seed, "slender"));
  if (shape.chance(kLines) && fill_with_lines(op, spec, order, shape, c)) return;
  const bool slender = shape.chance(kSlender);
  std::size_t large = 2 + random.below(2);
  if (random.chance(1.0 / 3)) large = n;
  std::vector<Index> few(n), small(n);
  std::vector<double> octaves(n, 0);  // relative sizes of the dims that are large
  for (std::size_t place = 0; place < n; ++place) {
    const std::size_t d = order[place];
    const DimInfo& info = op.dims[d];
    few[d] = small[d] = few_of(info, 3, random);
    if (!info.typical.empty() && random.chance(0.5)) few[d] = info.typical[random.below(info.typical.size())];
    const double least = place == 0 ? 0.5 : place == 1 ? 0.2 : 0.05;
    if (place < large && info.max > 16)
      octaves[d] = (least + (1 - least) * random.uniform()) * (slender && place > 1 ? kSlenderOctaves : 1);
  }
  for (std::size_t d = 0; d < n; ++d)
    if (op.dims[d].multiple_of >= 0)
      few[d] = small[d] = small[static_cast<std::size_t>(op.dims[d].multiple_of)] * random.between(1, 4);
  const double most = (spec.in_blocks ? kMaxFilledInBlocks : kMaxFilled) * (slender ? kSlenderCost : 1) *
                      std::pow(kMinFilled, random.uniform());
  const auto scaled = [&](double scale) {
    std::vector<Index> dims = few;
    for (std::size_t d = 0; d < n; ++d)
      if (octaves[d] > 0)
        dims[d] = std::clamp(static_cast<Index>(std::exp2(std::min(octaves[d] * scale, kLongestFilled))),
                             std::max<Index>(op.dims[d].min, 1), op.dims[d].max);
    make_valid(op, dims);
    return dims;
  };
  const auto affordable = [&](double scale, double part) {
    const std::vector<Index> dims = scaled(scale);
    return case_cost(op, dims, spec.in_blocks, spec.oracle_use) <= part * most &&
           oracle_cost(op, dims) <= part * kMaxTermsFilled;
  };
  constexpr double kMinScale = 0.2;
  if (!affordable(kMinScale, 0.5)) few = small;  // a vocabulary uses the whole budget
  double scale = kOctavesFilled / std::accumulate(octaves.begin(), octaves.end(), 0.05);
  while (scale > kMinScale && !affordable(scale, 1)) scale *= 0.95;
  c.dims = scaled(scale);
  for (std::size_t d = 0; d < n; ++d)
    if (octaves[d] > 0 && c.dims[d] > 64)
      c.dims[d] = beside_edge(c.dims[d], std::max<Index>(op.dims[d].min, 1), op.dims[d].max, random);
  make_valid(op, c.dims);
  if (spec.directed && random.chance(1.0 / 3)) c.strategy = Strategy::runs;
}

constexpr double kMaxBlocks = 16384;
/// Limits in seconds on a case with one extent of any size: usual; in half of the cases if integers are positions along
/// a dim; and, for a check with a sampled oracle, in one turn out of kSeldomEvery, which is one case in 64, or in 384
/// for kernels in blocks, whose usual cases cost more too.
constexpr double kUsual = 0.006, kOften = 0.012, kSeldom = 0.1, kUsualInBlocks = 0.02, kOftenInBlocks = 0.03,
                 kSeldomInBlocks = 1.2;
constexpr std::uint64_t kSeldomEvery = 4, kSeldomEveryInBlocks = 24;
/// Extents beyond 15 bits, 16 bits, and 512, 1024 and 4096 blocks of 256 threads. Half of the drawn extents exceed the
/// limit by less than kBeyond, where counters break; the others by up to three times the limit, so that a sum without
/// the elements beyond it is off by more than its bound.
constexpr Index kLimits[] = {1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 20}, kBeyond = 65;

/// True if integers of the inputs are positions along this dim.
bool is_counted(const OpDescriptor& op, std::size_t dim) {
  return std::ranges::any_of(op.tensors, [&](const TensorInfo& tensor) { return range_depends_on(op, tensor, dim); });
}

/// True if the dim determines the number of integers.
bool has_integers_along(const OpDescriptor& op, std::size_t dim) {
  return std::ranges::any_of(
      op.tensors, [&](const TensorInfo& tensor) { return tensor.least && shape_depends_on(op, tensor, dim); });
}

/// True if a region of the contract exceeds all limits along the only dim: drawn extents need not, and cost more.
bool has_region_beyond_limits(const OpDescriptor& op) {
  return op.dims.size() == 1 && std::ranges::any_of(op.shapes, [&](const ShapeRegion& region) {
           return shape_at(op, region, 0)[0] > kLimits[std::size(kLimits) - 1];
         });
}

bool decides_by_tail(const DrawSpec& spec) {
  return std::ranges::any_of(spec.strategies,
                             [](Strategy s) { return s == Strategy::dominant || s == Strategy::nonfinite; });
}

/// Sets one dim, each in turn, to any extent up to its maximum, and keeps all others small, or at 1 if the cost
/// requires it. Rarely, the dim goes beyond one of kLimits; half of these dims are indexed by ids or lengths. In half
/// of the other turns, ids or lengths index a dim beyond a limit if the case can afford it. Checks with a whole oracle
/// use half of a dim's maximum, since an operation's own obligations may concatenate two inputs.
void draw_any_extent(const OpDescriptor& op, const DrawSpec& spec, Case& c) {
  const OversizedDim& turn = *spec.extent;
  std::vector<std::size_t> long_dims;
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (op.dims[d].max > 128) long_dims.push_back(d);
  if (long_dims.empty()) return;
  Random random(derive(c.seed, "extent"));
  const bool seldom = spec.oracle_use != OracleUse::whole && !has_region_beyond_limits(op) &&
                      (turn.round + turn.obligation) % (spec.in_blocks ? kSeldomEveryInBlocks : kSeldomEvery) == 0;
  const bool often = std::ranges::any_of(long_dims, [&](std::size_t dim) { return is_counted(op, dim); }) &&
                     Random(derive(c.seed, "counted")).chance(0.5);
  const double most_seconds = spec.in_blocks ? (seldom  ? kSeldomInBlocks
                                                : often ? kOftenInBlocks
                                                        : kUsualInBlocks)
                                             : (seldom  ? kSeldom
                                                : often ? kOften
                                                        : kUsual);
  // Several integers are needed to detect mixed-up ones.
  const auto affordable = [&](std::size_t dim, Index extent, Index few, Index integers) {
    for (std::size_t d = 0; d < c.dims.size(); ++d)
      c.dims[d] = d == dim ? extent : few_of(op.dims[d], has_integers_along(op, d) ? integers : few, random);
    make_valid(op, c.dims);
    const bool few_blocks = seldom || !spec.in_blocks || blocks_of(op, c.dims) <= kMaxBlocks;
    return few_blocks && case_cost(op, c.dims, spec.in_blocks, spec.oracle_use) <= most_seconds;
  };
  const auto most_of = [&](std::size_t dim) {
    return spec.oracle_use != OracleUse::whole ? op.dims[dim].max : op.dims[dim].max / 2;
  };
  std::vector<std::pair<std::size_t, Index>> beyond, counted;  // dims, and limits that they can exceed
  for (const std::size_t dim : long_dims)
    for (const Index limit : kLimits) {
      const bool counts = is_counted(op, dim);
      if ((!seldom && !(often && counts)) || most_of(dim) <= limit ||
          !affordable(dim, std::min(limit + kBeyond, most_of(dim)), 1, 1))
        continue;
      (counts ? counted : beyond).emplace_back(dim, limit);
    }
  if (beyond.empty() || (!counted.empty() && random.chance(0.5))) beyond = std::move(counted);
  std::size_t chosen = long_dims[(turn.obligation + turn.round) % long_dims.size()];
  Index least = std::max<Index>(op.dims[chosen].min, 64), most = most_of(chosen);
  if (!beyond.empty()) {
    auto [dim, limit] = beyond[random.below(beyond.size())];
    // Kernels that fail beyond a limit usually fail beyond a higher one, too.
    if (random.chance(0.6))
      for (const auto& [other, higher] : beyond)
        if (other == dim) limit = std::max(limit, higher);
    chosen = dim;
    most = most_of(dim);
    least = std::min(limit + random.between(-1, 2), most);
    most = std::min(random.chance(0.5) ? least + random.between(0, kBeyond - 2) : 4 * limit, most);
  }
  // Strategies whose last places decide (inputs.cpp) need dims that are long enough to have a tail.
  if (constexpr Index kLong = 2 * kLongTail;
      beyond.empty() && most > kLong && decides_by_tail(spec) && random.chance(0.5) && affordable(chosen, kLong, 1, 1))
    least = kLong;
  const DimInfo& info = op.dims[chosen];
  for (Index extent = any_extent(least, most, random);; extent = any_extent(least, most, random)) {
    for (const auto& [few, integers] : {std::pair<Index, Index>{3, 9}, {1, 9}, {3, 3}, {1, 1}})
      if (affordable(chosen, extent, few, integers)) return;
    if (extent <= least) {
      if (least <= std::max<Index>(info.min, 1)) return;
      least = std::max<Index>(info.min, 1);
    }
    most = std::max(least, extent - 1);
  }
}

/// Rounds all dims to whole tiles. Kernels are tuned for these and often have a separate path (vector loads, no masks)
/// that requires whole tiles in all dims at once, with a dense or aligned layout.
void keep_whole_tiles(const OpDescriptor& op, Case& c) {
  for (std::size_t d = 0; d < c.dims.size(); ++d) {
    Index& n = c.dims[d];
    n = std::clamp(n >= 16 ? n / 16 * 16 : n >= 4 ? n / 4 * 4 : n, op.dims[d].min, op.dims[d].max);
  }
  make_valid(op, c.dims);
  c.layout = c.seed % 3 == 0 ? Layout::pitched : Layout::tight;
}

Case draw_case(const OpDescriptor& op, const DrawSpec& spec, Random& random) {
  Case c;
  c.dims = draw_dims(op, spec, random);
  c.params = draw_params(op, random);
  const std::size_t drawn = random.below(spec.strategies.size());
  c.strategy = spec.strategies[spec.turn ? *spec.turn % spec.strategies.size() : drawn];
  const double directed = spec.joint && has_heads(op) ? 0.6 : 0.3;  // lengths and masks as models have them
  if (op.directed && spec.directed && random.chance(directed)) c.strategy = Strategy::directed;
  c.layout = static_cast<Layout>(random.below(kNearLayouts));
  c.placement = static_cast<Placement>(random.below(kPlacements));
  c.seed = random.bits();
  if (random.chance(1.0 / 6)) keep_whole_tiles(op, c);
  if (spec.in_blocks && has_heads(op) && !spec.large) keep_few_tiles(op, spec, c.dims);
  if (spec.far) stretch_one_dim(op, spec, c);
  if (spec.joint) make_joint(op, spec, *spec.joint, c);
  if (spec.extent) draw_any_extent(op, spec, c);
  if (spec.filled) fill(op, spec, c);
  // A single dominant element in each row, the last one included, shows a dropped tail of a long row.
  const bool long_rows = spec.far || spec.joint || spec.extent || spec.filled;
  if (long_rows && std::ranges::find(spec.strategies, Strategy::dominant) != spec.strategies.end() &&
      Random(derive(c.seed, "dominant")).chance(*std::ranges::max_element(c.dims) >= kLongTail ? 0.6 : 0.125))
    c.strategy = Strategy::dominant;
  if (!spec.dims.empty()) {
    Random random(derive(c.seed, "dims"));
    c.dims = joint_dims(op, spec.dims, random);
    c.region = -1;
  }
  if (spec.far_rows) c.layout = Layout::far_rows, c.placement = Placement::sentinels;
  return c;
}

/// Returns 0, 1 and halves of the value, smallest first.
std::vector<Index> smaller(Index value, Index least) {
  std::vector<Index> list;
  for (Index candidate : {least, Index{1}, Index{2}, Index{3}, value / 2, value - value / 4, value - 1})
    if (candidate >= least && candidate < value && std::ranges::find(list, candidate) == list.end())
      list.push_back(candidate);
  std::ranges::sort(list);
  return list;
}

/// True if the dims are valid and every integer of the inputs is within their range.
bool allows(const OpDescriptor& op, const Case& c) {
  if (!valid(op, c.dims)) return false;
  for (std::size_t t = 0; t < c.values.size(); ++t) {
    const TensorInfo& info = op.tensors[t];
    if (info.least == nullptr || c.values[t].empty()) continue;
    const auto [least, most] = std::ranges::minmax(c.values[t]);
    if (least < static_cast<float>(info.least(c.dims)) || most > static_cast<float>(info.most(c.dims))) return false;
  }
  return true;
}

/// Appends the case without a part of one dim, and without the values there: either half, the last place, the first.
void cut(const OpDescriptor& op, const Case& c, std::vector<Case>& out) {
  for (std::size_t d = 0; d < c.dims.size(); ++d) {
    const Index n = c.dims[d], step = op.dims[d].multiple;
    for (const auto& [begin, end] :
         {std::pair{n / 2 / step * step, n}, {Index{0}, n - n / 2 / step * step}, {Index{0}, n - step}, {step, n}}) {
      if (end - begin >= n || end - begin < std::max<Index>(op.dims[d].min, 1)) continue;
      Places kept{d, {}};
      for (Index at = begin; at < end; ++at) kept.at.push_back(at);
      Case next = c;
      next.dims[d] = end - begin;
      next.region = -1;
      bool fits = true;
      for (std::size_t t = 0; fits && t < c.values.size(); ++t) {
        if (c.values[t].empty()) continue;
        const std::vector<std::size_t> from = sampled_positions(op.tensors[t], c.dims, kept);
        fits = static_cast<Index>(from.size()) == op.tensors[t].shape(next.dims).size();
        next.values[t].resize(from.size());
        std::ranges::transform(from, next.values[t].begin(), [&](std::size_t at) { return c.values[t].at(at); });
      }
      if (fits && allows(op, next)) out.push_back(std::move(next));
    }
  }
}

void simplify_values(const OpDescriptor& op, const Case& c, std::vector<Case>& out) {
  const auto with = [&](std::size_t t, std::size_t i, float value) {
    Case next = c;
    next.values[t][i] = value;
    out.push_back(std::move(next));
  };
  for (std::size_t t = 0; t < c.values.size(); ++t)
    for (std::size_t i = 0; i < c.values[t].size(); ++i) {
      const float x = c.values[t][i];
      if (!is_floating(op.tensors[t].dtype)) {  // packed bits cannot be simplified
        const float least = op.tensors[t].least ? static_cast<float>(op.tensors[t].least(c.dims)) : x;
        if (x != least) with(t, i, least);
        continue;
      }
      if (x == 0 && !std::signbit(x)) continue;
      with(t, i, 0.0f);
      if (x == 1) continue;
      with(t, i, 1.0f);
      const float whole = std::round(x);
      if (std::isfinite(x) && whole != x && std::fabs(x) < 1e6f) with(t, i, whole);
      else if (std::isfinite(x) && std::fabs(x) > 2) with(t, i, std::trunc(x / 2));
    }
}

}  // namespace

void make_joint(const OpDescriptor& op, const DrawSpec& spec, const OversizedDim& turn, Case& c) {
  Random random(derive(c.seed, "joint"));
  const std::size_t regions = op.shapes.size();
  const bool sampled = spec.oracle_use != OracleUse::whole,
             any = sampled && Random(derive(c.seed, "sampled")).chance(kSampledShare);
  const double most = spec.every_region                 ? kMaxOfModels
                      : sampled                         ? kMaxOfSampled
                      : has_heads(op) || spec.in_blocks ? kMaxOfWhole
                                                        : kUsualJoint,
               usual = any             ? kMaxOfSampled
                       : has_heads(op) ? kUsualHeads
                                       : kUsualJoint;
  for (std::size_t next = 0; next < regions; ++next) {
    const std::size_t region = (turn.round + turn.obligation + next) % regions;
    const std::size_t shapes = shapes_in(op, op.shapes[region]), first = random.below(shapes);
    std::vector<std::pair<double, std::vector<Index>>> drawn;
    double cheapest = INFINITY;
    for (std::size_t s = 0; s < shapes; ++s) {
      std::vector<Index> dims = joint_dims(op, shape_at(op, op.shapes[region], (first + s) % shapes), random);
      const double cost = case_cost(op, dims, spec.in_blocks, spec.oracle_use);
      cheapest = std::min(cheapest, cost);
      drawn.emplace_back(cost, std::move(dims));
      if (cost <= usual) break;
    }
    // Tiles of heads meet masks only after several visits; an expensive region of other operations needs one.
    const bool again = !has_heads(op) && turn.round / regions % kVisits != 0;
    if (cheapest > most || (again && cheapest > usual)) continue;
    const double limit = std::max(usual, spec.every_region ? std::min(2 * cheapest, most) : cheapest);
    auto& [seconds, dims] = *std::ranges::find_if(drawn, [&](const auto& d) { return d.first <= limit; });
    c.dims = std::move(dims);
    c.region = static_cast<int>(region);
    // Each region is combined with each choice. The last choice, which enables an option, comes first and twice: few
    // cases have both a mask and a second tile.
    std::uint64_t choice = (turn.round + turn.obligation) / regions + region;
    for (std::size_t p = 0; p < c.params.size(); ++p)
      if (const auto& choices = op.params[p].choices; !choices.empty()) {
        c.params[p] = choices[choices.size() - 1 - choice % (choices.size() + 1) % choices.size()];
        choice /= choices.size() + 1;
      }
    if (random.chance(0.5) && whole_tiles(c.dims)) c.layout = Layout::tight;
    if (spec.directed && random.chance(1.0 / 3)) c.strategy = Strategy::runs;
    return;
  }
}

namespace {

std::map<std::string_view, DrawSpec>& draws_by_name() {
  static std::map<std::string_view, DrawSpec> by_name;
  return by_name;
}

}  // namespace

CheckDraws::CheckDraws(std::string_view by, DrawSpec spec) { draws_by_name().emplace(by, std::move(spec)); }

const DrawSpec& draw_spec(std::string_view by) {
  static const DrawSpec usual{.directed = true};
  const auto at = draws_by_name().find(by);
  return at == draws_by_name().end() ? usual : at->second;
}

std::vector<Case> simpler(const OpDescriptor& op, const DrawSpec& spec, const Case& c) {
  std::vector<Case> list;
  if (!c.values.empty()) {
    cut(op, c, list);
    if (count_of_values(c) <= kMaxValues) simplify_values(op, c, list);
    return list;
  }
  const auto with = [&](auto change) {
    Case next = c;
    change(next);
    if (next != c) list.push_back(std::move(next));
  };
  for (std::size_t d = 0; d < c.dims.size(); ++d)
    for (Index value : smaller(c.dims[d], op.dims[d].min))
      with([&](Case& n) {
        n.dims[d] = value;
        n.region = -1;
        make_valid(op, n.dims);
      });
  for (std::size_t p = 0; p < c.params.size(); ++p) {
    with([&](Case& n) { n.params[p] = op.params[p].typical; });
    if (op.params[p].integer && op.params[p].min <= 0)
      with([&](Case& n) { n.params[p] = std::max(0.0, op.params[p].min); });
  }
  with([](Case& n) { n.layout = Layout::tight; });
  with([](Case& n) { n.placement = Placement::sentinels; });
  for (Strategy s : spec.strategies) {
    if (s == c.strategy) break;
    with([&](Case& n) { n.strategy = s; });
  }
  for (std::size_t d = 0; d < c.prelude.size(); ++d)
    for (Index value : smaller(c.prelude[d], op.dims[d].min))
      with([&](Case& n) {
        n.prelude[d] = value;
        make_valid(op, n.prelude);
      });
  return list;
}

std::vector<double> draw_params(const OpDescriptor& op, Random& random) {
  std::vector<double> params;
  for (const ParamInfo& param : op.params) params.push_back(draw_param(param, random));
  return params;
}

Case prelude_of(const OpDescriptor& op, const Case& c) {
  Case before = c;
  Random random(derive(c.seed, "prelude"));
  before.dims = c.prelude;
  for (int attempt = 0; attempt < 10 && before.params == c.params; ++attempt) before.params = draw_params(op, random);
  before.prelude.clear();
  before.values.clear();
  return before;
}

rc::Gen<Case> case_gen(const OpDescriptor& op, const DrawSpec& spec) {
  return [&op, spec](const rc::Random& source, int) {
    rc::Random copy = source;
    Random random(copy.next());
    return rc::shrinkable::shrinkRecur(draw_case(op, spec, random), [&op, spec](const Case& c) {
      return rc::seq::fromContainer(simpler(op, spec, c));
    });
  };
}

namespace {

/// Assigns strategies and special dims to rounds. Strategies take turns. Of all rounds of an obligation:
///   - one in 12, or as the check says, has a far dim;
///   - one in 16 has a shape of the contract; one in 8 if the kernel runs in blocks or the check is the differential;
///     one in 4 if it is the differential and the operation has heads;
///   - one in 16 has a dim of any extent; one in 32 if the check is a relation;
///   - three in 16 of the differential and of `exact`, and one in 16 of `statistical` and `nonfinite`, have several
///     dims as large as a case affords, if the operation has several;
///   - one in 24 has far rows.
/// Each obligation uses other rounds for these; modulo 4 they never coincide.
void choose_special_case(const OpDescriptor& op, const ObligationInfo& obligation, std::uint64_t seed,
                         std::uint64_t number, DrawSpec& spec) {
  const std::uint64_t own = derive(seed, obligation.id), strategies = spec.strategies.size();
  const auto same = [&](const ObligationInfo& o) { return o.id == obligation.id; };
  const auto which = static_cast<std::uint64_t>(std::ranges::find_if(op.obligations, same) - op.obligations.begin());
  spec.turn = number + own % strategies;
  // counts only rounds in which the obligation is tried
  const std::uint64_t round = number / static_cast<std::uint64_t>(spec.every);
  const auto turn_of = [&](std::uint64_t every, std::uint64_t at) {
    return (round + 5 * which) % every == at ? std::optional(OversizedDim{round / every, which}) : std::nullopt;
  };
  if (!spec.large) spec.far = turn_of(spec.far_every, spec.far_every - 1);
  if (!spec.large) spec.extent = turn_of(spec.oracle_use == OracleUse::whole ? 32 : 16, 10);
  const std::uint64_t joint = spec.every_region && has_heads(op) ? 4 : spec.in_blocks || spec.every_region ? 8 : 16;
  if (spec.largest == 0 && !op.shapes.empty()) spec.joint = spec.large ? turn_of(4, 1) : turn_of(joint, 5 % joint);
  spec.any_two = turn_of(3, 2).has_value();
  spec.far_rows = !spec.large && turn_of(24, 8).has_value();
  if (spec.fills) spec.filled = turn_of(spec.fills->every, spec.fills->at);
  const auto long_dims = std::ranges::count_if(op.dims, [](const DimInfo& dim) { return dim.max > 16; });
  if (spec.extent || spec.largest != 0 || long_dims < 2) spec.filled = std::nullopt;
  // Decouple the strategy from the dims: three strategies in step with every twelfth round would always give the same
  // one.
  if (spec.far) spec.turn = derive(own ^ number, "far") % strategies;
  if (spec.far && spec.far_strategy)
    spec.turn =
        static_cast<std::uint64_t>(std::ranges::find(spec.strategies, *spec.far_strategy) - spec.strategies.begin());
  if (spec.joint || spec.extent || spec.filled) spec.turn = derive(own ^ number, "joint") % strategies;
}

}  // namespace

rc::Shrinkable<Case> draw(const OpDescriptor& op, const ObligationInfo& obligation, std::uint64_t seed,
                          std::uint64_t number, const DrawnFor& drawn_for) {
  const std::uint64_t own = scramble(derive(seed, obligation.id) ^ number);
  DrawSpec spec = draw_spec(obligation.by);
  if (spec.large) spec.largest = drawn_for.largest;
  spec.in_blocks = drawn_for.in_blocks;
  spec.dims = drawn_for.dims;
  choose_special_case(op, obligation, seed, number, spec);
  return case_gen(op, spec)(rc::Random(own), 0);
}

}  // namespace assay::falsify
