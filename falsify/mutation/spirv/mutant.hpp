// Mutants of a SPIR-V module: each is the module with one small fault, such as a compiler or an author may make.
//
// Families of faults are the rows of a table (operators()). Outside of functions a mutant only adds constants and
// types, so that workgroup sizes, bindings and capabilities stay. Instructions that are not live are not mutated: a
// compiler removes them, so that their mutants would be equivalent.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/mutation/spirv/analysis.hpp"

namespace assay::falsify::spirv {

/// Instructions that replace one. Empty: removes the instruction.
struct Edit {
  std::size_t at = 0;
  std::vector<Words> with;
};

struct Mutant {
  std::string_view family;
  bool held_out = false;
  std::size_t at = 0;               ///< index of the mutated instruction
  std::string description;          ///< "OpFAdd at 412 -> OpFSub: (a + b) in block %302"
  std::vector<Words> declarations;  ///< new types and constants
  std::vector<Edit> edits;          ///< at increasing indices
  Id bound = 0;

  /// Id of the change, independent of the operator that made it.
  std::uint64_t key() const;
};

/// Builder of an operator's mutant: reuses ids, constants and types of the module.
class Draft {
 public:
  Draft(const Analysis& analysis, std::size_t at, std::string description);

  Id fresh() { return mutant_.bound++; }
  /// Returns a constant of a 32-bit type, or a vector of such constants.
  Id constant(Id type, std::uint32_t bits);
  /// Returns a vector of `n` equal constants.
  Id splat(Id type, Id scalar, std::uint32_t n, std::uint32_t bits);
  Id boolean(Id type, bool value);
  /// Returns the type with these operands, such as OpTypeInt 32 0.
  Id type(spv::Op op, std::initializer_list<std::uint32_t> operands);
  void replace(std::size_t at, std::vector<Words> with) { mutant_.edits.push_back({at, std::move(with)}); }
  /// Changes a word of the instruction.
  void set(std::size_t at, std::size_t word, std::uint32_t value);
  /// Changes the opcode of the instruction.
  void set_op(std::size_t at, spv::Op op);
  Mutant take() { return std::move(mutant_); }

 private:
  Id declare(Words words, std::size_t result_at);
  const Analysis& analysis_;
  Mutant mutant_;
};

using Mutants = std::vector<Mutant>;

/// A family of faults. Held-out families were not used for tuning suites or operators; reports count them separately.
struct Operator {
  std::string_view family;
  bool held_out = false;
  void (*generate)(const Analysis& analysis, std::size_t at, Mutants& into) = nullptr;
};
std::vector<Operator> operators();

/// Returns every mutant, in order of families and instructions; none equals the module, and no two are the same change.
Mutants mutants(const Analysis& analysis);
/// Returns the mutated module.
Words apply(const Module& module, const Mutant& mutant);

/// FNV-1a over words: identifies content in reports.
std::uint64_t hash(std::span<const std::uint32_t> words, std::uint64_t seed = 0xcbf29ce484222325u);

// The families, one function each (operators_*.cpp), called with every live instruction.
void mutate_barrier(const Analysis&, std::size_t at, Mutants&);
void mutate_branch(const Analysis&, std::size_t at, Mutants&);
void mutate_loop(const Analysis&, std::size_t at, Mutants&);
void mutate_select(const Analysis&, std::size_t at, Mutants&);
void mutate_store(const Analysis&, std::size_t at, Mutants&);
void mutate_arithmetic(const Analysis&, std::size_t at, Mutants&);
void mutate_function(const Analysis&, std::size_t at, Mutants&);
void mutate_fma(const Analysis&, std::size_t at, Mutants&);
void mutate_comparison(const Analysis&, std::size_t at, Mutants&);
void mutate_order(const Analysis&, std::size_t at, Mutants&);
void mutate_duplicate(const Analysis&, std::size_t at, Mutants&);
void mutate_subgroup(const Analysis&, std::size_t at, Mutants&);
void mutate_constant(const Analysis&, std::size_t at, Mutants&);
void mutate_index(const Analysis&, std::size_t at, Mutants&);
void mutate_component(const Analysis&, std::size_t at, Mutants&);
void mutate_half(const Analysis&, std::size_t at, Mutants&);
void mutate_bfloat16(const Analysis&, std::size_t at, Mutants&);

}  // namespace assay::falsify::spirv
