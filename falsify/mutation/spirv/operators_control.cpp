// Faults of control flow: barriers, branches, loops, selections, stores.
#include <fmt/format.h>

#include "falsify/mutation/spirv/mutant.hpp"

namespace assay::falsify::spirv {
namespace {

/// Returns the label of the loop's merge block if the instruction is the branch that leaves a loop, else 0.
Id left_loop(const Analysis& a, const Instruction& branch) {
  for (std::size_t target : {1, 2}) {
    const Id label = branch.operand(target);
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a.at(i).op == spv::Op::OpLoopMerge && a.at(i).operand(0) == label) return label;
  }
  return 0;
}

bool is_phi(const Analysis& a, Id id) { return a.opcode(id) == spv::Op::OpPhi; }

/// Changes the bound with which the condition compares by one.
void mutate_bound(const Analysis& a, std::size_t branch, Mutants& into) {
  const Instruction* compare = a.definition(a.at(branch).operand(0));
  if (compare == nullptr || compare->ids.size() != 2 || a.block_of(a.index_of(compare->result)) >= a.size()) return;
  const std::size_t side = is_phi(a, compare->operand(1)) ? 0 : 1;
  const Id bound = compare->operand(side), type = a.type_of(bound);
  if (!a.is_int(type)) return;
  const std::size_t at = a.index_of(compare->result);
  for (const int step : {1, -1}) {
    Draft draft(
        a, at, fmt::format("{} at {}: loop bound {} {} 1", name(compare->op), at, a.text(bound), step > 0 ? "+" : "-"));
    Words changed = compare->words;
    if (a.opcode(bound) == spv::Op::OpConstant) {
      changed[compare->ids[side]] =
          draft.constant(type, a.definition(bound)->words[3] + static_cast<std::uint32_t>(step));
      draft.replace(at, {changed});
    } else {
      const Id moved = draft.fresh();
      changed[compare->ids[side]] = moved;
      const Id by = draft.constant(type, static_cast<std::uint32_t>(step));
      draft.replace(at, {encode(spv::Op::OpIAdd, {type, moved, bound, by}), changed});
    }
    into.push_back(draft.take());
  }
}

/// Doubles the step of a loop header's phi that grows by a step on the back edge.
void mutate_step(const Analysis& a, std::size_t phi, Mutants& into) {
  for (std::size_t i = 0; i < a.at(phi).ids.size(); i += 2) {
    const Instruction* next = a.definition(a.at(phi).operand(i));
    if (next == nullptr || next->ids.size() != 2 || !a.is_int(next->type)) continue;
    const bool shift = next->op == spv::Op::OpShiftRightLogical || next->op == spv::Op::OpShiftLeftLogical;
    if (!shift && next->op != spv::Op::OpIAdd && next->op != spv::Op::OpISub) continue;
    const std::size_t at = a.index_of(next->result);
    if (next->operand(0) != a.at(phi).result || at < phi) continue;
    const Id step = next->operand(1), type = a.type_of(step);
    Draft draft(a, at, fmt::format("{} at {}: loop step {} doubled", name(next->op), at, a.text(step)));
    Words changed = next->words;
    if (a.opcode(step) == spv::Op::OpConstant) {
      changed[next->ids[1]] = draft.constant(type, 2 * a.definition(step)->words[3]);
      draft.replace(at, {changed});
    } else {
      const Id doubled = draft.fresh();
      changed[next->ids[1]] = doubled;
      draft.replace(at, {encode(spv::Op::OpIAdd, {type, doubled, step, step}), changed});
    }
    into.push_back(draft.take());
  }
}

}  // namespace

void mutate_barrier(const Analysis& a, std::size_t at, Mutants& into) {
  if (a.at(at).op != spv::Op::OpControlBarrier && a.at(at).op != spv::Op::OpMemoryBarrier) return;
  Draft draft(a, at, fmt::format("{} at {} removed", name(a.at(at).op), at));
  draft.replace(at, {});
  into.push_back(draft.take());
}

void mutate_branch(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& branch = a.at(at);
  if (branch.op != spv::Op::OpBranchConditional) return;
  const std::string condition = a.text(branch.operand(0));
  {
    Draft draft(a, at, fmt::format("OpBranchConditional at {}: targets of {} exchanged", at, condition));
    Words changed = branch.words;
    std::swap(changed[branch.ids[1]], changed[branch.ids[2]]);
    draft.replace(at, {changed});
    into.push_back(draft.take());
  }
  for (const bool value : {true, false}) {
    Draft draft(a, at, fmt::format("OpBranchConditional at {}: {} taken to be {}", at, condition, value));
    draft.set(at, branch.ids[0], draft.boolean(a.type_of(branch.operand(0)), value));
    into.push_back(draft.take());
  }
}

void mutate_loop(const Analysis& a, std::size_t at, Mutants& into) {
  if (a.at(at).op == spv::Op::OpBranchConditional && left_loop(a, a.at(at)) != 0) mutate_bound(a, at, into);
  if (a.at(at).op == spv::Op::OpPhi) mutate_step(a, at, into);
}

void mutate_select(const Analysis& a, std::size_t at, Mutants& into) {
  const Instruction& select = a.at(at);
  if (select.op != spv::Op::OpSelect) return;
  Draft draft(a, at,
              fmt::format("OpSelect at {}: arms exchanged, {} for {}", at, a.text(select.operand(2)),
                          a.text(select.operand(1))));
  Words changed = select.words;
  std::swap(changed[select.ids[1]], changed[select.ids[2]]);
  draft.replace(at, {changed});
  into.push_back(draft.take());
}

void mutate_store(const Analysis& a, std::size_t at, Mutants& into) {
  if (a.at(at).op != spv::Op::OpStore) return;
  Draft draft(
      a, at,
      fmt::format("OpStore at {} dropped: {} to {}", at, a.text(a.at(at).operand(1)), a.text(a.at(at).operand(0))));
  draft.replace(at, {});
  into.push_back(draft.take());
}

}  // namespace assay::falsify::spirv
