#include "falsify/program/mutants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::falsify {
namespace {

using program::Kind;
using program::Plan;
using program::Program;
using program::Step;
using program::Value;
using program::ValueInfo;

bool reads(const Step& step, std::size_t t) { return step.op->tensors[t].role == Role::in; }

bool changes_in_place(const Step& step) {
  return std::ranges::any_of(step.op->tensors, [](const TensorInfo& t) { return t.role == Role::inout; });
}

bool alike(const Program& program, Value v, Value w) {
  return v != w && program[v].shape == program[w].shape && program[v].strides == program[w].strides &&
         program.storage_of(v).dtype == program.storage_of(w).dtype &&
         (program[v].storage != program[w].storage || program[v].offset != program[w].offset);
}

class Mutator {
 public:
  Mutator(const Program& program, const Plan& plan, std::size_t alternatives)
      : program_(program), plan_(plan), alternatives_(alternatives) {}

  std::vector<ProgramMutant> all() {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      drop(s);
      swap_operands(s);
      other_operands(s);
      other_constants(s);
      ProgramMutant& stale =
          add(ProgramFault::stale_value, fmt::format("{}: left out from the second run on", program::describe(step)));
      stale.stale_step = static_cast<int>(s);
      if (!changes_in_place(step)) continue;
      add(ProgramFault::forgotten_sum, fmt::format("{}: adds to zero", program::describe(step))).forgetful_step =
          static_cast<int>(s);
      ProgramMutant& twice = add(ProgramFault::repeated_step, fmt::format("{}: made twice", program::describe(step)));
      twice.program.steps.insert(twice.program.steps.begin() + static_cast<std::ptrdiff_t>(s), step);
    }
    share_slots();
    return std::move(mutants_);
  }

 private:
  ProgramMutant& add(ProgramFault fault, std::string description) {
    return mutants_.emplace_back(fault, std::move(description), program_, plan_);
  }

  void drop(std::size_t s) {
    ProgramMutant& m =
        add(ProgramFault::dropped_step, fmt::format("{}: left out", program::describe(program_.steps[s])));
    m.program.steps.erase(m.program.steps.begin() + static_cast<std::ptrdiff_t>(s));
  }

  void swap_operands(std::size_t s) {
    const Step& step = program_.steps[s];
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      for (std::size_t u = 0; u < t; ++u)
        if (reads(step, t) && reads(step, u) && alike(program_, step.tensors[t], step.tensors[u])) {
          ProgramMutant& m =
              add(ProgramFault::swapped_operands, fmt::format("{}: {} and {} exchanged", program::describe(step),
                                                              step.op->tensors[u].name, step.op->tensors[t].name));
          std::swap(m.program.steps[s].tensors[t], m.program.steps[s].tensors[u]);
        }
  }

  /// Values of the same shape that exist before the step: the latest first, which are the likeliest mistakes.
  void other_operands(std::size_t s) {
    const Step& step = program_.steps[s];
    std::vector<Value> earlier;
    for (std::size_t before = s; before-- > 0;)
      for (const Value v : program_.steps[before].tensors)
        if (std::ranges::find(earlier, v) == earlier.end()) earlier.push_back(v);
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      if (!reads(step, t)) continue;
      std::size_t found = 0;
      for (const Value v : earlier) {
        if (found == alternatives_) break;
        if (!alike(program_, v, step.tensors[t]) || std::ranges::find(step.tensors, v) != step.tensors.end()) continue;
        ++found;
        ProgramMutant& m = add(ProgramFault::wrong_operand, fmt::format("{}: reads {} for {}", program::describe(step),
                                                                        program_[v].name, step.op->tensors[t].name));
        m.program.steps[s].tensors[t] = v;
      }
    }
  }

  void other_constants(std::size_t s) {
    const Step& step = program_.steps[s];
    for (std::size_t p = 0; p < step.params.size(); ++p) {
      const ParamInfo& info = step.op->params[p];
      std::vector<double> others(info.choices.begin(), info.choices.end());
      if (others.empty()) others = {2 * step.params[p], 0.5 * step.params[p], info.typical, step.params[p] + 1};
      std::size_t found = 0;
      for (const double other : others) {
        const bool admitted = info.choices.empty() ? info.min <= other && other <= info.max &&
                                                         (!info.integer || other == std::floor(other))
                                                   : true;
        if (found == alternatives_ || other == step.params[p] || !admitted) continue;
        ++found;
        add(ProgramFault::other_constant,
            fmt::format("{}: {} = {} for {}", program::describe(step), info.name, other, step.params[p]))
            .program.steps[s]
            .params[p] = other;
      }
    }
  }

  void share_slots() {
    struct Life {
      std::size_t first = SIZE_MAX, last = 0;
    };
    std::vector<Life> lives(program_.storages.size());
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      for (const Value v : program_.steps[s].tensors) {
        Life& life = lives[static_cast<std::size_t>(program_[v].storage)];
        life.first = std::min(life.first, s), life.last = s;
      }
    for (std::size_t x = 0; x < lives.size(); ++x) {
      std::size_t found = 0;
      for (std::size_t y = 0; y < x && found < alternatives_; ++y) {
        const bool temporary =
            program_.storages[x].kind == Kind::temporary && program_.storages[y].kind == Kind::temporary;
        // Written while the other one is still needed.
        const bool meet = lives[y].first < lives[x].first && lives[x].first < lives[y].last;
        if (!temporary || !meet || program_.storages[x].elements > program_.storages[y].elements ||
            plan_.slot_of[x] == plan_.slot_of[y])
          continue;
        ++found;
        ProgramMutant& m =
            add(ProgramFault::shared_slot,
                fmt::format("{} lies in the memory of {}", program_.storages[x].name, program_.storages[y].name));
        m.plan.slot_of[x] = m.plan.slot_of[y];
      }
    }
  }

  const Program& program_;
  const Plan& plan_;
  std::size_t alternatives_;
  std::vector<ProgramMutant> mutants_;
};

}  // namespace

std::string_view name(ProgramFault fault) {
  switch (fault) {
    case ProgramFault::dropped_step: return "dropped step";
    case ProgramFault::swapped_operands: return "swapped operands";
    case ProgramFault::wrong_operand: return "wrong operand";
    case ProgramFault::repeated_step: return "repeated step";
    case ProgramFault::other_constant: return "other constant";
    case ProgramFault::shared_slot: return "shared slot";
    case ProgramFault::stale_value: return "stale value";
    case ProgramFault::forgotten_sum: return "forgotten sum";
    case ProgramFault::planted: return "planted";
  }
  return "?";
}

std::vector<ProgramMutant> program_mutants(const Program& program, const Plan& plan, std::size_t alternatives) {
  return Mutator(program, plan, alternatives).all();
}

}  // namespace assay::falsify
