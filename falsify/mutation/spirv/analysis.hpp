// What mutation operators ask about a module: who defines an id, where a value may be used, what is dead, and how to
// name a value to a person.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spirv/module.hpp"

namespace assay::falsify::spirv {

/// A pointer into a composite that another points to.
constexpr bool is_chain(spv::Op op) { return op == spv::Op::OpAccessChain || op == spv::Op::OpInBoundsAccessChain; }

/// Instructions are named by their index in Module::code.
class Analysis {
 public:
  /// The module must outlive it.
  explicit Analysis(const Module& module);

  const Module& module() const { return module_; }
  const Instruction& at(std::size_t index) const { return module_.code[index]; }
  std::size_t size() const { return module_.code.size(); }
  /// The instruction that defines the id; null for an id that nothing defines.
  const Instruction* definition(Id id) const;
  std::size_t index_of(Id id) const { return defined_at_[id]; }
  /// The opcode that defines it, or OpNop.
  spv::Op opcode(Id id) const;
  /// Id of the value's type, 0 for labels and types themselves.
  Id type_of(Id id) const;

  bool is_float(Id type) const;   ///< 32 bits, scalar or vector
  bool is_int(Id type) const;     ///< 32 bits, scalar
  bool is_bool(Id type) const;    ///< scalar
  bool is_signed(Id type) const;
  /// Type of the elements of a vector; the type itself otherwise.
  Id scalar_of(Id type) const;

  /// In a function, and its effect reaches memory that others see, a branch or a barrier. What is not live a compiler
  /// removes: changing it changes nothing.
  bool live(std::size_t index) const { return live_[index]; }
  /// The value may be used by the instruction at `index`: its definition dominates it.
  bool available(Id id, std::size_t index) const;
  /// The variable that a pointer points into, 0 where it is not known.
  Id variable_of(Id pointer) const;
  /// A decoration's operand, such as the BuiltIn of a variable.
  std::optional<std::uint32_t> decoration(Id id, spv::Decoration decoration) const;
  /// The variable of one of the invocation's coordinates (GlobalInvocationId, LocalInvocationId, WorkgroupId, ...).
  bool is_coordinate(Id variable) const;

  /// The block that an instruction of a function stands in: index of its OpLabel.
  std::size_t block_of(std::size_t index) const { return block_[index]; }
  /// Index of the block's last instruction.
  std::size_t end_of_block(std::size_t label) const;

  /// "WorkgroupId.x * 4 + LocalInvocationId.y", `depth` operations deep, then "%318".
  std::string text(Id id, int depth = 2) const;

 private:
  void find_definitions();
  void find_blocks();
  void find_dominators();
  void find_live();
  std::string chain_text(const Instruction& chain, int depth) const;

  const Module& module_;
  std::vector<std::size_t> defined_at_;             ///< by id; size() where nothing defines it
  std::vector<std::size_t> block_;                  ///< by instruction; size() outside of functions
  std::vector<bool> live_;
  std::map<std::size_t, std::size_t> dominator_;    ///< immediate, by label index; the entry block's is itself
  std::map<std::pair<Id, spv::Decoration>, std::uint32_t> decorations_;
};

}  // namespace assay::falsify::spirv
