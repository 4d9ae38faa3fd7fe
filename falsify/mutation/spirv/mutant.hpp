// Mutants of a SPIR-V module: each is the module with one small fault, such as a compiler or an author may make.
//
// Families of faults are the rows of a table (operators()). Nothing outside of functions changes but for constants and
// types that a mutant adds, so that workgroup sizes, bindings and capabilities stay. Instructions that are not live are
// left alone: a compiler removes them, and their mutants are the shader itself.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/mutation/spirv/analysis.hpp"

namespace assay::falsify::spirv {

/// Instructions that stand in the place of one. Empty: it is removed.
struct Edit {
  std::size_t at = 0;
  std::vector<Words> with;
};

struct Mutant {
  std::string_view family;
  bool held_out = false;
  std::size_t at = 0;               ///< index of the instruction that is mutated
  std::string description;          ///< "OpFAdd at 412 -> OpFSub: (a + b) in block %302"
  std::vector<Words> declarations;  ///< new types and constants
  std::vector<Edit> edits;          ///< at increasing indices
  Id bound = 0;

  /// The same for the same change, whatever operator made it.
  std::uint64_t key() const;
};

/// What operators write their mutants with: ids, constants and types come from the module where it has them.
class Draft {
 public:
  Draft(const Analysis& analysis, std::size_t at, std::string description);

  Id fresh() { return mutant_.bound++; }
  /// A constant of a type of 32 bits, or a vector of them.
  Id constant(Id type, std::uint32_t bits);
  /// A vector of `n` equal constants.
  Id splat(Id type, Id scalar, std::uint32_t n, std::uint32_t bits);
  Id boolean(Id type, bool value);
  /// The type that has these operands, such as OpTypeInt 32 0.
  Id type(spv::Op op, std::initializer_list<std::uint32_t> operands);
  void replace(std::size_t at, std::vector<Words> with) { mutant_.edits.push_back({at, std::move(with)}); }
  /// The instruction with another word.
  void set(std::size_t at, std::size_t word, std::uint32_t value);
  /// The instruction with another opcode.
  void set_op(std::size_t at, spv::Op op);
  Mutant take() { return std::move(mutant_); }

 private:
  Id declare(Words words, std::size_t result_at);
  const Analysis& analysis_;
  Mutant mutant_;
};

using Mutants = std::vector<Mutant>;

/// One family. Those held out had no part in tuning suites or operators; reports count them apart.
struct Operator {
  std::string_view family;
  bool held_out = false;
  void (*generate)(const Analysis& analysis, std::size_t at, Mutants& into) = nullptr;
};
std::vector<Operator> operators();

/// Every mutant, in order of families and instructions; none equals the module, and no two are the same change.
Mutants mutants(const Analysis& analysis);
/// The mutated module.
Words apply(const Module& module, const Mutant& mutant);

/// FNV-1a over words: names content in reports.
std::uint64_t hash(std::span<const std::uint32_t> words, std::uint64_t seed = 0xcbf29ce484222325u);

// The families, one function each (operators_*.cpp). Each is called with every live instruction.
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
