// Faults of control flow and of memory: barriers, branches, loops, selections, stores, loads.
#include <fmt/format.h>

#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/operands.hpp"

namespace assay::falsify::ptx {
namespace {

std::string negated(const std::string& guard) {
  return guard.starts_with("@!") ? "@" + guard.substr(2) : "@!" + guard.substr(1);
}

/// Changes the loop's bound, with which the predicate of its branch compares, by one.
void mutate_bound(const Site& s, std::size_t compare) {
  const Instruction& x = s.program.at(compare);
  if (x.base() != "setp" || x.operands.size() != 3 || !is_integer(x.type()) || bits_of(x.type()) < 32) return;
  const std::string& bound = x.operands[2];
  for (const int step : {1, -1}) {
    const std::string says = fmt::format("loop bound {} {} 1", bound, step > 0 ? "+" : "-");
    Instruction y = x;
    if (const auto n = integer(bound)) {
      y.operands[2] = std::to_string(*n + step);
      s.put_at(compare, says, {y});
    } else {
      y.operands[2] = bits_of(x.type()) == 64 ? kLong : kWord;
      const std::string add = bits_of(x.type()) == 64 ? "add.s64" : "add.s32";
      s.put_at(compare, says, {{"", add, {y.operands[2], bound, std::to_string(step)}}, y});
    }
  }
}

/// Returns "mov.f32" for a register of a type; empty if the type is no number.
std::string move_of(std::string_view type) {
  if (type == "f32") return "mov.f32";
  const int bits = bits_of(type);
  return bits == 16 || bits == 32 || bits == 64 ? fmt::format("mov.u{}", bits) : "";
}

}  // namespace

void mutate_barrier(const Site& s) {
  const Instruction& x = s.x();
  const bool waits = x.op.starts_with("cp.async.wait") || x.op == "cp.async.commit_group";
  const bool barrier = (x.base() == "bar" || x.base() == "barrier") && !has_part(x.op, ".red");
  if (!waits && !barrier && x.base() != "membar" && x.base() != "fence") return;
  s.put("removed", {});
  if (x.op != "cp.async.wait_group") return;
  if (const auto groups = integer(x.operands[0]))
    s.operand("one group less is waited for", 0, std::to_string(*groups + 1));
}

void mutate_branch(const Site& s) {
  Instruction x = s.x();
  if (x.guard.empty()) return;
  const std::string guard = x.guard;
  x.guard = negated(guard);
  s.put("condition negated", {x});
  if (x.base() != "bra") return;
  x.guard.clear();
  s.put("always taken", {x});
  s.put("never taken", {});
}

void mutate_loop(const Site& s) {
  const Instruction& x = s.x();
  if (s.program.leads_back(s.at) && !x.guard.empty()) {
    const std::string predicate = x.guard.substr(x.guard.find_first_not_of("@!"));
    if (const auto compare = s.program.definition(predicate, s.at)) mutate_bound(s, *compare);
  }
  if ((x.base() != "add" && x.base() != "sub") || !is_integer(x.type()) || x.operands[0] != x.operands[1]) return;
  if (const auto step = integer(x.operands[2])) return s.operand("step doubled", 2, std::to_string(2 * *step));
  const int bits = bits_of(x.type());
  if (bits != 32 && bits != 64) return;
  Instruction y = x;
  y.operands[2] = bits == 64 ? kLong : kWord;
  s.put("step doubled", {{"", fmt::format("add.s{}", bits), {y.operands[2], x.operands[2], x.operands[2]}}, y});
}

void mutate_select(const Site& s) {
  Instruction x = s.x();
  if (x.base() != "selp") return;
  std::swap(x.operands[1], x.operands[2]);
  s.put("arms exchanged", {x});
}

void mutate_store(const Site& s) {
  const Instruction& x = s.x();
  const bool copies = x.op.starts_with("cp.async.c") && !x.op.starts_with("cp.async.commit");
  if (x.base() == "st" || x.base() == "red" || copies || x.op.starts_with("wmma.store")) s.put("dropped", {});
}

void mutate_load(const Site& s) {
  const Instruction& x = s.x();
  if (x.base() != "ld" || has_part(x.op, ".param")) return;
  std::vector<Instruction> zeros;
  for (const std::string& reg : elements(x.operands[0])) {
    const std::string move = move_of(s.program.type_of(reg));
    if (move.empty()) return;
    zeros.push_back({"", move, {reg, move == "mov.f32" ? real_text(0) : "0"}});
  }
  s.put("zeros instead", std::move(zeros));
}

}  // namespace assay::falsify::ptx
