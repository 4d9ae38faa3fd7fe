// What operators ask about opcodes and operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::falsify::ptx {

/// Bits of a type such as "f32", "b64", "pred" (1); 0 for what is none.
int bits_of(std::string_view type);
bool is_float(std::string_view type);
bool is_signed(std::string_view type);
bool is_integer(std::string_view type);  ///< s, u or b, of 8 bits and more

/// "16", "-1", "0x1F".
std::optional<std::int64_t> integer(std::string_view operand);
/// "0f3F800000"
std::optional<float> real(std::string_view operand);
std::string real_text(float x);

/// `text` with another ending in the place of `type`, such as "shr.u32" -> "shr.s32".
std::string with_type(std::string_view op, std::string_view type);
/// The opcode with its first part exchanged: "add.s32" -> "sub.s32".
std::string with_base(std::string_view op, std::string_view base);
/// The first occurrence of a part exchanged: ".rn" -> ".rz"; empty where there is none.
std::string with_part(std::string_view op, std::string_view from, std::string_view to);
bool has_part(std::string_view op, std::string_view part);

/// What computes one number from numbers: its operands may be constants, and its result goes through registers.
bool computes(std::string_view base);

}  // namespace assay::falsify::ptx
