// One entry of a PTX file with its dependencies, queries of mutation operators on its code, and the limit that ends
// each of its mutants.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "falsify/mutation/ptx/module.hpp"

namespace assay::falsify::ptx {

/// Statements that replace one. Empty: removes the statement.
struct Edit {
  std::size_t at = 0;
  std::vector<Instruction> with;
};

/// Limit on the loop iterations of one thread, beyond which it ends the grid by `trap`. Drawn cases have at most 2^21
/// elements: a thread that did the work of all others, one iteration an element, would take half of the limit.
inline constexpr unsigned kMaxIterations = 1U << 22;

/// Registers that edits may use; every guarded program declares them.
inline constexpr const char* kFloat = "%assay_f";  ///< .f32
inline constexpr const char* kHalf = "%assay_h";   ///< .b16
inline constexpr const char* kWord = "%assay_w";   ///< .b32
inline constexpr const char* kLong = "%assay_l";   ///< .b64
inline constexpr const char* kShort = "%assay_s";  ///< .b16

class Program {
 public:
  /// Takes the entry with all functions and variables that it refers to, directly or indirectly. Throws InputError if
  /// the module has no such entry.
  Program(const Module& module, std::string_view entry);

  const std::string& entry() const { return entry_; }
  /// Statements of the entry's body.
  const std::vector<Statement>& code() const { return sections_[own_].body; }
  const Instruction& at(std::size_t i) const { return code()[i].instruction; }
  bool is_instruction(std::size_t i) const { return code()[i].kind == Statement::Kind::instruction; }
  /// Returns the text as read.
  std::string text() const;
  /// Returns the text with the edits, in increasing order, and with the limit: each function counts in a register how
  /// often it passes labels of backward branches, and ends the grid beyond kMaxIterations. Barriers that never open are
  /// not covered.
  std::string guarded(const std::vector<Edit>& edits = {}) const;

  /// Returns the type of a register, such as "f32", "b64" or "pred"; "" for a number.
  std::string_view type_of(std::string_view operand) const;
  /// True if the statement is a branch to a label before it.
  bool leads_back(std::size_t i) const;
  /// Returns the last statement before `i` in the same block that defines the register; nothing if there is none.
  std::optional<std::size_t> definition(std::string_view reg, std::size_t i) const;
  /// Returns the nearest other register of the type of `reg` that the same block defines before `i`; empty if there is
  /// none.
  std::string neighbour(std::string_view reg, std::size_t i) const;
  /// Returns the bytes of the entry's parameter of this name; 0 if it is no byte array.
  std::size_t parameter_bytes(std::string_view name) const;

 private:
  struct Section {
    std::string head;  ///< up to its body
    std::vector<Statement> body;
  };
  void find_registers();

  std::string entry_;
  std::vector<Section> sections_;
  std::size_t own_ = 0;                                     ///< the entry's section
  std::map<std::string, std::size_t, std::less<>> labels_;  ///< first position of each
  std::map<std::string, std::string, std::less<>> types_;   ///< by name, or by the prefix before the number of a range
};

/// Returns the names of the registers that an instruction defines.
std::vector<std::string> defined(const Instruction& x);

}  // namespace assay::falsify::ptx
