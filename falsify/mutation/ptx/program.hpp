// One entry of a PTX file with what it refers to, what operators ask about its code, and the limit that makes each of its
// mutants end.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "falsify/mutation/ptx/module.hpp"

namespace assay::falsify::ptx {

/// Statements that stand in the place of one. Empty: it is removed.
struct Edit {
  std::size_t at = 0;
  std::vector<Instruction> with;
};

/// Turns of all loops of one thread, after which it ends the grid by `trap`. The cases that campaigns draw hold 2^21
/// elements at most: a thread that did the work of all others, one turn an element, would take half of it.
inline constexpr unsigned kTurns = 1U << 22;

/// Registers that edits may use; every guarded program declares them.
inline constexpr const char* kFloat = "%assay_f";   ///< .f32
inline constexpr const char* kHalf = "%assay_h";    ///< .b16
inline constexpr const char* kWord = "%assay_w";    ///< .b32
inline constexpr const char* kLong = "%assay_l";    ///< .b64
inline constexpr const char* kShort = "%assay_s";   ///< .b16

class Program {
 public:
  /// The entry with all functions and variables that it refers to, and those that they refer to. Throws InputError where
  /// the module has no such entry.
  Program(const Module& module, std::string_view entry);

  const std::string& entry() const { return entry_; }
  /// Of the entry's body.
  const std::vector<Statement>& code() const { return sections_[own_].body; }
  const Instruction& at(std::size_t i) const { return code()[i].instruction; }
  bool is_instruction(std::size_t i) const { return code()[i].kind == Statement::Kind::instruction; }
  /// As it was read.
  std::string text() const;
  /// With the edits, in increasing order, and with the limit: each function counts in a register how often it comes by
  /// the labels that branches lead back to, and ends the grid beyond kTurns. Barriers that never open remain.
  std::string guarded(const std::vector<Edit>& edits = {}) const;

  /// Type of a register, such as "f32", "b64" or "pred"; of a number, "" .
  std::string_view type_of(std::string_view operand) const;
  /// A branch to a label that stands before it.
  bool leads_back(std::size_t i) const;
  /// The statement that defines the register last before `i` in the same block; nothing where that is none.
  std::optional<std::size_t> definition(std::string_view reg, std::size_t i) const;
  /// Another register of the type of `reg` that the same block has defined before `i`, the nearest; empty: none.
  std::string neighbour(std::string_view reg, std::size_t i) const;
  /// Bytes of the entry's parameter of this name; 0 where it is no array of them.
  std::size_t parameter_bytes(std::string_view name) const;

 private:
  struct Section {
    std::string head;  ///< up to its body
    std::vector<Statement> body;
  };
  void find_registers();

  std::string entry_;
  std::vector<Section> sections_;
  std::size_t own_ = 0;  ///< the entry's section
  std::map<std::string, std::size_t, std::less<>> labels_;  ///< where each stands first
  std::map<std::string, std::string, std::less<>> types_;   ///< by name, or by what stands before the number of a range
};

/// What an instruction defines: names of registers.
std::vector<std::string> defined(const Instruction& x);

}  // namespace assay::falsify::ptx
