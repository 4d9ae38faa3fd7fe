#include "import/domain.hpp"

#include <algorithm>
#include <optional>
#include <regex>

#include "contract/expression.hpp"

namespace assay::import {
namespace {

/// Returns the text in lower case if contracts allow it as a name.
std::optional<std::string> name_from(std::string text) {
  text = lower(std::move(text));
  const bool limit = text.ends_with("_min") || text.ends_with("_max");
  return contract::usable_name(text) && !limit ? std::optional(text) : std::nullopt;
}

bool number(const std::string& text) {
  return !text.empty() && text.size() < 7 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the extents of "n", "{M×K}" or "{n x 3}"; empty if one is neither a name nor a number.
std::optional<std::vector<std::string>> shape_from(const std::string& text) {
  static const std::regex braces(R"(\{(.*)\})"), times("\\s*(?:×|\\s[x*]\\s|\\*)\\s*");
  std::smatch inner;
  const std::string list = std::regex_match(text, inner, braces) ? inner[1].str() : text;
  std::vector<std::string> shape;
  for (std::sregex_token_iterator part(list.begin(), list.end(), times, -1), end; part != end; ++part) {
    const std::string extent = part->str();
    const auto name = number(extent) ? std::optional(extent) : name_from(extent);
    if (!name) return std::nullopt;
    shape.push_back(*name);
  }
  return shape.empty() || shape.size() > 4 ? std::nullopt : std::optional(shape);
}

bool has_tensor(const Declared& declared, const std::string& name) {
  return std::ranges::find(declared.tensors, name, &KnownTensor::name) != declared.tensors.end();
}

Declared::Dim* find_dim(Declared& declared, const std::string& name) {
  const auto found = std::ranges::find(declared.dims, name, &Declared::Dim::name);
  return found == declared.dims.end() ? nullptr : &*found;
}

/// Declares a tensor and its dims. Returns false if a name already has another meaning.
bool add_tensor(Declared& declared, const std::string& written, const std::string& exponent, bool output) {
  const auto name = name_from(written);
  const auto shape = shape_from(exponent);
  if (!name || !shape || find_dim(declared, *name) != nullptr) return false;
  const auto clashes = [&](const std::string& extent) { return extent == *name || has_tensor(declared, extent); };
  if (std::ranges::any_of(*shape, clashes)) return false;
  const auto known = std::ranges::find(declared.tensors, *name, &KnownTensor::name);
  if (known != declared.tensors.end()) return known->shape == *shape && known->output == output;
  for (const std::string& extent : *shape)
    if (!number(extent) && find_dim(declared, extent) == nullptr) declared.dims.push_back({extent, ""});
  declared.tensors.push_back({*name, *shape, output});
  return true;
}

bool add_part(Declared& declared, const std::string& part, bool output) {
  static const std::regex named("([A-Za-z][A-Za-z0-9_]*) *(?:∈|in) *(?:ℝ|R)\\^(\\{[^{}]*\\}|[A-Za-z0-9_]+)");
  static const std::regex unnamed("(?:ℝ|R)\\^(\\{[^{}]*\\}|[A-Za-z0-9_]+)");
  static const std::regex at_least("([A-Za-z][A-Za-z0-9_]*) *(?:≥|>=) *([0-9]{1,6})");
  std::smatch match;
  if (std::regex_match(part, match, named)) return add_tensor(declared, match[1], match[2], output);
  if (output && std::regex_match(part, match, unnamed)) return add_tensor(declared, "y", match[1], true);
  if (!std::regex_match(part, match, at_least)) return false;
  const auto name = name_from(match[1]);
  Declared::Dim* const dim = name ? find_dim(declared, *name) : nullptr;
  if (dim == nullptr || (!dim->min.empty() && dim->min != match[2])) return false;
  dim->min = match[2];
  return true;
}

}  // namespace

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c;
  return text;
}

std::vector<std::string> Declared::add(const std::string& text, bool output) {
  std::vector<std::string> left;
  for (const std::string& part : contract::separated(text))
    if (!add_part(*this, part, output)) left.push_back(part);
  return left;
}

}  // namespace assay::import
