#include "falsify/mutation/ptx/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace assay::falsify::ptx {

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

std::uint64_t Mutant::key() const {
  std::uint64_t key = hash({});
  for (const Edit& edit : edits) {
    key = hash(std::to_string(edit.at), key);
    for (const Instruction& x : edit.with) key = hash(x.text(), key);
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
  static const std::vector<Operator> table = {
      {"barrier", false, mutate_barrier},       {"branch", false, mutate_branch},
      {"loop", false, mutate_loop},             {"select", false, mutate_select},
      {"store", false, mutate_store},           {"load", false, mutate_load},
      {"arithmetic", false, mutate_arithmetic}, {"function", false, mutate_function},
      {"fma", false, mutate_fma},               {"comparison", false, mutate_comparison},
      {"operand-order", false, mutate_order},   {"subgroup", false, mutate_subgroup},
      {"component", false, mutate_component},   {"index", false, mutate_index},
      {"constant", false, mutate_constant},     {"rounding", false, mutate_rounding},
      {"half", false, mutate_half},             {"bfloat16", held_out, mutate_bfloat16},
      {"duplicate", held_out, mutate_duplicate}};
  return table;
}

std::vector<Place> places(const Program& program) {
  std::vector<Place> all;
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t family = 0; family < operators().size(); ++family)
    for (std::size_t at = 0; at < program.code().size(); ++at) {
      if (!program.is_instruction(at)) continue;
      std::vector<Mutant> made;
      operators()[family].generate({program, at, made});
      for (std::size_t n = 0; n < made.size(); ++n)
        if (const std::uint64_t key = made[n].key(); seen.insert(key).second)
          all.push_back({key, static_cast<std::uint32_t>(at), static_cast<std::uint16_t>(family), static_cast<std::uint16_t>(n)});
    }
  return all;
}

Mutant mutant(const Program& program, const Place& place) {
  std::vector<Mutant> made;
  operators()[place.family].generate({program, place.at, made});
  return std::move(made.at(place.number));
}

}  // namespace assay::falsify::ptx
