#include "import/skeleton.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "contract/expression.hpp"

namespace assay::import {
namespace {

/// Returns a YAML scalar in double quotes, or TODO.
std::string scalar(const std::string& text) {
  if (text.empty()) return "TODO";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void dims_and_tensors(std::string& yaml, const Declared& declared) {
  auto out = std::back_inserter(yaml);
  yaml += declared.dims.empty() ? "dims: TODO\n" : "dims:\n";
  for (const Declared::Dim& dim : declared.dims)
    fmt::format_to(out, "  {}: {{min: {}, max: TODO, says: TODO}}\n", dim.name, dim.min.empty() ? "TODO" : dim.min);
  yaml += declared.tensors.empty() ? "tensors: TODO\n" : "tensors:\n";
  for (const KnownTensor& tensor : declared.tensors)
    fmt::format_to(out, "  {}: {{role: {}, dtype: TODO, shape: [{}], says: TODO}}\n", tensor.name,
                   tensor.output ? "out" : "in", fmt::join(tensor.shape, ", "));
  if (!declared.tensors.empty() && std::ranges::none_of(declared.tensors, &KnownTensor::output))
    yaml += "  output: TODO\n";
}

/// Writes a list of clauses that have a wording but no check yet.
void conditions(std::string& yaml, const Skeleton& skeleton, const std::vector<std::string>& words, bool before) {
  auto out = std::back_inserter(yaml);
  if (before && words.empty()) return;
  yaml += before ? "requires:" : "ensures:";
  yaml += words.empty() ? " TODO\n" : "\n";
  for (std::size_t i = 0; i < words.size(); ++i) {
    fmt::format_to(out, "  - id: {}-{}-{:03}\n    expr: TODO\n    says: {}\n", skeleton.code, before ? "PRE" : "POST",
                   i + 1, scalar(words[i]));
    if (before) yaml += "    violate: TODO\n";
  }
}

/// Returns the number after the last id in use, so that new ids are unique.
int first_free(const Skeleton& skeleton) {
  int last = 0;
  const std::string prefix = "FALSIFY-" + skeleton.code + "-";
  for (const Skeleton::Obligation& o : skeleton.obligations)
    if (o.id.starts_with(prefix) && o.id.size() == prefix.size() + 3)
      last = std::max(last, std::stoi(o.id.substr(prefix.size())));
  return last + 1;
}

void checks(std::string& yaml, const Skeleton& skeleton) {
  auto out = std::back_inserter(yaml);
  int number = first_free(skeleton);
  const auto next_id = [&] { return fmt::format("FALSIFY-{}-{:03}", skeleton.code, number++); };
  if (!skeleton.obligations.empty()) yaml += "falsify:\n";
  for (const Skeleton::Obligation& o : skeleton.obligations) {
    fmt::format_to(out, "  - id: {}\n    claim: {}\n", o.id.empty() ? next_id() : o.id, scalar(o.claim));
    if (!o.prediction.empty()) fmt::format_to(out, "    prediction: {}\n", scalar(o.prediction));
    fmt::format_to(out, "    by: TODO\n    if_fails: {}\n", scalar(o.if_fails));
  }
}

}  // namespace

std::string Skeleton::text() const {
  std::string yaml = fmt::format(
      "# Skeleton made from {} by `assay import`. It is no contract before every TODO is filled in\n"
      "# (SCHEMA.md); the loader rejects it until then.\n"
      "op: {}\ncode: {}\nsummary: {}\n",
      source, op, code, scalar(summary));
  auto out = std::back_inserter(yaml);
  yaml += sources.empty() ? "sources: TODO\n" : "sources:\n";
  for (const std::string& item : sources) fmt::format_to(out, "  - {}\n", scalar(item));
  dims_and_tensors(yaml, declared);
  yaml += equations.empty() ? "equations: TODO\n" : "equations:\n";
  for (const auto& [name, formula] : equations)
    fmt::format_to(out, "  {}: {}\n", contract::usable_name(name) && name != "null" ? name : scalar(name),
                   scalar(formula));
  conditions(yaml, *this, requirements, true);
  conditions(yaml, *this, promises, false);
  yaml += "nonfinite: TODO\ndeterminism: TODO\ngradients: TODO  # or no_gradients: why there are none\n";
  checks(yaml, *this);
  return yaml;
}

}  // namespace assay::import
