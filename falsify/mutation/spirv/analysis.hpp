// Queries of mutation operators on a module: definitions of ids, availability of values, liveness, and readable names
// of values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spirv/module.hpp"

namespace assay::falsify::spirv {

/// True for an instruction that makes a pointer into a composite from a pointer to the composite.
constexpr bool is_chain(spv::Op op) { return op == spv::Op::OpAccessChain || op == spv::Op::OpInBoundsAccessChain; }

/// Analysis of a module. Instructions are identified by their index in Module::code.
class Analysis {
 public:
  /// The module must outlive the analysis.
  explicit Analysis(const Module& module);

  const Module& module() const { return module_; }
  const Instruction& at(std::size_t index) const { return module_.code[index]; }
  std::size_t size() const { return module_.code.size(); }
  /// Returns the instruction that defines the id; null if there is none.
  const Instruction* definition(Id id) const;
  std::size_t index_of(Id id) const { return defined_at_[id]; }
  /// Returns the opcode of the id's definition, or OpNop.
  spv::Op opcode(Id id) const;
  /// Returns the id of the value's type, 0 for labels and types themselves.
  Id type_of(Id id) const;

  bool is_float(Id type) const;  ///< 32 bits, scalar or vector
  bool is_int(Id type) const;    ///< 32 bits, scalar
  bool is_bool(Id type) const;   ///< scalar
  bool is_signed(Id type) const;
  /// Returns the element type of a vector; otherwise the type itself.
  Id scalar_of(Id type) const;

  /// True if the instruction is in a function and affects externally visible memory, a branch or a barrier. A compiler
  /// removes other instructions: mutating them changes nothing.
  bool live(std::size_t index) const { return live_[index]; }
  /// True if the instruction at `index` may use the value: its definition dominates the instruction.
  bool available(Id id, std::size_t index) const;
  /// Returns the variable that a pointer points into, 0 if unknown.
  Id variable_of(Id pointer) const;
  /// Returns a decoration's operand, such as the BuiltIn of a variable.
  std::optional<std::uint32_t> decoration(Id id, spv::Decoration decoration) const;
  /// True for a variable with one of the invocation's coordinates (GlobalInvocationId, LocalInvocationId, WorkgroupId,
  /// ...).
  bool is_coordinate(Id variable) const;

  /// Returns the block of an instruction: index of its OpLabel.
  std::size_t block_of(std::size_t index) const { return block_[index]; }
  /// Returns the index of the block's last instruction.
  std::size_t end_of_block(std::size_t label) const;

  /// Returns "WorkgroupId.x * 4 + LocalInvocationId.y", `depth` operations deep, then "%318".
  std::string text(Id id, int depth = 2) const;

 private:
  void find_definitions();
  void find_blocks();
  void find_dominators();
  void find_live();
  std::string chain_text(const Instruction& chain, int depth) const;

  const Module& module_;
  std::vector<std::size_t> defined_at_;  ///< by id; size() if undefined
  std::vector<std::size_t> block_;       ///< by instruction; size() outside of functions
  std::vector<bool> live_;
  std::map<std::size_t, std::size_t> dominator_;  ///< immediate, by label index; the entry block's is itself
  std::map<std::pair<Id, spv::Decoration>, std::uint32_t> decorations_;
};

}  // namespace assay::falsify::spirv
