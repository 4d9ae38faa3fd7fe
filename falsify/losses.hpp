// Inputs that softmaxes and losses share: logits where a log-sum-exp is most sensitive.
#pragma once

#include "falsify/engine/inputs.hpp"

namespace assay::falsify {

/// Overwrites each row of logits [rows, classes] by one of: a dominant last class, gaps beyond exp's range, a confident
/// or hopeless target, the largest floats, ties, all equal, all far below zero (a masked lane that counts as 0 would
/// outweigh them), rising or falling, few that matter. `targets` may move to the class in question.
void direct_logits(std::vector<float>& logits, std::vector<float>& targets, Index rows, Index classes, Random& random);

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

}  // namespace assay::falsify
