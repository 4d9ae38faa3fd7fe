#include "falsify/mutation/ptx/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_set>

namespace assay::falsify::ptx {

namespace {

constexpr std::string_view kUnnamed[] = {"_GLOBAL__N__", "_INTERNAL_"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Takes eight hexadecimal digits from the front.
bool take_hash(std::string_view& text) {
  constexpr std::size_t kDigits = 8;
  if (text.size() < kDigits ||
      !std::ranges::all_of(text.substr(0, kDigits), [](unsigned char c) { return std::isxdigit(c) != 0; }))
    return false;
  text.remove_prefix(kDigits);
  return true;
}

/// A name that begins with a mark of kUnnamed: its file ("9_norm_a_cu"), and how long it is at least and, with a
/// process, at most.
struct Unnamed {
  std::string_view file;
  std::size_t shortest = 0, longest = 0;
};

std::optional<Unnamed> unnamed_at(std::string_view text, std::string_view mark) {
  std::string_view rest = text.substr(mark.size());
  if (!take_hash(rest) || !rest.starts_with('_')) return std::nullopt;
  rest.remove_prefix(1);
  const std::string_view file = rest;
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || size >= rest.size() - digits) return std::nullopt;
  rest.remove_prefix(digits + 1 + size);
  Unnamed found{file.substr(0, digits + 1 + size)};
  if (!rest.starts_with('_')) return std::nullopt;
  rest.remove_prefix(1);
  if (!take_hash(rest)) return std::nullopt;
  found.shortest = found.longest = text.size() - rest.size();
  if (!rest.starts_with('_')) return found;
  const auto other = std::ranges::find_if_not(rest.substr(1), is_digit);
  found.longest += 1 + static_cast<std::size_t>(other - (rest.begin() + 1));
  return found;
}

/// How many digits before `name` say how long it is, and that length: the name before them may end with digits, too.
std::optional<std::pair<std::size_t, std::size_t>> length_before(std::string_view before, const Unnamed& name) {
  for (std::size_t digits = 1; digits <= before.size() && is_digit(before[before.size() - digits]); ++digits) {
    std::size_t length = 0;
    std::from_chars(before.data() + before.size() - digits, before.data() + before.size(), length);
    if (name.shortest <= length && length <= name.longest) return std::pair(digits, length);
  }
  return std::nullopt;
}

}  // namespace

std::string of_any_build(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    std::string_view mark;
    std::size_t at = std::string_view::npos;
    for (const std::string_view other : kUnnamed)
      if (const std::size_t place = text.find(other); place < at) at = place, mark = other;
    if (at == std::string_view::npos) break;
    const auto name = unnamed_at(text.substr(at), mark);
    const auto length = name ? length_before(text.substr(0, at), *name) : std::nullopt;
    plain += text.substr(0, length ? at - length->first : at);
    plain += mark;
    if (length) plain += name->file;
    text.remove_prefix(at + (length ? length->second : mark.size()));
  }
  return plain += text;
}

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

std::uint64_t Mutant::key() const {
  std::uint64_t key = hash({});
  for (const Edit& edit : edits) {
    key = hash(std::to_string(edit.at), key);
    for (const Instruction& x : edit.with) key = hash(of_any_build(x.text()), key);
  }
  return key;
}

void Site::put_at(std::size_t where, std::string_view says, std::vector<Instruction> with) const {
  const Instruction& before = program.at(where);
  std::string after;
  for (Instruction& y : with) {
    if (y.guard.empty() && before.base() != "bra") y.guard = before.guard;
    after += " " + y.text();
  }
  if (with.size() == 1 && with[0].text() == before.text()) return;
  into.push_back({fmt::format("{} at {}: {} ->{}", says, where, before.text(), after.empty() ? " nothing" : after),
                  {{where, std::move(with)}}});
}

void Site::opcode(std::string op) const {
  const std::string says = fmt::format("{} for {}", op, x().op);
  put(says, {{x().guard, std::move(op), x().operands}});
}

void Site::operand(std::string_view says, std::size_t i, std::string text) const {
  Instruction y = x();
  y.operands[i] = std::move(text);
  put(says, {std::move(y)});
}

const std::vector<Operator>& operators() {
  constexpr bool held_out = true;
  static const std::vector<Operator> table = {{"barrier", false, mutate_barrier},
                                              {"branch", false, mutate_branch},
                                              {"loop", false, mutate_loop},
                                              {"select", false, mutate_select},
                                              {"store", false, mutate_store},
                                              {"load", false, mutate_load},
                                              {"arithmetic", false, mutate_arithmetic},
                                              {"function", false, mutate_function},
                                              {"fma", false, mutate_fma},
                                              {"comparison", false, mutate_comparison},
                                              {"operand-order", false, mutate_order},
                                              {"subgroup", false, mutate_subgroup},
                                              {"component", false, mutate_component},
                                              {"index", false, mutate_index},
                                              {"constant", false, mutate_constant},
                                              {"rounding", false, mutate_rounding},
                                              {"half", false, mutate_half},
                                              {"bfloat16", held_out, mutate_bfloat16},
                                              {"duplicate", held_out, mutate_duplicate}};
  return table;
}

std::vector<MutantKey> mutant_keys(const Program& program) {
  std::vector<MutantKey> all;
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t family = 0; family < operators().size(); ++family)
    for (std::size_t at = 0; at < program.code().size(); ++at) {
      if (!program.is_instruction(at)) continue;
      std::vector<Mutant> made;
      operators()[family].generate({program, at, made});
      for (std::size_t n = 0; n < made.size(); ++n)
        if (const std::uint64_t key = made[n].key(); seen.insert(key).second)
          all.push_back(
              {key, static_cast<std::uint32_t>(at), static_cast<std::uint16_t>(family), static_cast<std::uint16_t>(n)});
    }
  return all;
}

Mutant mutant(const Program& program, const MutantKey& place) {
  std::vector<Mutant> made;
  operators()[place.family].generate({program, place.at, made});
  return std::move(made.at(place.number));
}

}  // namespace assay::falsify::ptx
