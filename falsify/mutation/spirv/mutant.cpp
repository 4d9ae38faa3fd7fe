#include "falsify/mutation/spirv/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::falsify::spirv {

std::uint64_t hash(std::span<const std::uint32_t> words, std::uint64_t seed) {
  for (const std::uint32_t word : words)
    for (int byte = 0; byte < 4; ++byte) seed = (seed ^ (word >> 8 * byte & 0xff)) * 0x100000001b3u;
  return seed;
}

std::uint64_t Mutant::key() const {
  std::uint64_t key = hash({});
  for (const Words& words : declarations) key = hash(words, key);
  for (const Edit& edit : edits) {
    const std::uint32_t place[] = {static_cast<std::uint32_t>(edit.at), static_cast<std::uint32_t>(edit.with.size())};
    key = hash(place, key);
    for (const Words& words : edit.with) key = hash(words, key);
  }
  return key;
}

Draft::Draft(const Analysis& analysis, std::size_t at, std::string description) : analysis_(analysis) {
  mutant_.at = at;
  mutant_.bound = analysis.module().header[3];
  mutant_.description = std::move(description);
}

/// Returns the id of this declaration: the module's, an earlier one of the mutant, or a new one.
Id Draft::declare(Words words, std::size_t result_at) {
  const auto same = [&](const Words& other) {
    if (other.size() != words.size()) return false;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (i != result_at && words[i] != other[i]) return false;
    return true;
  };
  for (std::size_t i = 0; i < analysis_.size() && analysis_.at(i).op != spv::Op::OpFunction; ++i)
    if (same(analysis_.at(i).words)) return analysis_.at(i).result;
  for (const Words& made : mutant_.declarations)
    if (same(made)) return made[result_at];
  words[result_at] = fresh();
  mutant_.declarations.push_back(words);
  return words[result_at];
}

Id Draft::type(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  Words words = encode(op, {0});
  words.insert(words.end(), operands);
  words[0] = encode(op, {})[0] + (static_cast<std::uint32_t>(operands.size() + 1) << spv::WordCountShift);
  return declare(std::move(words), 1);
}

Id Draft::constant(Id type, std::uint32_t bits) {
  const Id scalar = analysis_.scalar_of(type);
  if (scalar == type) return declare(encode(spv::Op::OpConstant, {type, 0, bits}), 2);
  return splat(type, scalar, analysis_.definition(type)->words[3], bits);
}

Id Draft::splat(Id type, Id scalar, std::uint32_t n, std::uint32_t bits) {
  const Id element = constant(scalar, bits);
  Words words = encode(spv::Op::OpConstantComposite, {type, 0});
  words.insert(words.end(), n, element);
  words[0] += n << spv::WordCountShift;
  return declare(std::move(words), 2);
}

Id Draft::boolean(Id type, bool value) {
  return declare(encode(value ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, {type, 0}), 2);
}

void Draft::set(std::size_t at, std::size_t word, std::uint32_t value) {
  Words words = analysis_.at(at).words;
  words[word] = value;
  replace(at, {std::move(words)});
}

void Draft::set_op(std::size_t at, spv::Op op) {
  const std::uint32_t length = analysis_.at(at).words[0] & ~static_cast<std::uint32_t>(spv::OpCodeMask);
  set(at, 0, length | static_cast<std::uint32_t>(op));
}

std::vector<Operator> operators() {
  constexpr bool held_out = true;
  return {{"barrier", false, mutate_barrier},
          {"branch", false, mutate_branch},
          {"loop", false, mutate_loop},
          {"select", false, mutate_select},
          {"store", false, mutate_store},
          {"arithmetic", false, mutate_arithmetic},
          {"function", false, mutate_function},
          {"fma", false, mutate_fma},
          {"comparison", false, mutate_comparison},
          {"operand-order", false, mutate_order},
          {"subgroup", false, mutate_subgroup},
          {"component", false, mutate_component},
          {"index", false, mutate_index},
          {"constant", false, mutate_constant},
          {"half", false, mutate_half},
          {"bfloat16", held_out, mutate_bfloat16},
          {"duplicate", held_out, mutate_duplicate}};
}

Mutants mutants(const Analysis& analysis) {
  Mutants all;
  std::set<std::uint64_t> seen;
  for (const Operator& op : operators()) {
    Mutants made;
    for (std::size_t at = 0; at < analysis.size(); ++at)
      if (analysis.live(at)) op.generate(analysis, at, made);
    for (Mutant& mutant : made) {
      const auto unchanged = [&](const Edit& e) { return e.with.size() == 1 && e.with[0] == analysis.at(e.at).words; };
      if (std::ranges::all_of(mutant.edits, unchanged) || !seen.insert(mutant.key()).second) continue;
      mutant.family = op.family;
      mutant.held_out = op.held_out;
      all.push_back(std::move(mutant));
    }
  }
  return all;
}

Words apply(const Module& module, const Mutant& mutant) {
  Words words(module.header.begin(), module.header.end());
  words[3] = mutant.bound;
  const auto append = [&words](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  bool declared = false;
  auto edit = mutant.edits.begin();
  for (std::size_t i = 0; i < module.code.size(); ++i) {
    if (module.code[i].op == spv::Op::OpFunction && !declared) {
      std::ranges::for_each(mutant.declarations, append);
      declared = true;
    }
    if (edit != mutant.edits.end() && edit->at == i) {
      std::ranges::for_each(edit->with, append);
      ++edit;
    } else {
      append(module.code[i].words);
    }
  }
  return words;
}

}  // namespace assay::falsify::spirv
