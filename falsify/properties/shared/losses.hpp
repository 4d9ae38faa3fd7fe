// Inputs that softmaxes and losses share: logits where a log-sum-exp is most sensitive.
#pragma once

#include "falsify/engine/inputs.hpp"

namespace assay::falsify {

/// Overwrites each row of logits [rows, classes] by one of: a dominant last class, gaps beyond exp's range, a confident
/// or hopeless target, the largest floats, ties, all equal, all far below zero (a masked lane that counts as 0 would
/// outweigh them), rising or falling, few that matter. `targets` may move to the class in question.
void direct_logits(std::vector<float>& logits, std::vector<float>& targets, Index rows, Index classes, Random& random);

/// Scores of a row of n that only tiles show, for the strategy `runs`: a stretch of places, at most 256 long, is far below the rest, or -inf
/// where `infinite` allows it, so that a first or last tile has none that counts; the maximum grows from tile to tile; or it stands in the
/// first tile and never grows again.
class TileScores {
 public:
  TileScores(Index n, bool infinite, Random& random);
  double operator()(Index place, Random& random) const;

 private:
  /// Rising: each place counts more than all before it, so that the last one that a row sees decides.
  enum class Kind { stretch, growing, first, rising } kind_;
  Runs runs_;
  double below_;
  Index tile_;
  double step_, rise_;
};

/// Overwrites each row of values [rows, n] with such scores.
void tile_rows(std::vector<float>& values, Index rows, Index n, Random& random);

/// Scores of a row of n of which a handful are within 16 of each other and all others some 60 below: a sum of as few terms,
/// with a bound as tight, however long the row is, so that an error of single terms shows in long rows too. In most rows
/// the handful are within 1 of each other and of 0, and their differences are exact: little else errs beside their exponentials.
class FewMatter {
 public:
  FewMatter(Index n, Random& random);
  /// The next one's score.
  double operator()(Random& random) const;

 private:
  double chance_;
  bool near_;
};

/// Weights of classes are not negative, and some of them 0: PyTorch's way to ignore a class.
void make_class_weights(std::vector<float>& weights, Random& random);

}  // namespace assay::falsify
