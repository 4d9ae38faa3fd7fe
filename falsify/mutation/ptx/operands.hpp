// Queries of mutation operators on opcodes and operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::falsify::ptx {

/// Returns the bits of a type such as "f32", "b64", "pred" (1); 0 if it is no type.
int bits_of(std::string_view type);
bool is_float(std::string_view type);
bool is_signed(std::string_view type);
bool is_integer(std::string_view type);  ///< s, u or b, of at least 8 bits

/// Parses "16", "-1", "0x1F".
std::optional<std::int64_t> integer(std::string_view operand);
/// Parses "0f3F800000".
std::optional<float> real(std::string_view operand);
std::string real_text(float x);

/// Returns `op` with another ending in place of `type`, such as "shr.u32" -> "shr.s32".
std::string with_type(std::string_view op, std::string_view type);
/// Returns the opcode with another first part: "add.s32" -> "sub.s32".
std::string with_base(std::string_view op, std::string_view base);
/// Returns the opcode with the first occurrence of a part exchanged: ".rn" -> ".rz"; empty if there is none.
std::string with_part(std::string_view op, std::string_view from, std::string_view to);
bool has_part(std::string_view op, std::string_view part);

/// True if the instruction computes one number from numbers: its operands may be constants, and its result is in a
/// register.
bool computes(std::string_view base);

}  // namespace assay::falsify::ptx
