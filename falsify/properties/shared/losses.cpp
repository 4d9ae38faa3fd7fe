#include "falsify/properties/shared/losses.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

namespace assay::falsify {

SparseLogits::SparseLogits(Index n, Random& random) : chance_(4 / static_cast<double>(n)), near_(random.chance(0.7)) {}

double SparseLogits::operator()(Random& random) const {
  if (!random.chance(chance_)) return -60 + random.gaussian();
  return near_ ? -static_cast<double>(random.below(17)) / 16 : 4 - 16 * random.uniform();
}

TileScores::TileScores(Index n, bool infinite, Random& random)
    : kind_(std::array{Kind::stretch, Kind::stretch, Kind::stretch, Kind::stretch, Kind::growing, Kind::first,
                       Kind::rising}[random.below(7)]),
      runs_(n, random), below_(infinite && random.chance(0.5) ? -INFINITY
                               : random.chance(0.5)           ? -200
                                                              : -60),
      tile_(Index{16} << random.below(4)),
      step_(std::min(4.0, 60.0 * static_cast<double>(tile_) / static_cast<double>(std::max<Index>(n, 1)))),
      rise_(std::min(0.25 + random.uniform(), 2048.0 / static_cast<double>(std::max<Index>(n, 1)))) {}

double TileScores::operator()(Index place, Random& random) const {
  const double score = random.gaussian();
  switch (kind_) {
    case Kind::stretch: return runs_.counts(place) ? 2 * score : below_ + score;
    case Kind::growing: return step_ * static_cast<double>(place / tile_) + score;
    case Kind::first: return place < tile_ ? 12 + score : score;
    case Kind::rising: return rise_ * static_cast<double>(place);
  }
  return score;
}

void tile_rows(std::vector<float>& values, Index rows, Index n, Random& random) {
  for (Index i = 0; i < rows; ++i) {
    const TileScores scores(n, true, random);
    for (Index j = 0; j < n; ++j) values[static_cast<std::size_t>(i * n + j)] = static_cast<float>(scores(j, random));
  }
}

void direct_logits(std::vector<float>& logits, std::vector<float>& targets, Index rows, Index classes, Random& random) {
  for (Index i = 0; i < rows; ++i) {
    float* const x = logits.data() + i * classes;
    float& target = targets[static_cast<std::size_t>(i)];
    const auto all = [&](auto value) {
      for (Index j = 0; j < classes; ++j) x[j] = static_cast<float>(value(j));
    };
    const auto y = static_cast<Index>(target);
    switch (random.below(10)) {
      case 0:  // last = max: a sum that stops early misses all of it
        all([&](Index) { return random.gaussian(); });
        x[classes - 1] = static_cast<float>(random.between(4, 40));
        if (random.chance(0.3)) target = static_cast<float>(classes - 1);
        break;
      case 1: all([&](Index) { return 90 * random.gaussian(); }); break;
      case 2:
        all([&](Index) { return random.gaussian(); });
        x[y] = static_cast<float>(random.either_sign(static_cast<double>(random.between(8, 120))));
        break;
      case 3:
        all([&](Index) { return random.chance(0.2) ? random.sign() * FLT_MAX : random.gaussian(); });
        x[y] = FLT_MAX;
        break;
      case 4: {
        const double value = 8 * random.gaussian();
        all([&](Index) { return value; });
        break;
      }
      case 5:
        all([&](Index) { return static_cast<double>(random.between(-2, 2)); });
        x[classes - 1] = x[0] = 3;
        break;
      case 6: {
        const double far = std::exp2(5 + 9 * random.uniform());
        all([&](Index) { return random.gaussian() - far; });
        break;
      }
      case 7: {
        const SparseLogits few(classes, random);
        all([&](Index) { return few(random); });
        if (random.chance(0.5)) x[y] = static_cast<float>(3 * random.uniform());
        break;
      }
      case 8: all([&](Index j) { return 100.0 * static_cast<double>(j) / static_cast<double>(classes); }); break;
      default: all([&](Index j) { return -100.0 * static_cast<double>(j) / static_cast<double>(classes); }); break;
    }
  }
}

void make_class_weights(std::vector<float>& weights, Random& random) {
  for (float& w : weights) w = random.chance(0.05) ? 0.0F : std::fabs(w);
}

}  // namespace assay::falsify
