#include "cli/classifier_score.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace assay::cli {
namespace score {
namespace {

std::vector<double> probabilities(const program::Judgement& j, bool several) {
  std::vector<double> p;
  const double most = *std::ranges::max_element(j.logits);
  for (const float x : j.logits) p.push_back(several ? 1 / (1 + std::exp(-double{x})) : std::exp(x - most));
  const double sum = several ? 1 : std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace
}  // namespace score

void Score::add(const program::Judgement& j, const program::Sample& s) {
  bool correct = !s.labels.empty() || j.label == s.label;
  for (std::size_t c = 0; c < s.labels.size(); ++c) correct = correct && (j.logits[c] >= 0) == (s.labels[c] > 0.5F);
  loss += j.loss, right += correct, ++samples;
}

std::string judgement_lines(const program::Corpus& corpus, const std::vector<program::Judgement>& judged,
                            const std::vector<std::string>& classes) {
  std::string lines;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const program::Sample& sample = corpus.samples[i];
    const program::Judgement& j = judged[i];
    const bool several = !sample.labels.empty();
    const std::vector<double> p = score::probabilities(j, several);
    nlohmann::json line{{"line", corpus.lines[i]}, {"loss", j.loss}};
    for (std::size_t c = 0; c < p.size(); ++c) line["probabilities"][classes[c]] = p[c];
    if (several) {
      line["labels"] = line["predicted"] = nlohmann::json::array();
      for (std::size_t c = 0; c < p.size(); ++c) {
        if (sample.labels[c] > 0.5F) line["labels"].push_back(classes[c]);
        if (j.logits[c] >= 0) line["predicted"].push_back(classes[c]);
      }
    } else {
      line["label"] = classes[static_cast<std::size_t>(sample.label)];
      line["predicted"] = j.label < 0 ? nlohmann::json() : nlohmann::json(classes[static_cast<std::size_t>(j.label)]);
    }
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace assay::cli
