// Faults of constants, of addresses and coordinates, and of precision.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/operands.hpp"

namespace assay::falsify::ptx {
namespace {

/// A parsed "[%rd1+4]".
struct Address {
  std::string base;
  std::int64_t offset = 0;

  std::string text() const { return offset == 0 ? fmt::format("[{}]", base) : fmt::format("[{}+{}]", base, offset); }
};

std::optional<Address> address(std::string_view operand) {
  if (!operand.starts_with('[') || !operand.ends_with(']')) return std::nullopt;
  const std::string_view inside = operand.substr(1, operand.size() - 2);
  const std::size_t plus = inside.find('+');
  if (plus == std::string_view::npos) return Address{std::string(inside)};
  const auto offset = integer(inside.substr(plus + 1));
  return offset ? std::optional(Address{std::string(inside.substr(0, plus)), *offset}) : std::nullopt;
}

/// Returns the bytes that an instruction reads or writes at an address: the distance to its neighbour.
std::int64_t element_bytes(const Instruction& x) {
  if (x.op.starts_with("cp.async")) return integer(x.operands[2]).value_or(0);
  if (x.base() == "ldmatrix") return 16;
  if (x.base() == "wmma") return 4;
  return bits_of(x.type()) / 8 * (has_part(x.op, ".v4") ? 4 : has_part(x.op, ".v2") ? 2 : 1);
}

bool accesses(const Instruction& x) {
  static const std::set<std::string_view> known = {"ld", "st", "atom", "red", "ldmatrix"};
  return known.contains(x.base()) || x.op.starts_with("cp.async.c") || x.op.starts_with("wmma.load") ||
         x.op.starts_with("wmma.store");
}

/// Returns the f32 results of an arithmetic instruction; empty for one that only selects an operand.
std::vector<std::string> rounded_results(const Site& s) {
  static const std::set<std::string_view> known = {"add",   "sub",  "mul", "div", "fma", "ex2", "lg2",
                                                   "rsqrt", "sqrt", "rcp", "sin", "cos", "mma"};
  const Instruction& x = s.x();
  if (!known.contains(x.base()) && !x.op.starts_with("wmma.mma")) return {};
  auto results = elements(x.operands[0]);
  if (s.program.type_of(results[0]) != "f32") return {};
  return results;
}

/// Passes every f32 result through `through` before its use.
template <class Through>
void narrow(const Site& s, std::string_view says, const Through& through) {
  const auto results = rounded_results(s);
  if (results.empty()) return;
  std::vector<Instruction> with{s.x()};
  for (const std::string& f : results)
    for (Instruction& y : through(f)) with.push_back(std::move(y));
  s.put(says, std::move(with));
}

}  // namespace

void mutate_constant(const Site& s) {
  const Instruction& x = s.x();
  if (!computes(x.base())) return;
  for (std::size_t i = 1; i < x.operands.size(); ++i) {
    const std::string& operand = x.operands[i];
    if (const auto n = integer(operand)) {
      const int bits = bits_of(x.type());
      if (bits == 1) continue;
      for (const std::int64_t other : {*n + 1, *n - 1, 2 * *n})
        if (other != *n &&
            (bits >= 64 || (other < (std::int64_t{1} << bits) && other >= -(std::int64_t{1} << (bits - 1)))))
          s.operand("constant", i, std::to_string(other));
    } else if (const auto f = real(operand)) {
      for (const float other : {*f * 1.1F, *f + 1, -*f, 0.0F})
        if (real_text(other) != real_text(*f)) s.operand("constant", i, real_text(other));
    }
  }
}

void mutate_index(const Site& s) {
  const Instruction& x = s.x();
  if (!accesses(x)) return;
  for (std::size_t i = 0; i < x.operands.size(); ++i) {
    const auto place = address(x.operands[i]);
    const std::int64_t step = element_bytes(x);
    if (!place || step == 0) continue;
    Address moved{place->base, place->offset + step};
    if (has_part(x.op, ".param")) {  // another argument: the last one's neighbour is the previous one
      const auto bytes = static_cast<std::int64_t>(s.program.parameter_bytes(place->base));
      if (moved.offset + step > bytes) moved.offset = place->offset - step;
      if (moved.offset < 0) continue;
    }
    s.operand("next place", i, moved.text());
    if (place->offset != 0 && !has_part(x.op, ".param")) s.operand("offset left out", i, Address{place->base}.text());
    const std::string other = s.program.neighbour(place->base, s.at);
    if (!other.empty()) s.operand("another address", i, Address{other, place->offset}.text());
  }
}

void mutate_component(const Site& s) {
  static const std::array<std::string_view, 4> known = {"%tid.", "%ctaid.", "%ntid.", "%nctaid."};
  const Instruction& x = s.x();
  for (std::size_t i = 1; i < x.operands.size(); ++i)
    for (const std::string_view name : known) {
      if (!x.operands[i].starts_with(name)) continue;
      for (const char c : {'x', 'y', 'z'})
        if (x.operands[i].back() != c) s.operand("another dimension", i, std::string(name) + c);
    }
}

void mutate_rounding(const Site& s) {
  const std::string& op = s.x().op;
  if (op.starts_with("cvt.rn.f16") || op.starts_with("cvt.rn.bf16")) s.opcode(with_part(op, ".rn", ".rz"));
}

void mutate_half(const Site& s) {
  narrow(s, "rounded to f16", [](const std::string& f) {
    return std::vector<Instruction>{{"", "cvt.rn.f16.f32", {kHalf, f}}, {"", "cvt.f32.f16", {f, kHalf}}};
  });
}

void mutate_bfloat16(const Site& s) {
  narrow(s, "truncated to bf16", [](const std::string& f) {
    return std::vector<Instruction>{
        {"", "mov.b32", {kWord, f}}, {"", "and.b32", {kWord, kWord, "0xffff0000"}}, {"", "mov.b32", {f, kWord}}};
  });
}

}  // namespace assay::falsify::ptx
