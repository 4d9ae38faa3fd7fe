#include "plugin/declaration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

#include "contract/reader.hpp"
#include "core/errors.hpp"

namespace assay::plugin {
namespace {

/// One key: its words in the order of the enumeration behind it, or none where it takes a number.
struct Key {
  std::string_view name;
  std::vector<std::string_view> words;
  std::function<int(const Declaration&)> get;
  std::function<void(Declaration&, int)> set;
};

template <class E, std::size_t N>
std::vector<std::string_view> names_of(const E (&values)[N]) {
  std::vector<std::string_view> names;
  for (E value : values) names.push_back(name(value));
  return names;
}

template <class E>
Key choice(std::string_view key, std::vector<std::string_view> words, E Arithmetic::*member) {
  return {key, std::move(words), [member](const Declaration& d) { return static_cast<int>(d.arithmetic.*member); },
          [member](Declaration& d, int v) { d.arithmetic.*member = static_cast<E>(v); }};
}
template <class E>
Key choice(std::string_view key, std::vector<std::string_view> words, E Declaration::*member) {
  return {key, std::move(words), [member](const Declaration& d) { return static_cast<int>(d.*member); },
          [member](Declaration& d, int v) { d.*member = static_cast<E>(v); }};
}

const std::vector<Key>& keys() {
  using enum FunctionLibrary;
  static const std::vector<std::string_view> formats =
      names_of({Format::f32, Format::tf32, Format::f16, Format::bf16, Format::tf32x3});
  static const std::vector<std::string_view> roundings{"nearest", "toward_zero"}, answers{"no", "yes"};
  static const std::vector<Key> table{
      choice("inputs", formats, &Arithmetic::inputs),
      choice("input_rounding", roundings, &Arithmetic::input_rounding),
      choice("accumulator", formats, &Arithmetic::accumulator),
      choice("accumulation", roundings, &Arithmetic::accumulation),
      choice("block", {}, &Arithmetic::block),
      choice("flush_to_zero", answers, &Arithmetic::flushes_subnormals),
      choice("fma", answers, &Arithmetic::fuses_products),
      choice("functions", names_of({c_library, highway, cuda, cuda_exp2, vulkan, octant}), &Arithmetic::functions),
      choice("online_tile", {}, &Arithmetic::online_tile),
      choice("lazy_rescaling", {}, &Arithmetic::lazy_rescaling),
      choice("merges_parts", answers, &Arithmetic::merges_parts),
      choice("frequencies", {"exact", "powers", "products"}, &Arithmetic::frequencies),
      choice("loses", names_of({Loss::nothing, Loss::confident, Loss::stable, Loss::small_scale}), &Arithmetic::loses),
      choice("storage", names_of({DType::f32, DType::f16, DType::bf16}), &Declaration::storage),
      choice("deterministic", answers, &Declaration::deterministic),
      choice("batch_invariant", answers, &Declaration::batch_invariant),
      choice("backend", {"cpu", "cuda-host", "cuda"}, &Declaration::backend)};
  return table;
}

/// The backends that can be declared are not all neighbours in their enumeration.
int stored(const Key& key, int word) {
  return key.name == "backend" && word == 2 ? static_cast<int>(Backend::cuda) : word;
}
int shown(const Key& key, int value) {
  return key.name == "backend" && value == static_cast<int>(Backend::cuda) ? 2 : value;
}

int value_of(const Key& key, std::string_view text, const std::string& where) {
  if (key.words.empty()) {
    constexpr int kLargest = 1 << 20;
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0 || number > kLargest)
      throw InputError(where, std::string(key.name) + " is '" + std::string(text) + "'", "write a number of terms");
    return number;
  }
  const auto word = std::ranges::find(key.words, text);
  if (word == key.words.end())
    throw InputError(where, std::string(key.name) + " cannot be '" + std::string(text) + "'",
                     contract::suggestion(text, key.words));
  return stored(key, static_cast<int>(word - key.words.begin()));
}

void declare_one(Declaration& declaration, std::string_view item, const std::string& where,
                 std::vector<std::string_view>& given) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    throw InputError(where, "'" + std::string(item) + "' declares nothing", "write key=value, separated by commas");
  const std::string_view name = item.substr(0, equals);
  const auto key = std::ranges::find(keys(), name, &Key::name);
  if (key == keys().end()) {
    std::vector<std::string_view> names;
    for (const Key& k : keys()) names.push_back(k.name);
    throw InputError(where, "there is no '" + std::string(name) + "' to declare", contract::suggestion(name, names));
  }
  if (std::ranges::find(given, name) != given.end())
    throw InputError(where, "'" + std::string(name) + "' is declared twice", "remove one");
  given.push_back(name);
  key->set(declaration, value_of(*key, item.substr(equals + 1), where));
}

}  // namespace

std::string_view declaration_help() {
  static const std::string text = [] {
    std::string all;
    for (const Key& key : keys()) {
      all += fmt::format("{}{}={}", all.empty() ? "" : ", ", key.name,
                         key.words.empty() ? "N" : fmt::to_string(fmt::join(key.words, "|")));
    }
    return all;
  }();
  return text;
}

void declare(Declaration& declaration, std::string_view text, const std::string& where) {
  std::vector<std::string_view> given;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    declare_one(declaration, text.substr(0, comma), where, given);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (declaration.arithmetic.lazy_rescaling > 64) throw InputError(where, "lazy_rescaling is over 64", "write the power of two that weights may reach");
  if (declaration.arithmetic.block < 1) throw InputError(where, "block is 0", "1 is an ordinary addition");
}

std::string to_text(const Declaration& declaration) {
  const Declaration plain;
  std::string text;
  for (const Key& key : keys()) {
    const int value = key.get(declaration);
    if (value == key.get(plain)) continue;
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : ",", key.name,
                    key.words.empty() ? fmt::to_string(value) : key.words[static_cast<std::size_t>(shown(key, value))]);
  }
  return text;
}

}  // namespace assay::plugin
