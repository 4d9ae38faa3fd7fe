// Inputs shared by softmaxes and losses: logits at which a log-sum-exp is most sensitive.
#pragma once

#include "falsify/engine/inputs.hpp"

namespace assay::falsify {

/// Overwrites each row of logits [rows, classes] by one of: a dominant last class, gaps beyond exp's range, a confident
/// or hopeless target, the largest floats, ties, all equal, all far below zero (a masked lane that counts as 0 would
/// outweigh them), rising or falling, or a few that matter. `targets` may move to the class in question.
void direct_logits(std::vector<float>& logits, std::vector<float>& targets, Index rows, Index classes, Random& random);

/// Scores of a row of n that only affect whole tiles, for the strategy `runs`: a stretch of at most 256 places is far
/// below the rest, or -inf if `infinite`, so that a first or last tile is negligible; or the maximum grows from tile to
/// tile; or it lies in the first tile.
class TileScores {
 public:
  TileScores(Index n, bool infinite, Random& random);
  double operator()(Index place, Random& random) const;

 private:
  /// rising: each place exceeds all before it, so that the last visible place dominates.
  enum class Kind { stretch, growing, first, rising } kind_;
  Runs runs_;
  double below_;
  Index tile_;
  double step_, rise_;
};

/// Overwrites each row of values [rows, n] with TileScores.
void tile_rows(std::vector<float>& values, Index rows, Index n, Random& random);

/// Scores of a row of n with a handful within 16 of each other and all others some 60 below: a short sum with a tight
/// bound for any n, so that an error of single terms shows in long rows too. In most rows the handful are within 1 of
/// each other and of 0, with exact differences, so that almost only their exponentials round.
class SparseLogits {
 public:
  SparseLogits(Index n, Random& random);
  /// Returns the next element's score.
  double operator()(Random& random) const;

 private:
  double chance_;
  bool near_;
};

/// Makes nonnegative class weights, some of them 0: PyTorch's way to ignore a class.
void make_class_weights(std::vector<float>& weights, Random& random);

}  // namespace assay::falsify
