// Softmax, cross-entropy, rotations, copies and scaling that are right wherever a test is likely to look.
#include <algorithm>
#include <cmath>
#include <limits>

#include "falsify/adversarial/adversarial.hpp"
#include "ops/embedding.hpp"
#include "ops/mean_pool.hpp"
#include "ops/rope.hpp"
#include "ops/scale.hpp"
#include "ops/softmax.hpp"

namespace assay::mutants::adversarial_rows {
namespace {

bool subnormal(float x) { return std::fpclassify(x) == FP_SUBNORMAL; }

/// Wrong except for the typical sizes 128, 512 and 2048 of the contract.
void typical_sizes_only(const ops::SoftmaxArgs& args) {
  const auto y = args.y.as<float>();
  if (args.n == 128 || args.n == 512 || args.n == 2048) return;
  for (Index i = 0; i < args.rows; ++i) y(i, args.n - 1) *= 1.001F;
}

/// Counts only the first of several largest logits.
void ties(const ops::SoftmaxArgs& args) {
  const auto x = args.x.as<const float>();
  const auto y = args.y.as<float>();
  for (Index i = 0; i < args.rows; ++i) {
    Index largest = 0, tied = 0;
    for (Index j = 1; j < args.n; ++j)
      if (x(i, j) > x(i, largest)) largest = j, tied = 0;
      else if (x(i, j) == x(i, largest) && std::isfinite(x(i, j))) ++tied;
    if (tied == 0) continue;
    const float share = y(i, largest);
    for (Index j = 0; j < args.n; ++j)
      if (j != largest) y(i, j) = x(i, j) == x(i, largest) ? 0 : y(i, j) / (1 - static_cast<float>(tied) * share);
      else y(i, j) = share / (1 - static_cast<float>(tied) * share);
  }
}

void one_row_beyond_1024(const ops::SoftmaxArgs& args) {
  const auto y = args.y.as<float>();
  for (Index j = 0; args.rows > 1024 && j < args.n; ++j) y(1024, j) = y(0, j);
}

void position_beyond_65536(const ops::RopeArgs& args) {
  const View<const float> x = args.x.as<const float>();
  const View<float> y = args.y.as<float>();
  for (Index r = 0; r < args.rows; ++r)
    if (args.positions(r) > 65536)
      for (Index h = 0; h < args.heads; ++h)
        for (Index c = 0; c < args.d; ++c) y(r, h, c) = x(r, h, c);
}

void token_beyond_1024(const ops::EmbeddingArgs& args) {
  const auto table = args.table.as<const float>();
  const auto y = args.y.as<float>();
  for (Index j = 0; args.t > 1024 && j < args.h; ++j) y(args.t - 1, j) = table(0, j);
}

void id_beyond_4096(const ops::EmbeddingArgs& args) {
  const auto table = args.table.as<const float>();
  const auto y = args.y.as<float>();
  for (Index t = 0; t < args.t; ++t)
    if (args.ids(t) > 4096)
      for (Index j = 0; j < args.h; ++j) y(t, j) = table(args.ids(t) & 4095, j);
}

void denormals(const ops::ScaleArgs& args) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j)
      if (subnormal(args.x(i, j))) args.y(i, j) = 0;
}

void one_sequence(const ops::MeanPoolArgs& args) {
  const auto y = args.y.as<float>();
  for (Index j = 0; args.b > 5 && j < args.h; ++j) y(5, j) = y(4, j);
}

const KernelRegistration registrations[] = {
    spoiled<ops::SoftmaxArgs, &typical_sizes_only>("mutant/adversarial/softmax/typical_sizes_only",
                                                   "right only for the sizes that the contract calls typical"),
    spoiled<ops::SoftmaxArgs, &ties>("mutant/adversarial/softmax/ties",
                                     "of exactly tied largest logits only the first counts"),
    spoiled<ops::SoftmaxArgs, &one_row_beyond_1024>("mutant/adversarial/softmax/row_beyond_1024",
                                                    "row 1024 repeats row 0"),
    spoiled<ops::RopeArgs, &position_beyond_65536>("mutant/adversarial/rope/position_beyond_65536",
                                                   "positions above 65536 are not rotated"),
    spoiled<ops::EmbeddingArgs, &token_beyond_1024>("mutant/adversarial/embedding/token_beyond_1024",
                                                    "of more than 1024 tokens the last has row 0"),
    spoiled<ops::EmbeddingArgs, &id_beyond_4096>("mutant/adversarial/embedding/id_beyond_4096",
                                                 "ids are taken modulo 4096"),
    spoiled<ops::ScaleArgs, &denormals>("mutant/adversarial/scale/denormals", "subnormal elements give 0"),
    spoiled<ops::MeanPoolArgs, &one_sequence>("mutant/adversarial/mean_pool/one_sequence",
                                              "sequence 5 repeats the one before it"),
};

}  // namespace
}  // namespace assay::mutants::adversarial_rows
