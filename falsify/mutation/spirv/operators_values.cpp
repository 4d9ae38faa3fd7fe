// Faults of computed values: opcodes, functions, comparisons, operands, subgroup operations.
#include <fmt/format.h>

#include <map>
#include <spirv/unified1/GLSL.std.450.h>

#include "falsify/mutation/spirv/mutant.hpp"

namespace assay::falsify::spirv {
namespace {

using Op = spv::Op;
using Others = std::map<Op, std::vector<Op>>;

std::string place(const Analysis& a, std::size_t at) { return fmt::format("{} at {}", name(a.at(at).op), at); }

void exchange_opcode(const Analysis& a, std::size_t at, const Others& others, Mutants& into) {
  const auto found = others.find(a.at(at).op);
  if (found == others.end()) return;
  for (const Op other : found->second) {
    Draft draft(a, at, fmt::format("{} -> {}: {}", place(a, at), name(other), a.text(a.at(at).result)));
    draft.set_op(at, other);
    into.push_back(draft.take());
  }
}

/// Replaces the value by one of its operands.
void replace_by_operand(const Analysis& a, std::size_t at, std::size_t operand, std::string description,
                        Mutants& into) {
  const Instruction& x = a.at(at);
  Draft draft(a, at, std::move(description));
  draft.replace(at, {encode(Op::OpCopyObject, {x.type, x.result, x.operand(operand)})});
  into.push_back(draft.take());
}

void with_operand(const Analysis& a, std::size_t at, std::size_t to, std::size_t from, Mutants& into) {
  const Instruction& x = a.at(at);
  if (a.type_of(x.operand(to)) != a.type_of(x.operand(from)) || x.operand(to) == x.operand(from)) return;
  Draft draft(
      a, at,
      fmt::format("{}: {} in the place of {} too", place(a, at), a.text(x.operand(from)), a.text(x.operand(to))));
  draft.set(at, x.ids[to], x.operand(from));
  into.push_back(draft.take());
}

void swap_operands(const Analysis& a, std::size_t at, std::size_t i, std::size_t j, Mutants& into) {
  const Instruction& x = a.at(at);
  if (a.type_of(x.operand(i)) != a.type_of(x.operand(j)) || x.operand(i) == x.operand(j)) return;
  Draft draft(
      a, at, fmt::format("{}: operands {} and {} exchanged", place(a, at), a.text(x.operand(i)), a.text(x.operand(j))));
  Words changed = x.words;
  std::swap(changed[x.ids[i]], changed[x.ids[j]]);
  draft.replace(at, {changed});
  into.push_back(draft.take());
}

/// True for a function of GLSL.std.450. Operands begin after the set's id.
bool is_function(const Instruction& x, GLSLstd450 function) {
  return x.op == Op::OpExtInst && x.words[4] == static_cast<std::uint32_t>(function);
}

bool computes(Op op) {
  switch (op) {
    case Op::OpIAdd:
    case Op::OpISub:
    case Op::OpIMul:
    case Op::OpUDiv:
    case Op::OpSDiv:
    case Op::OpUMod:
    case Op::OpSMod:
    case Op::OpSRem:
    case Op::OpFAdd:
    case Op::OpFSub:
    case Op::OpFMul:
    case Op::OpFDiv:
    case Op::OpFMod:
    case Op::OpFRem: return true;
    default: return false;
  }
}

bool is_shift(Op op) {
  return op == Op::OpShiftLeftLogical || op == Op::OpShiftRightLogical || op == Op::OpShiftRightArithmetic;
}

}  // namespace

void mutate_arithmetic(const Analysis& a, std::size_t at, Mutants& into) {
  static const Others others = {
      {Op::OpIAdd, {Op::OpISub, Op::OpIMul}},
      {Op::OpISub, {Op::OpIAdd}},
      {Op::OpIMul, {Op::OpIAdd, Op::OpUDiv}},
      {Op::OpUDiv, {Op::OpIMul, Op::OpUMod}},
      {Op::OpSDiv, {Op::OpIMul, Op::OpSRem}},
      {Op::OpUMod, {Op::OpUDiv}},
      {Op::OpSRem, {Op::OpSDiv}},
      {Op::OpFAdd, {Op::OpFSub, Op::OpFMul}},
      {Op::OpFSub, {Op::OpFAdd}},
      {Op::OpFMul, {Op::OpFAdd, Op::OpFDiv}},
      {Op::OpFDiv, {Op::OpFMul}},
      {Op::OpBitwiseAnd, {Op::OpBitwiseOr, Op::OpBitwiseXor}},
      {Op::OpBitwiseOr, {Op::OpBitwiseAnd, Op::OpBitwiseXor}},
      {Op::OpBitwiseXor, {Op::OpBitwiseOr}},
      {Op::OpShiftLeftLogical, {Op::OpShiftRightLogical}},
      {Op::OpShiftRightLogical, {Op::OpShiftLeftLogical, Op::OpShiftRightArithmetic}},
      {Op::OpShiftRightArithmetic, {Op::OpShiftRightLogical}},
      {Op::OpLogicalAnd, {Op::OpLogicalOr}},
      {Op::OpLogicalOr, {Op::OpLogicalAnd}},
      {Op::OpConvertUToF, {Op::OpConvertSToF}},
      {Op::OpConvertFToU, {Op::OpConvertFToS}},
  };
  exchange_opcode(a, at, others, into);
  const Op op = a.at(at).op;
  if (op == Op::OpFNegate || op == Op::OpSNegate || op == Op::OpNot || op == Op::OpLogicalNot)
    replace_by_operand(a, at, 0, fmt::format("{} left out", place(a, at)), into);
}

void mutate_function(const Analysis& a, std::size_t at, Mutants& into) {
  static const std::map<std::uint32_t, std::vector<std::pair<GLSLstd450, std::string_view>>> others = {
      {GLSLstd450FMin, {{GLSLstd450FMax, "min -> max"}}},
      {GLSLstd450FMax, {{GLSLstd450FMin, "max -> min"}}},
      {GLSLstd450NMin, {{GLSLstd450NMax, "min -> max"}}},
      {GLSLstd450NMax, {{GLSLstd450NMin, "max -> min"}}},
      {GLSLstd450UMin, {{GLSLstd450UMax, "min -> max"}}},
      {GLSLstd450UMax, {{GLSLstd450UMin, "max -> min"}}},
      {GLSLstd450SMin, {{GLSLstd450SMax, "min -> max"}}},
      {GLSLstd450SMax, {{GLSLstd450SMin, "max -> min"}}},
      {GLSLstd450Sin, {{GLSLstd450Cos, "sin -> cos"}}},
      {GLSLstd450Cos, {{GLSLstd450Sin, "cos -> sin"}}},
      {GLSLstd450Exp, {{GLSLstd450Exp2, "exp -> exp2"}}},
      {GLSLstd450Exp2, {{GLSLstd450Exp, "exp2 -> exp"}}},
      {GLSLstd450Log, {{GLSLstd450Log2, "log -> log2"}}},
      {GLSLstd450Log2, {{GLSLstd450Log, "log2 -> log"}}},
      {GLSLstd450Floor, {{GLSLstd450Ceil, "floor -> ceil"}}},
      {GLSLstd450Ceil, {{GLSLstd450Floor, "ceil -> floor"}}},
      {GLSLstd450Round, {{GLSLstd450Trunc, "round -> trunc"}}},
      {GLSLstd450RoundEven, {{GLSLstd450Trunc, "roundEven -> trunc"}}},
      {GLSLstd450Trunc, {{GLSLstd450Floor, "trunc -> floor"}}},
      {GLSLstd450Sqrt, {{GLSLstd450InverseSqrt, "sqrt -> inversesqrt"}}},
      {GLSLstd450InverseSqrt, {{GLSLstd450Sqrt, "inversesqrt -> sqrt"}}},
      {GLSLstd450FAbs, {{GLSLstd450FSign, "abs -> sign"}}},
  };
  const Instruction& x = a.at(at);
  if (x.op != Op::OpExtInst) return;
  if (const auto found = others.find(x.words[4]); found != others.end())
    for (const auto& [function, says] : found->second) {
      Draft draft(a, at, fmt::format("OpExtInst at {}: {} of {}", at, says, a.text(x.operand(1))));
      draft.set(at, 4, static_cast<std::uint32_t>(function));
      into.push_back(draft.take());
    }
  if (is_function(x, GLSLstd450FAbs) || is_function(x, GLSLstd450SAbs) || is_function(x, GLSLstd450FClamp) ||
      is_function(x, GLSLstd450UClamp) || is_function(x, GLSLstd450SClamp))
    replace_by_operand(a, at, 1, fmt::format("OpExtInst at {}: {} without abs or clamp", at, a.text(x.operand(1))),
                       into);
  if (is_function(x, GLSLstd450Fma)) {
    swap_operands(a, at, 1, 3, into);
    swap_operands(a, at, 2, 3, into);
  }
}

void mutate_fma(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& x = a.at(at);
  if (!is_function(x, GLSLstd450Fma)) return;
  Draft draft(a, at, fmt::format("fma at {}: addend {} dropped", at, a.text(x.operand(3))));
  draft.replace(at, {encode(Op::OpFMul, {x.type, x.result, x.operand(1), x.operand(2)})});
  into.push_back(draft.take());
}

void mutate_comparison(const Analysis& a, std::size_t at, Mutants& into) {
  static const Others others = {
      {Op::OpULessThan, {Op::OpULessThanEqual, Op::OpSLessThan}},
      {Op::OpULessThanEqual, {Op::OpULessThan, Op::OpSLessThanEqual}},
      {Op::OpUGreaterThan, {Op::OpUGreaterThanEqual, Op::OpSGreaterThan}},
      {Op::OpUGreaterThanEqual, {Op::OpUGreaterThan, Op::OpSGreaterThanEqual}},
      {Op::OpSLessThan, {Op::OpSLessThanEqual, Op::OpULessThan}},
      {Op::OpSLessThanEqual, {Op::OpSLessThan, Op::OpULessThanEqual}},
      {Op::OpSGreaterThan, {Op::OpSGreaterThanEqual, Op::OpUGreaterThan}},
      {Op::OpSGreaterThanEqual, {Op::OpSGreaterThan, Op::OpUGreaterThanEqual}},
      {Op::OpIEqual, {Op::OpINotEqual}},
      {Op::OpINotEqual, {Op::OpIEqual}},
      {Op::OpFOrdLessThan, {Op::OpFOrdLessThanEqual, Op::OpFUnordLessThan}},
      {Op::OpFOrdLessThanEqual, {Op::OpFOrdLessThan, Op::OpFUnordLessThanEqual}},
      {Op::OpFOrdGreaterThan, {Op::OpFOrdGreaterThanEqual, Op::OpFUnordGreaterThan}},
      {Op::OpFOrdGreaterThanEqual, {Op::OpFOrdGreaterThan, Op::OpFUnordGreaterThanEqual}},
      {Op::OpFOrdEqual, {Op::OpFUnordNotEqual, Op::OpFUnordEqual}},
      {Op::OpFUnordNotEqual, {Op::OpFOrdEqual, Op::OpFOrdNotEqual}},
      {Op::OpFOrdNotEqual, {Op::OpFOrdEqual, Op::OpFUnordNotEqual}},
      {Op::OpIsNan, {Op::OpIsInf}},
      {Op::OpIsInf, {Op::OpIsNan}},
  };
  exchange_opcode(a, at, others, into);
}

void mutate_order(const Analysis& a, std::size_t at, Mutants& into) {
  switch (a.at(at).op) {
    case Op::OpISub:
    case Op::OpFSub:
    case Op::OpUDiv:
    case Op::OpSDiv:
    case Op::OpFDiv:
    case Op::OpUMod:
    case Op::OpSMod:
    case Op::OpSRem:
    case Op::OpFMod:
    case Op::OpFRem:
    case Op::OpShiftLeftLogical:
    case Op::OpShiftRightLogical:
    case Op::OpShiftRightArithmetic:
    case Op::OpULessThan:
    case Op::OpULessThanEqual:
    case Op::OpUGreaterThan:
    case Op::OpUGreaterThanEqual:
    case Op::OpSLessThan:
    case Op::OpSLessThanEqual:
    case Op::OpSGreaterThan:
    case Op::OpSGreaterThanEqual:
    case Op::OpFOrdLessThan:
    case Op::OpFOrdLessThanEqual:
    case Op::OpFOrdGreaterThan:
    case Op::OpFOrdGreaterThanEqual:
    case Op::OpCompositeConstruct: swap_operands(a, at, 0, 1, into); break;
    default: break;
  }
}

void mutate_duplicate(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& x = a.at(at);
  const std::size_t first = is_function(x, GLSLstd450Fma) ? 1 : 0;
  if (!computes(x.op) && !is_shift(x.op) && first == 0) return;
  with_operand(a, at, first, first + 1, into);
  with_operand(a, at, first + 1, first, into);
}

void mutate_subgroup(const Analysis& a, std::size_t at, Mutants& into) {
  static const Others others = {
      {Op::OpGroupNonUniformFAdd, {Op::OpGroupNonUniformFMax}},
      {Op::OpGroupNonUniformFMax, {Op::OpGroupNonUniformFMin}},
      {Op::OpGroupNonUniformFMin, {Op::OpGroupNonUniformFMax}},
      {Op::OpGroupNonUniformFMul, {Op::OpGroupNonUniformFAdd}},
      {Op::OpGroupNonUniformIAdd, {Op::OpGroupNonUniformUMax}},
      {Op::OpGroupNonUniformUMax, {Op::OpGroupNonUniformUMin}},
      {Op::OpGroupNonUniformUMin, {Op::OpGroupNonUniformUMax}},
      {Op::OpGroupNonUniformSMax, {Op::OpGroupNonUniformSMin}},
      {Op::OpGroupNonUniformSMin, {Op::OpGroupNonUniformSMax}},
      {Op::OpGroupNonUniformAll, {Op::OpGroupNonUniformAny}},
      {Op::OpGroupNonUniformAny, {Op::OpGroupNonUniformAll}},
      {Op::OpGroupNonUniformShuffleUp, {Op::OpGroupNonUniformShuffleDown}},
      {Op::OpGroupNonUniformShuffleDown, {Op::OpGroupNonUniformShuffleUp}},
  };
  exchange_opcode(a, at, others, into);
  const Instruction& x = a.at(at);
  if (others.contains(x.op) && !x.ids.empty() && a.type_of(x.operand(0)) == x.type)
    replace_by_operand(a, at, 0, fmt::format("{} left out: each invocation keeps its own value", place(a, at)), into);
}

}  // namespace assay::falsify::spirv
