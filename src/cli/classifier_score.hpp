// Judgements of samples against their labels: loss, accuracy, probabilities.
#pragma once

#include <string>
#include <vector>

#include "program/model/corpus.hpp"

namespace assay::cli {

/// A sample with several labels is right if each of them is: a class holds from a probability of a half.
struct Score {
  double loss = 0;  ///< the sum
  Index right = 0, samples = 0;

  void add(const program::Judgement& judged, const program::Sample& sample);
  double mean() const { return loss / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(samples); }
};

/// JSON Lines: of each sample its line in the corpus, loss, labels, what is predicted, and the probability of each
/// class, by softmax or, where several labels may hold, by the logistic function.
std::string judgement_lines(const program::Corpus& corpus, const std::vector<program::Judgement>& judged,
                            const std::vector<std::string>& classes);

}  // namespace assay::cli
