// Faults of constants, of addresses and coordinates, and of precision.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "falsify/mutation/spirv/mutant.hpp"

namespace assay::falsify::spirv {
namespace {

using Op = spv::Op;

/// Returns the bits of a 32-bit constant, or of a vector of equal ones.
std::optional<std::uint32_t> constant_bits(const Analysis& a, Id id) {
  const Instruction* d = a.definition(id);
  if (d == nullptr) return std::nullopt;
  if (d->op == Op::OpConstant && (a.is_int(d->type) || a.is_float(d->type))) return d->words[3];
  if (d->op != Op::OpConstantComposite || !a.is_float(d->type)) return std::nullopt;
  const bool equal = std::ranges::all_of(d->ids, [&](std::uint16_t p) { return d->words[p] == d->operand(0); });
  return equal ? constant_bits(a, d->operand(0)) : std::nullopt;
}

std::vector<std::uint32_t> other_values(bool real, std::uint32_t bits) {
  if (!real) return {bits + 1, bits - 1, 2 * bits};
  const float x = std::bit_cast<float>(bits);
  return {std::bit_cast<std::uint32_t>(x * 1.1f), std::bit_cast<std::uint32_t>(x + 1), bits ^ 0x80000000u, 0};
}

std::string value_text(const Analysis& a, Id type, std::uint32_t bits) {
  if (a.is_float(type)) return fmt::format("{}", std::bit_cast<float>(bits));
  return a.is_signed(type) ? fmt::format("{}", std::bit_cast<std::int32_t>(bits)) : fmt::format("{}", bits);
}

/// Mutates one use of a constant; `says` describes the expression it belongs to.
void mutate_use(const Analysis& a, std::size_t at, std::uint16_t position, Mutants& into) {
  const Id used = a.at(at).words[position], type = a.type_of(used);
  const std::string says = a.at(at).result == 0 ? "" : ": " + a.text(a.at(at).result);
  const auto put = [&](const std::string& from, const std::string& to, const auto& make) {
    Draft draft(a, at, fmt::format("{} at {}: {} -> {}{}", name(a.at(at).op), at, from, to, says));
    draft.set(at, position, make(draft));
    into.push_back(draft.take());
  };
  if (a.opcode(used) == Op::OpConstantTrue || a.opcode(used) == Op::OpConstantFalse) {
    const bool value = a.opcode(used) == Op::OpConstantTrue;
    put(value ? "true" : "false", value ? "false" : "true", [&](Draft& d) { return d.boolean(type, !value); });
  } else if (const auto bits = constant_bits(a, used)) {
    for (const std::uint32_t other : other_values(a.is_float(type), *bits))
      if (other != *bits)
        put(value_text(a, type, *bits), value_text(a, type, other), [&](Draft& d) { return d.constant(type, other); });
  }
}

/// Returns the number of valid indices into this type; for a struct the number of leading members with the type of
/// member `index`, 0 for other types.
std::uint32_t places(const Analysis& a, Id type, std::uint32_t index) {
  const Instruction& t = *a.definition(type);
  if (t.op == Op::OpTypeVector) return t.words[3];
  if (t.op == Op::OpTypeArray) return a.definition(t.words[3])->words[3];
  if (t.op != Op::OpTypeStruct) return 0;
  std::uint32_t same = 0;
  while (2 + same < t.words.size() && t.words[2 + same] == t.words[2 + index]) ++same;
  return same;
}

Id element_type(const Analysis& a, Id type, std::uint32_t index) {
  const Instruction& t = *a.definition(type);
  return t.op == Op::OpTypeStruct ? t.words[2 + index] : t.words[2];
}

/// Returns up to two other values of the same type that are available there, nearest first.
std::vector<Id> neighbours(const Analysis& a, std::size_t at, Id id) {
  std::vector<Id> found;
  for (std::size_t i = at; i-- > 0 && a.at(i).op != Op::OpFunction && found.size() < 2;) {
    const Instruction& x = a.at(i);
    if (x.result != 0 && x.result != id && x.type == a.type_of(id) && a.live(i) && a.available(x.result, at))
      found.push_back(x.result);
  }
  return found;
}

void mutate_dynamic_index(const Analysis& a, std::size_t at, std::uint16_t position, Mutants& into) {
  const Instruction& chain = a.at(at);
  const Id index = chain.words[position], type = a.type_of(index);
  const std::string what = fmt::format("index {} of {}", a.text(index), a.text(chain.operand(0)));
  {
    Draft draft(a, at, fmt::format("{} at {}: {} + 1", name(chain.op), at, what));
    const Id moved = draft.fresh();
    Words changed = chain.words;
    changed[position] = moved;
    const Id one = draft.constant(type, 1);
    draft.replace(at, {encode(Op::OpIAdd, {type, moved, index, one}), changed});
    into.push_back(draft.take());
  }
  for (const Id other : neighbours(a, at, index)) {
    Draft draft(a, at, fmt::format("{} at {}: {} -> {}", name(chain.op), at, what, a.text(other)));
    draft.set(at, position, other);
    into.push_back(draft.take());
  }
}

void mutate_chain(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& chain = a.at(at);
  const Id base = chain.operand(0);
  Id type = a.definition(a.type_of(base))->words[3];  // the pointee type
  for (std::size_t i = 1; i < chain.ids.size(); ++i) {
    const Id index = chain.operand(i);
    const auto known = constant_bits(a, index);
    if (known && a.opcode(type) != Op::OpTypeRuntimeArray) {
      if (const std::uint32_t n = places(a, type, *known); n > 1) {
        const std::uint32_t next = (*known + 1) % n;
        Draft draft(a, at,
                    fmt::format("{} at {}: index {} -> {} of {}", name(chain.op), at, *known, next, a.text(base)));
        draft.set(at, chain.ids[i], draft.constant(a.type_of(index), next));
        into.push_back(draft.take());
      }
    } else {
      mutate_dynamic_index(a, at, chain.ids[i], into);
    }
    type = element_type(a, type, known.value_or(0));
  }
}

/// Passes the f32 value of an instruction through others before its use: `through` gets the id of the computed value
/// and returns the words that make the instruction's result from it.
template <class Through>
void narrow(const Analysis& a, std::size_t at, std::string_view says, Mutants& into, const Through& through) {
  const Instruction& x = a.at(at);
  switch (x.op) {
    case Op::OpFAdd:
    case Op::OpFSub:
    case Op::OpFMul:
    case Op::OpFDiv:
    case Op::OpVectorTimesScalar:
    case Op::OpDot:
    case Op::OpFMod:
    case Op::OpFRem:
    case Op::OpExtInst: break;
    default: return;
  }
  if (!a.is_float(x.type)) return;
  Draft draft(a, at, fmt::format("{} at {}: {} {}", name(x.op), at, a.text(x.result), says));
  const Id wide = draft.fresh();
  Words computed = x.words;
  computed[2] = wide;
  std::vector<Words> with = through(draft, wide);
  with.insert(with.begin(), std::move(computed));
  draft.replace(at, std::move(with));
  into.push_back(draft.take());
}

}  // namespace

void mutate_constant(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& x = a.at(at);
  if (is_chain(x.op) || x.op == Op::OpSwitch) return;  // covered by the family `index`; made by a compiler
  for (const std::uint16_t position : x.ids) mutate_use(a, at, position, into);
}

void mutate_index(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& x = a.at(at);
  if (is_chain(x.op)) {
    if (!a.is_coordinate(a.variable_of(x.operand(0)))) mutate_chain(a, at, into);
  } else if (x.op == Op::OpCompositeExtract && a.opcode(a.type_of(x.operand(0))) == Op::OpTypeVector) {
    const std::uint32_t n = a.definition(a.type_of(x.operand(0)))->words[3], next = (x.words[4] + 1) % n;
    Draft draft(
        a, at,
        fmt::format("OpCompositeExtract at {}: component {} -> {} of {}", at, x.words[4], next, a.text(x.operand(0))));
    draft.set(at, 4, next);
    into.push_back(draft.take());
  }
}

void mutate_component(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& x = a.at(at);
  const bool chain = is_chain(x.op) && x.ids.size() == 2 && a.is_coordinate(a.variable_of(x.operand(0)));
  const bool extract = x.op == Op::OpCompositeExtract && a.opcode(x.operand(0)) == Op::OpLoad &&
                       a.is_coordinate(a.variable_of(a.definition(x.operand(0))->operand(0)));
  if (!chain && !extract) return;
  const auto now = chain ? constant_bits(a, x.operand(1)) : std::optional(x.words[4]);
  if (!now) return;
  for (std::uint32_t other = 0; other < 3; ++other) {
    if (other == *now) continue;
    Draft draft(
        a, at,
        fmt::format("{} at {}: {} -> .{}", name(x.op), at, a.text(chain ? x.result : x.operand(0)), "xyz"[other]));
    if (chain) draft.set(at, x.ids[1], draft.constant(a.type_of(x.operand(1)), other));
    else draft.set(at, 4, other);
    into.push_back(draft.take());
  }
}

void mutate_half(const Analysis& a, std::size_t at, Mutants& into) {
  narrow(a, at, "rounded to f16", into, [&](Draft&, Id wide) {
    return std::vector<Words>{encode(Op::OpQuantizeToF16, {a.at(at).type, a.at(at).result, wide})};
  });
}

void mutate_bfloat16(const Analysis& a, std::size_t at, Mutants& into) {
  narrow(a, at, "truncated to bf16", into, [&](Draft& draft, Id wide) {
    const Instruction& x = a.at(at);
    Id bits = draft.type(Op::OpTypeInt, {32, 0});
    const Id scalar = bits;
    Id mask = 0;
    if (a.opcode(x.type) == Op::OpTypeVector) {
      const std::uint32_t n = a.definition(x.type)->words[3];
      bits = draft.type(Op::OpTypeVector, {scalar, n});
      mask = draft.splat(bits, scalar, n, 0xffff0000u);
    } else {
      mask = draft.constant(scalar, 0xffff0000u);
    }
    const Id cast = draft.fresh(), cut = draft.fresh();
    return std::vector<Words>{encode(Op::OpBitcast, {bits, cast, wide}),
                              encode(Op::OpBitwiseAnd, {bits, cut, cast, mask}),
                              encode(Op::OpBitcast, {x.type, x.result, cut})};
  });
}

}  // namespace assay::falsify::spirv
