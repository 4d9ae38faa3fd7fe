// PTX as nvcc writes it, parsed and printed back byte for byte. Source: the PTX ISA, 4.2 to 4.5 (statements, labels,
// operands), 5.4 (variables), 11.1 (entries and functions).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify::ptx {

/// "@%p1 add.s32 %r1, %r2, 4;"
struct Instruction {
  std::string guard;                  ///< "@%p1" or "@!%p1"; empty if there is none
  std::string op;                     ///< "add.s32"
  std::vector<std::string> operands;  ///< "{%f1, %f2}" and "[%rd1+4]" are one each

  /// Returns the opcode up to its first dot.
  std::string_view base() const;
  /// Returns the opcode after its last dot.
  std::string_view type() const;
  std::string text() const;
};

struct Statement {
  enum class Kind { open, close, label, directive, instruction };
  Kind kind = Kind::directive;
  std::string text;         ///< with preceding white space and comments
  Instruction instruction;  ///< the parsed instruction; for a label the name is the opcode
};

/// Splits a function's statements, including its braces. The concatenated texts equal the input. Throws InputError if a
/// statement does not end.
std::vector<Statement> statements(std::string_view body);

/// A top-level item: a directive, a variable, a function, an entry.
struct Item {
  std::string text;  ///< with preceding white space and comments
  std::string name;  ///< empty for directives
  bool entry = false;
  std::size_t body = 0;  ///< position of the opening brace in `text`; its end if there is none
};

/// One PTX file. The concatenated texts of its items equal the file's.
struct Module {
  std::vector<Item> items;

  /// Throws InputError if brackets do not match.
  explicit Module(std::string_view text);
  std::string text() const;
};

/// Returns the files in the output of `cuobjdump --dump-ptx`, which has header lines before each.
std::vector<std::string> dumped(std::string_view output);

/// Returns the names of registers in an operand, such as an address, in order.
std::vector<std::string> registers_in(std::string_view operand);
/// Returns the elements of "{%f1, %f2}"; for other operands, the operand itself.
std::vector<std::string> elements(std::string_view operand);
/// Returns "{%f1, %f2}" for two elements.
std::string vector_of(const std::vector<std::string>& elements);
std::vector<std::string> split(std::string_view text, char by);

}  // namespace assay::falsify::ptx
