// PTX as nvcc writes it, taken apart and printed back byte for byte. Source: the PTX ISA, 4.2 to 4.5 (statements, labels,
// operands), 5.4 (variables), 11.1 (entries and functions).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify::ptx {

/// "@%p1 add.s32 %r1, %r2, 4;"
struct Instruction {
  std::string guard;                  ///< "@%p1" or "@!%p1"; empty where it has none
  std::string op;                     ///< "add.s32"
  std::vector<std::string> operands;  ///< "{%f1, %f2}" and "[%rd1+4]" are one each

  /// The opcode up to its first dot.
  std::string_view base() const;
  /// The opcode behind its last dot.
  std::string_view type() const;
  std::string text() const;
};

struct Statement {
  enum class Kind { open, close, label, directive, instruction };
  Kind kind = Kind::directive;
  std::string text;         ///< with the space and the comments before it
  Instruction instruction;  ///< of an instruction; of a label the name is its opcode
};

/// A function's statements, its braces included. Their texts in a row are the text given. Throws InputError where a
/// statement does not end.
std::vector<Statement> statements(std::string_view body);

/// Something at the top level: a directive, a variable, a function, an entry.
struct Item {
  std::string text;  ///< with the space and the comments before it
  std::string name;  ///< empty for directives
  bool entry = false;
  std::size_t body = 0;  ///< where the opening brace stands in `text`; its end where it has none
};

/// One PTX file. The items' texts in a row are its own.
struct Module {
  std::vector<Item> items;

  /// Throws InputError where brackets do not match.
  explicit Module(std::string_view text);
  std::string text() const;
};

/// The files in the output of `cuobjdump --dump-ptx`, which has lines about each one before it.
std::vector<std::string> dumped(std::string_view output);

/// Operands that a register or an address stands for: names of registers in it, in order.
std::vector<std::string> registers_in(std::string_view operand);
/// Elements of "{%f1, %f2}"; of anything else, itself.
std::vector<std::string> elements(std::string_view operand);
/// "{%f1, %f2}" of two elements.
std::string vector_of(const std::vector<std::string>& elements);
std::vector<std::string> split(std::string_view text, char by);

}  // namespace assay::falsify::ptx
