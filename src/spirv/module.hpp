// A SPIR-V module as a list of instructions, read and written word by word.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <vector>

namespace assay::falsify::spirv {

using Id = std::uint32_t;
using Words = std::vector<std::uint32_t>;

struct Instruction {
  spv::Op op = spv::Op::OpNop;
  Words words;                     ///< the first holds length and opcode
  Id type = 0, result = 0;         ///< 0: none
  std::vector<std::uint16_t> ids;  ///< positions in `words` of operands that are ids of values, blocks or variables

  Id operand(std::size_t i) const { return words[ids[i]]; }
};

/// Encodes one instruction: its length and opcode, then the given words.
Words encode(spv::Op op, std::initializer_list<std::uint32_t> operands);

/// A parsed module; parsing is lossless: encode(Module(words)) == words.
struct Module {
  std::array<std::uint32_t, 5> header{};  ///< magic, version, generator, bound of ids, schema
  std::vector<Instruction> code;

  Module() = default;
  /// Throws InputError if SPIRV-Tools cannot parse the words.
  explicit Module(std::span<const std::uint32_t> words);
  Words encode() const;
};

/// Returns spirv-val's error for the module, for Vulkan 1.2; nothing if it is valid.
std::optional<std::string> invalid(std::span<const std::uint32_t> words);

/// Returns "OpFAdd".
std::string name(spv::Op op);

}  // namespace assay::falsify::spirv
