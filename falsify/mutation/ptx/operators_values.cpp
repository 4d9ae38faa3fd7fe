// Faults of computed values: opcodes, functions, comparisons, operands, operations of a warp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/operands.hpp"

namespace assay::falsify::ptx {
namespace {

using Others = std::map<std::string_view, std::vector<std::string_view>>;

/// Replaces the instruction by a move of its result type; no mutant if the types of result and operand differ.
void replace_by_operand(const Site& s, std::size_t operand, std::string_view says) {
  const Instruction& x = s.x();
  const std::string type(x.type());
  s.put(says, {{x.guard,
                "mov." + (type == "pred" || is_float(type) ? type : fmt::format("b{}", bits_of(type))),
                {x.operands[0], x.operands[operand]}}});
}

/// Exchanges integer opcodes. Float opcodes have a rounding or ftz part: "add.f32", "add.rn.f32" and "add.ftz.f32" are
/// all float.
void exchange_integer(const Site& s) {
  const Instruction& x = s.x();
  const std::string type(x.type());
  const int bits = bits_of(type);
  const auto to = [&](std::string_view head) { s.opcode(fmt::format("{}.{}", head, type)); };
  if (x.op == "add." + type) to("sub"), to("mul.lo");
  if (x.op == "sub." + type) to("add");
  if (x.op == "mul.lo." + type) to("add"), to("div");
  if (x.op == "div." + type) to("mul.lo"), to("rem");
  if (x.op == "rem." + type) to("div");
  if (x.base() == "shl") s.opcode(fmt::format("shr.u{}", bits));
  if (x.base() == "shr")
    s.opcode(fmt::format("shl.b{}", bits)), s.opcode(fmt::format("shr.{}{}", is_signed(type) ? 'u' : 's', bits));
  if (x.base() == "neg") replace_by_operand(s, 1, "left out");
}

void exchange_float(const Site& s) {
  static const Others others = {{"add", {"sub", "mul"}}, {"sub", {"add"}}, {"mul", {"add"}}, {"div", {"mul"}}};
  const Instruction& x = s.x();
  const std::string_view base = x.base();
  if (base == "neg") return replace_by_operand(s, 1, "left out");
  const auto found = others.find(base);
  if (found == others.end()) return;
  for (const std::string_view other : found->second) {
    const std::string op = with_base(x.op, other);
    const std::string exact =
        with_part(op, ".full", "").empty() ? with_part(op, ".approx", "") : with_part(op, ".full", "");
    s.opcode(exact.empty() ? op : exact);
  }
  if (base == "mul") s.opcode("div.rn.f32");
  if (base != "div") replace_by_operand(s, 1, "second operand left out");
}

void exchange_bits(const Site& s) {
  static const Others others = {{"and", {"or", "xor"}}, {"or", {"and", "xor"}}, {"xor", {"or"}}};
  if (s.x().base() == "not") return replace_by_operand(s, 1, "left out");
  if (const auto found = others.find(s.x().base()); found != others.end())
    for (const std::string_view other : found->second) s.opcode(with_base(s.x().op, other));
}

/// Exchanges signed and unsigned integers.
void exchange_sign(const Site& s) {
  static const std::map<std::string_view, std::string_view> others = {
      {"cvt.s64.s32", "cvt.u64.u32"},         {"cvt.u64.u32", "cvt.s64.s32"},
      {"cvt.rn.f32.s32", "cvt.rn.f32.u32"},   {"cvt.rn.f32.u32", "cvt.rn.f32.s32"},
      {"cvt.rn.f32.s64", "cvt.rn.f32.u64"},   {"cvt.rzi.s32.f32", "cvt.rzi.u32.f32"},
      {"cvt.rzi.u32.f32", "cvt.rzi.s32.f32"}, {"mul.wide.u32", "mul.wide.s32"},
      {"mul.wide.s32", "mul.wide.u32"}};
  if (const auto found = others.find(s.x().op); found != others.end()) s.opcode(std::string(found->second));
}

bool same_type(const Site& s, std::size_t i, std::size_t j) {
  const Instruction& x = s.x();
  const auto type = [&](std::size_t n) { return s.program.type_of(x.operands[n]); };
  if (type(i) == type(j)) return !type(i).empty();
  // A constant fits every operand of the instruction's type.
  const bool any =
      x.base() == "sub" || x.base() == "div" || x.base() == "rem" || x.base() == "setp" || x.base() == "fma";
  return any && (type(i).empty() || type(j).empty());
}

void swap_operands(const Site& s, std::size_t i, std::size_t j) {
  if (!same_type(s, i, j)) return;
  Instruction x = s.x();
  std::swap(x.operands[i], x.operands[j]);
  s.put("operands exchanged", {x});
}

/// Exchanges two elements of a vector operand.
void swap_elements(const Site& s, std::size_t operand, std::size_t i, std::size_t j) {
  auto parts = elements(s.x().operands[operand]);
  if (parts.size() <= std::max(i, j)) return;
  std::swap(parts[i], parts[j]);
  s.operand("elements exchanged", operand, vector_of(parts));
}

void copy_operand(const Site& s, std::size_t to, std::size_t from) {
  if (same_type(s, to, from)) s.operand("an operand twice", to, s.x().operands[from]);
}

/// True for "mma.sync.aligned..." and "wmma.mma.sync.aligned..." with operands d, a, b, c.
bool is_product(const Instruction& x) { return x.op.starts_with("mma.sync") || x.op.starts_with("wmma.mma"); }

}  // namespace

void mutate_arithmetic(const Site& s) {
  const std::string_view type = s.x().type();
  if (is_float(type)) exchange_float(s);
  else if (is_integer(type)) exchange_integer(s);
  exchange_bits(s);
  exchange_sign(s);
  if (s.x().op == "fma.rn.f32") {
    Instruction x = s.x();
    const std::string a = std::exchange(x.operands[1], kFloat);
    s.put("product negated", {{x.guard, "neg.f32", {kFloat, a}}, x});
  }
}

void mutate_function(const Site& s) {
  const Instruction& x = s.x();
  if (x.base() == "min" || x.base() == "max") s.opcode(with_base(x.op, x.base() == "min" ? "max" : "min"));
  if (x.base() == "sin" || x.base() == "cos") s.opcode(with_base(x.op, x.base() == "sin" ? "cos" : "sin"));
  if (x.op == "rsqrt.approx.f32") s.opcode("sqrt.rn.f32");
  if (x.op == "sqrt.rn.f32") s.opcode("rsqrt.approx.f32");
  static const std::map<std::string_view, std::string_view> roundings = {
      {".rmi", ".rpi"}, {".rpi", ".rmi"}, {".rni", ".rzi"}, {".rzi", ".rni"}};
  if (x.base() == "cvt")
    for (const auto& [from, to] : roundings)
      if (has_part(x.op, from)) s.opcode(with_part(x.op, from, to));
  const bool left_out = x.base() == "ex2" || x.base() == "lg2" || x.base() == "rcp" || x.base() == "sqrt" ||
                        x.base() == "abs" || x.base() == "tanh";
  if ((left_out && is_float(x.type())) || x.op == "cvt.sat.f32.f32") replace_by_operand(s, 1, "left out");
  if (x.op == "bar.red.or.pred") s.opcode("bar.red.and.pred");
  if (x.base() == "fma") swap_operands(s, 1, 3), swap_operands(s, 2, 3);
}

void mutate_fma(const Site& s) {
  const Instruction& x = s.x();
  if (x.base() == "fma" || x.op.starts_with("mad.lo.")) {
    s.put("addend dropped", {{x.guard, with_base(x.op, "mul"), {x.operands[0], x.operands[1], x.operands[2]}}});
    replace_by_operand(s, 3, "product dropped");
  }
  if (!is_product(x)) return;
  Instruction y = x;
  const std::size_t n = elements(x.operands[3]).size();
  if (!s.program.type_of(elements(x.operands[0])[0]).starts_with('f')) return;
  y.operands[3] = vector_of(std::vector<std::string>(n, kFloat));
  s.put("sum so far dropped", {{"", "mov.f32", {kFloat, real_text(0)}}, y});
}

void mutate_comparison(const Site& s) {
  static const Others others = {{"lt", {"le"}},         {"le", {"lt"}},         {"gt", {"ge"}},
                                {"ge", {"gt"}},         {"eq", {"ne"}},         {"ne", {"eq"}},
                                {"ltu", {"leu", "lt"}}, {"leu", {"ltu", "le"}}, {"gtu", {"geu", "gt"}},
                                {"geu", {"gtu", "ge"}}, {"equ", {"neu", "eq"}}, {"neu", {"equ", "ne"}}};
  const Instruction& x = s.x();
  if (x.base() != "setp") return;
  const std::string compare = split(x.op, '.')[1], type(x.type());
  const auto to = [&](std::string_view other, std::string_view as) { s.opcode(fmt::format("setp.{}.{}", other, as)); };
  const auto found = others.find(compare);
  if (found == others.end()) return;
  const bool equality = compare.starts_with("eq") || compare.starts_with("ne");
  for (const std::string_view other : found->second)
    if (!equality || !is_float(type) || compare.ends_with('u')) to(other, type);
  if (is_float(type) && !compare.ends_with('u')) {
    if (equality) to(compare == "eq" ? "neu" : "equ", type);
    to(compare + "u", type);  // true for NaN, too
  }
  if (is_integer(type) && !equality && !type.starts_with('b'))
    to(compare, (is_signed(type) ? "u" : "s") + type.substr(1));
}

void mutate_order(const Site& s) {
  const Instruction& x = s.x();
  const std::string_view base = x.base();
  const bool ordered = base == "sub" || base == "div" || base == "rem" || base == "shl" || base == "shr" ||
                       (base == "setp" && !has_part(x.op, ".eq") && !has_part(x.op, ".ne"));
  if (ordered || x.op.starts_with("cvt.rn.f16x2") || x.op.starts_with("cvt.rn.bf16x2")) swap_operands(s, 1, 2);
  if (base == "mov" && x.operands[1].starts_with('{')) swap_elements(s, 1, 0, 1);
  if (base == "mov" && x.operands[0].starts_with('{')) swap_elements(s, 0, 0, 1);
  if ((base == "ld" || base == "ldmatrix") && x.operands[0].starts_with('{')) swap_elements(s, 0, 0, 1);
  if (base == "st" && x.operands[1].starts_with('{')) swap_elements(s, 1, 0, 1);
  if (base == "ldmatrix")
    s.opcode(has_part(x.op, ".trans") ? with_part(x.op, ".trans", "") : with_part(x.op, ".shared", ".trans.shared"));
  if (is_product(x)) swap_elements(s, 1, 0, 1), swap_elements(s, 1, 1, 2), swap_elements(s, 2, 0, 1);
  if (x.op.starts_with("wmma.load.a") || x.op.starts_with("wmma.load.b"))
    s.opcode(has_part(x.op, ".row") ? with_part(x.op, ".row", ".col") : with_part(x.op, ".col", ".row"));
}

void mutate_duplicate(const Site& s) {
  const Instruction& x = s.x();
  static const std::vector<std::string_view> known = {"add", "sub", "mul", "div", "rem", "min",
                                                      "max", "fma", "mad", "shl", "shr"};
  if (std::ranges::find(known, x.base()) == known.end()) return;
  copy_operand(s, 1, 2);
  copy_operand(s, 2, 1);
}

void mutate_subgroup(const Site& s) {
  const Instruction& x = s.x();
  if (x.base() == "vote") {
    if (has_part(x.op, ".all")) s.opcode(with_part(x.op, ".all", ".any"));
    if (has_part(x.op, ".any")) s.opcode(with_part(x.op, ".any", ".all"));
    if (has_part(x.op, ".ballot"))
      s.operand("predicate negated", 1, x.operands[1].starts_with('!') ? x.operands[1].substr(1) : "!" + x.operands[1]);
  }
  if (x.base() != "shfl") return;
  static const std::map<std::string_view, std::string_view> modes = {
      {".bfly", ".down"}, {".down", ".up"}, {".up", ".down"}, {".idx", ".bfly"}};
  for (const auto& [from, to] : modes)
    if (has_part(x.op, from)) s.opcode(with_part(x.op, from, to));
  s.operand("within half a warp", 3, "4127");  // lanes are clamped at 31, segments are 16 lanes long
  const auto results = split(x.operands[0], '|');
  std::vector<Instruction> own{{x.guard, "mov.b32", {results[0], x.operands[1]}}};
  if (results.size() > 1) own.push_back({x.guard, "setp.eq.s32", {results[1], "0", "0"}});
  s.put("left out: each lane keeps its own value", std::move(own));
}

}  // namespace assay::falsify::ptx
