#include "plugin/declaration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "contract/reader.hpp"
#include "core/errors.hpp"

namespace assay::plugin {
namespace {

/// One key. A new key needs only a row here: parsing, output, help, `assay explain` and the README follow.
struct Key {
  std::string_view name;
  std::string_view values;  ///< values, as in the help
  std::string_view says;
  std::function<std::string(const Declaration&)> get;
  /// Sets the value. Returns false if the text is not a value of the key.
  std::function<bool(Declaration&, std::string_view)> set;
  std::vector<std::string_view> words{};  ///< the words of `values`, for suggestions
};

std::string joined(const std::vector<std::string_view>& words) { return fmt::to_string(fmt::join(words, "|")); }

/// Keeps a text of the table alive as long as the table.
std::string_view kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

template <class E>
using Words = std::vector<std::pair<E, std::string_view>>;

/// Makes a key whose values are words; `of` returns the member that holds its value.
template <class E, class Of>
Key choice(std::string_view name, std::string_view says, Words<E> table, Of of) {
  std::vector<std::string_view> words;
  for (const auto& [value, word] : table) words.push_back(word);
  return {name,
          kept(joined(words)),
          says,
          [table, of](const Declaration& d) {
            const E value = of(const_cast<Declaration&>(d));
            return std::string(std::ranges::find(table, value, &std::pair<E, std::string_view>::first)->second);
          },
          [table, of](Declaration& d, std::string_view text) {
            const auto found = std::ranges::find(table, text, &std::pair<E, std::string_view>::second);
            if (found != table.end()) of(d) = found->first;
            return found != table.end();
          },
          words};
}

constexpr int kLargest = 1 << 20;

template <class Of>
Key number(std::string_view name, std::string_view says, int least, int most, Of of) {
  return {name, "N", says, [of](const Declaration& d) { return fmt::to_string(of(const_cast<Declaration&>(d))); },
          [of, least, most](Declaration& d, std::string_view text) {
            int value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool good =
                error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
            if (good) of(d) = value;
            return good;
          }};
}

template <class E, std::size_t N>
Words<E> named(const E (&values)[N]) {
  Words<E> table;
  for (const E value : values) table.emplace_back(value, name(value));
  return table;
}

const std::vector<Key>& keys() {
  using enum FunctionLibrary;
  static const Words<Format> formats = named({Format::f32, Format::tf32, Format::f16, Format::bf16, Format::tf32x3});
  static const auto answers = Words<bool>{{false, "no"}, {true, "yes"}};
  static const auto roundings = Words<Rounding>{{Rounding::nearest, "nearest"}, {Rounding::toward_zero, "toward_zero"}};
  static const std::vector<Key> table{
      choice(
          "inputs", "format to which products round their factors", formats,
          [](Declaration & d) -> auto& { return d.arithmetic.inputs; }),
      choice(
          "input_rounding", "how they are rounded to it", roundings,
          [](Declaration & d) -> auto& { return d.arithmetic.input_rounding; }),
      choice(
          "accumulator", "format in which sums are kept", formats,
          [](Declaration & d) -> auto& { return d.arithmetic.accumulator; }),
      choice(
          "accumulation", "how each addition rounds", roundings,
          [](Declaration & d) -> auto& { return d.arithmetic.accumulation; }),
      number(
          "block", "terms that one addition takes at once, as tensor cores add them", 1, kLargest,
          [](Declaration & d) -> auto& { return d.arithmetic.block; }),
      choice(
          "flush_to_zero",
          "subnormal float32 numbers may become 0; stores: so may results that are subnormal in their storage format",
          Words<std::tuple<bool, bool>>{{{false, false}, "no"}, {{true, false}, "yes"}, {{true, true}, "stores"}},
          [](Declaration& d) { return std::tie(d.arithmetic.flushes_subnormals, d.arithmetic.flushes_stored); }),
      choice(
          "fma", "products may be added without being rounded", answers,
          [](Declaration & d) -> auto& { return d.arithmetic.fuses_products; }),
      choice(
          "functions", "whose exp, log, sin ... are called, and so how accurate they are",
          named({c_library, highway, cuda, cuda_exp2, vulkan, octant, numpy}),
          [](Declaration & d) -> auto& { return d.arithmetic.functions; }),
      number(
          "online_tile", "keys after which an online softmax may rescale what it has summed; 0: it never does", 0,
          kLargest, [](Declaration & d) -> auto& { return d.arithmetic.online_tile; }),
      number(
          "lazy_rescaling",
          "an online softmax rescales only where its maximum has grown by more than this power of two, up to 64", 0, 64,
          [](Declaration & d) -> auto& { return d.arithmetic.lazy_rescaling; }),
      choice(
          "merges_parts",
          "a softmax in parts, each of online_tile terms or more, merges their means by their logsumexp, each rounded",
          answers, [](Declaration & d) -> auto& { return d.arithmetic.merges_parts; }),
      choice(
          "frequencies",
          "rotary frequencies as the contract has them, or in float32 as powers, or as products of one power",
          Words<Frequencies>{
              {Frequencies::exact, "exact"}, {Frequencies::powers, "powers"}, {Frequencies::products, "products"}},
          [](Declaration & d) -> auto& { return d.arithmetic.frequencies; }),
      choice(
          "loses", "what the contract pins and the kernel does not keep",
          named({Loss::nothing, Loss::confident, Loss::stable, Loss::small_scale}),
          [](Declaration & d) -> auto& { return d.arithmetic.loses; }),
      choice(
          "storage", "format of the tensors that the contract calls `storage`",
          named({DType::f32, DType::f16, DType::bf16}), [](Declaration & d) -> auto& { return d.storage; }),
      choice(
          "deterministic", "the same call gives the same bits again", answers,
          [](Declaration & d) -> auto& { return d.deterministic; }),
      choice(
          "batch_invariant", "a row has the same bits whatever rows are beside it, and however many", answers,
          [](Declaration & d) -> auto& { return d.batch_invariant; }),
      choice(
          "backend", "where it runs; cuda-host: a .cu file compiled for the CPU",
          named({Backend::cpu, Backend::cuda_host, Backend::cuda}), [](Declaration & d) -> auto& { return d.backend; }),
      {"rejects", "NAME+NAME",
       "tensors of integers, params and dims whose forbidden values it refuses, touching nothing: it is called with "
       "some",
       [](const Declaration& d) { return fmt::to_string(fmt::join(d.rejects, "+")); },
       [](Declaration& d, std::string_view text) {
         d.rejects.clear();
         for (std::size_t begin = 0; begin <= text.size();) {
           const std::size_t end = std::min(text.find('+', begin), text.size());
           if (end == begin) return false;
           d.rejects.emplace_back(text.substr(begin, end - begin));
           begin = end + 1;
         }
         return true;
       }}};
  return table;
}

void declare_one(Declaration& declaration, std::string_view item, const std::string& where,
                 std::vector<std::string_view>& given) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    throw InputError(where, "'" + std::string(item) + "' declares nothing", "write key=value, separated by commas");
  const std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
  const auto key = std::ranges::find(keys(), name, &Key::name);
  if (key == keys().end()) {
    std::vector<std::string_view> names;
    for (const Key& k : keys()) names.push_back(k.name);
    throw InputError(where, "there is no '" + std::string(name) + "' to declare", contract::suggestion(name, names));
  }
  if (std::ranges::find(given, name) != given.end())
    throw InputError(where, "'" + std::string(name) + "' is declared twice", "remove one");
  given.push_back(name);
  if (!key->set(declaration, value))
    throw InputError(where, fmt::format("{} cannot be '{}'", name, value),
                     key->words.empty() ? fmt::format("write {}={}, {}", name, key->values, key->says)
                                        : contract::suggestion(value, key->words));
}

}  // namespace

std::string_view declaration_help() {
  static const std::string text = [] {
    std::string all;
    for (const Key& key : keys()) all += fmt::format("{}{}={}", all.empty() ? "" : ", ", key.name, key.values);
    return all;
  }();
  return text;
}

const std::vector<DeclarationKey>& declaration_keys() {
  static const std::vector<DeclarationKey> table = [] {
    std::vector<DeclarationKey> rows;
    for (const Key& key : keys()) rows.push_back({key.name, key.values, key.says, key.get(Declaration{})});
    return rows;
  }();
  return table;
}

void declare(Declaration& declaration, std::string_view text, const std::string& where) {
  std::vector<std::string_view> given;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    declare_one(declaration, text.substr(0, comma), where, given);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

std::string to_text(const Declaration& declaration) {
  const Declaration plain;
  std::string text;
  for (const Key& key : keys())
    if (const std::string value = key.get(declaration); value != key.get(plain))
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.name, value);
  return text;
}

}  // namespace assay::plugin
