#include "falsify/mutation/ptx/operands.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <set>

namespace assay::falsify::ptx {

int bits_of(std::string_view type) {
  if (type == "pred") return 1;
  int bits = 0;
  if (type.size() < 2 || std::string_view("fsub").find(type[0]) == std::string_view::npos) return 0;
  const auto [end, error] = std::from_chars(type.data() + 1, type.data() + type.size(), bits);
  return error == std::errc{} && end == type.data() + type.size() ? bits : 0;
}

bool is_float(std::string_view type) { return type == "f32"; }
bool is_signed(std::string_view type) { return type.starts_with('s') && bits_of(type) > 0; }
bool is_integer(std::string_view type) { return bits_of(type) >= 8 && !type.starts_with('f'); }

std::optional<std::int64_t> integer(std::string_view operand) {
  const bool negative = operand.starts_with('-');
  if (negative) operand.remove_prefix(1);
  const bool hex = operand.starts_with("0x");
  if (hex) operand.remove_prefix(2);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(operand.data(), operand.data() + operand.size(), magnitude, hex ? 16 : 10);
  if (operand.empty() || error != std::errc{} || end != operand.data() + operand.size()) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<float> real(std::string_view operand) {
  if (operand.size() != 10 || (!operand.starts_with("0f") && !operand.starts_with("0F"))) return std::nullopt;
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(operand.data() + 2, operand.data() + 10, bits, 16);
  if (error != std::errc{} || end != operand.data() + 10) return std::nullopt;
  return std::bit_cast<float>(bits);
}

std::string real_text(float x) { return fmt::format("0f{:08X}", std::bit_cast<std::uint32_t>(x)); }

std::string with_type(std::string_view op, std::string_view type) {
  return std::string(op.substr(0, op.rfind('.') + 1)) + std::string(type);
}

std::string with_base(std::string_view op, std::string_view base) {
  const std::size_t dot = op.find('.');
  return std::string(base) + (dot == std::string_view::npos ? "" : std::string(op.substr(dot)));
}

/// Returns the position of a part, including its dot.
static std::size_t find_part(std::string_view op, std::string_view part) {
  for (std::size_t at = op.find(part); at != std::string_view::npos; at = op.find(part, at + 1))
    if (at + part.size() == op.size() || op[at + part.size()] == '.') return at;
  return std::string_view::npos;
}

std::string with_part(std::string_view op, std::string_view from, std::string_view to) {
  const std::size_t at = find_part(op, from);
  if (at == std::string_view::npos) return {};
  return std::string(op.substr(0, at)) + std::string(to) + std::string(op.substr(at + from.size()));
}

bool has_part(std::string_view op, std::string_view part) { return find_part(op, part) != std::string_view::npos; }

bool computes(std::string_view base) {
  static const std::set<std::string_view> known = {"add", "sub", "mul", "mad",  "fma",  "div", "rem",  "min",
                                                   "max", "and", "or",  "xor",  "shl",  "shr", "setp", "selp",
                                                   "mov", "bfi", "bfe", "lop3", "prmt", "shf"};
  return known.contains(base);
}

}  // namespace assay::falsify::ptx
