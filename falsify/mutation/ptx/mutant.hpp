// Mutants of PTX: each is an entry with one small fault, such as a compiler or an author may make. Families of faults
// have the same names as for SPIR-V and for sources, plus families of operations that exist only in PTX.
//
// Types of instructions and registers are kept, so that a mutant assembles. No instruction is skipped as dead, since
// nvcc has removed dead code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/mutation/ptx/program.hpp"

namespace assay::falsify::ptx {

struct Mutant {
  std::string description;  ///< "left out at 412: neg.f32 %f2, %f1; -> mov.f32 %f2, %f1;"
  std::vector<Edit> edits;  ///< in increasing order

  /// Id of the change, independent of the operator that made it.
  std::uint64_t key() const;
};

/// Mutants of one statement, collected from operators.
struct Site {
  const Program& program;
  std::size_t at;
  std::vector<Mutant>& into;

  const Instruction& x() const { return program.at(at); }
  /// Replaces the statement by these; instructions without a guard get the statement's.
  void put(std::string_view says, std::vector<Instruction> with) const { put_at(at, says, std::move(with)); }
  /// The same for another statement.
  void put_at(std::size_t where, std::string_view says, std::vector<Instruction> with) const;
  /// Adds the statement with another opcode, or another operand.
  void opcode(std::string op) const;
  void operand(std::string_view says, std::size_t i, std::string text) const;
};

/// A family of faults. Held-out families were not used for tuning suites or operators; reports count them separately.
struct Operator {
  std::string_view family;
  bool held_out = false;
  void (*generate)(const Site& site) = nullptr;
};
const std::vector<Operator>& operators();

/// Identifies a mutant of its program: there are too many to keep all in memory.
struct MutantKey {
  std::uint64_t key = 0;
  std::uint32_t at = 0;
  std::uint16_t family = 0;  ///< index into operators()
  std::uint16_t number = 0;  ///< among the operator's mutants of the statement
};

/// Returns every mutant, in order of families and statements; none equals the program, and no two are the same change.
std::vector<MutantKey> mutant_keys(const Program& program);
Mutant mutant(const Program& program, const MutantKey& place);

/// The text without what differs from one build of the same sources to the next: nvcc names an unnamed namespace, and
/// what only its file sees, by hashes of the file and at times by a process
/// ("41_GLOBAL__N__06e53b8b_9_norm_a_cu_8d568502"). The file's own name stays.
std::string of_any_build(std::string_view text);

/// FNV-1a: identifies content in reports.
std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325u);

// The families, one function each (operators_*.cpp), called with every instruction of the entry.
void mutate_barrier(const Site&);
void mutate_branch(const Site&);
void mutate_loop(const Site&);
void mutate_select(const Site&);
void mutate_store(const Site&);
void mutate_load(const Site&);
void mutate_arithmetic(const Site&);
void mutate_function(const Site&);
void mutate_fma(const Site&);
void mutate_comparison(const Site&);
void mutate_order(const Site&);
void mutate_duplicate(const Site&);
void mutate_subgroup(const Site&);
void mutate_constant(const Site&);
void mutate_index(const Site&);
void mutate_component(const Site&);
void mutate_rounding(const Site&);
void mutate_half(const Site&);
void mutate_bfloat16(const Site&);

}  // namespace assay::falsify::ptx
