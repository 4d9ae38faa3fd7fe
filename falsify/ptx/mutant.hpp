// Mutants of PTX: each is an entry with one small fault, such as a compiler or an author may make. Families of faults have
// the names that they have for SPIR-V and for sources; those of operations that only PTX names are added.
//
// Types of instructions and registers stay, so that a mutant assembles. nvcc has removed what is dead, so that nothing is
// left out for that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/ptx/program.hpp"

namespace assay::falsify::ptx {

struct Mutant {
  std::string description;  ///< "left out at 412: neg.f32 %f2, %f1; -> mov.f32 %f2, %f1;"
  std::vector<Edit> edits;  ///< in increasing order

  /// The same for the same change, whatever operator made it.
  std::uint64_t key() const;
};

/// One statement's mutants, gathered by operators.
struct Site {
  const Program& program;
  std::size_t at;
  std::vector<Mutant>& into;

  const Instruction& x() const { return program.at(at); }
  /// These instead of the statement; a guard that they have none of is the statement's.
  void put(std::string_view says, std::vector<Instruction> with) const { put_at(at, says, std::move(with)); }
  /// The same for another statement.
  void put_at(std::size_t where, std::string_view says, std::vector<Instruction> with) const;
  /// The statement with another opcode, or another operand.
  void opcode(std::string op) const;
  void operand(std::string_view says, std::size_t i, std::string text) const;
};

/// One family. Those held out had no part in tuning suites or operators; reports count them apart.
struct Operator {
  std::string_view family;
  bool held_out = false;
  void (*generate)(const Site& site) = nullptr;
};
const std::vector<Operator>& operators();

/// What names a mutant among those of its program: there are too many to hold all.
struct Place {
  std::uint64_t key = 0;
  std::uint32_t at = 0;
  std::uint16_t family = 0;  ///< index into operators()
  std::uint16_t number = 0;  ///< among those that the operator makes of the statement
};

/// Every mutant, in order of families and statements; none equals the program, and no two are the same change.
std::vector<Place> places(const Program& program);
Mutant mutant(const Program& program, const Place& place);

/// The text without what differs from one build of the same sources to the next: nvcc names an unnamed namespace, and what only its file
/// sees, by hashes of the file and at times by a process ("41_GLOBAL__N__06e53b8b_9_norm_a_cu_8d568502"). The file's own name stays.
std::string of_any_build(std::string_view text);

/// FNV-1a: names content in reports.
std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325u);

// The families, one function each (operators_*.cpp). Each is called with every instruction of the entry.
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
