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
      other_versions(s);
      fewer_places(s);
      other_integers(s);
      other_order(s);
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
    not_copied();
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

  /// Readers of what the step changes in place: the nearest ones behind it and before it.
  void other_versions(std::size_t s) {
    const Step& writer = program_.steps[s];
    for (std::size_t t = 0; t < writer.tensors.size(); ++t) {
      if (writer.op->tensors[t].role != Role::inout) continue;
      const auto try_reader = [&](std::size_t r, std::string_view when) {
        const Step& reader = program_.steps[r];
        for (std::size_t u = 0; u < reader.tensors.size(); ++u) {
          if (!reads(reader, u) || !overlap(reader.tensors[u], writer.tensors[t])) continue;
          ProgramMutant& m = add(ProgramFault::other_version,
                                 fmt::format("{}: reads {} as it is {} {}", program::describe(reader),
                                             reader.op->tensors[u].name, when, program::describe(writer)));
          m.operand = {static_cast<int>(r), u, static_cast<int>(s), 0};
          return true;
        }
        return false;
      };
      std::size_t found = 0;
      for (std::size_t r = s + 1; r < program_.steps.size() && found < alternatives_; ++r)
        found += try_reader(r, "before");
      found = 0;
      for (std::size_t r = s; r-- > 0 && found < alternatives_;) found += try_reader(r, "behind");
    }
  }

  void fewer_places(std::size_t s) {
    const Step& step = program_.steps[s];
    const OpDescriptor& op = *step.op;
    for (std::size_t d = 0; d < op.dims.size(); ++d) {
      const bool related =
          op.dims[d].multiple != 1 || op.dims[d].multiple_of >= 0 || op.dims[d].counts != Counts::places ||
          std::ranges::any_of(op.dims, [&](const DimInfo& other) { return other.multiple_of == static_cast<int>(d); });
      if (related || step.dims[d] < 2) continue;
      std::vector<Index> fewer = step.dims;
      --fewer[d];
      const bool integers_reach_it = std::ranges::any_of(
          op.tensors, [&](const TensorInfo& t) { return t.most != nullptr && t.most(fewer) < t.most(step.dims); });
      if (integers_reach_it) continue;
      ProgramMutant& m = add(ProgramFault::fewer_places, fmt::format("{}: {} = {} for {}", program::describe(step),
                                                                     op.dims[d].name, fewer[d], step.dims[d]));
      for (std::size_t t = 0; t < step.tensors.size(); ++t) {
        ValueInfo view = program_[step.tensors[t]];
        const Shape shape = op.tensors[t].shape(fewer);
        if (shape == view.shape) continue;
        view.shape = shape;
        m.program.values.push_back(view);
        m.program.steps[s].tensors[t] = {static_cast<std::int32_t>(m.program.values.size()) - 1};
      }
      m.program.steps[s].dims = fewer;
    }
  }

  void other_integers(std::size_t s) {
    const Step& step = program_.steps[s];
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      if (!reads(step, t) || step.op->tensors[t].dtype != DType::i32) continue;
      for (const int shift : {0, -1, 1}) {
        if (shift == 0 && program_[step.tensors[t]].shape.size() < 2) continue;
        ProgramMutant& m = add(ProgramFault::other_integers,
                               fmt::format("{}: {} {}", program::describe(step), step.op->tensors[t].name,
                                           shift == 0  ? "of the next place"
                                           : shift < 0 ? "one lower"
                                                       : "one higher"));
        m.operand = {static_cast<int>(s), t, -1, shift};
      }
    }
  }

  /// Exchanges the step with the next one, if one of them writes what the other one uses. Two sums commute.
  void other_order(std::size_t s) {
    if (s + 1 == program_.steps.size()) return;
    const Step &first = program_.steps[s], &second = program_.steps[s + 1];
    bool depend = false;
    for (std::size_t t = 0; t < first.tensors.size(); ++t)
      for (std::size_t u = 0; u < second.tensors.size(); ++u) {
        if ((reads(first, t) && reads(second, u)) || !overlap(first.tensors[t], second.tensors[u])) continue;
        const bool sums =
            first.op->name == "accumulate" && second.op->name == "accumulate" && !reads(first, t) && !reads(second, u);
        depend = depend || !sums;
      }
    if (!depend) return;
    ProgramMutant& m = add(ProgramFault::other_order,
                           fmt::format("{}: behind {}", program::describe(first), program::describe(second)));
    std::swap(m.program.steps[s], m.program.steps[s + 1]);
  }

  void not_copied() {
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const Value v{static_cast<std::int32_t>(i)};
      if (program_.storage_of(v).kind != Kind::input || program_.base_of(v) != v) continue;
      add(ProgramFault::not_copied, fmt::format("{} is set in the first run alone", program_[v].name)).not_set = v;
    }
    for (const Value v : program_.outputs)
      add(ProgramFault::not_copied, fmt::format("{} is read as the run before left it", program_[v].name)).not_read = v;
  }

  /// Returns true if the stretches from first to last element of two values have one in common.
  bool overlap(Value v, Value w) const {
    const ValueInfo &a = program_[v], &b = program_[w];
    const auto end = [](const ValueInfo& x) {
      return x.offset + View<const float>(nullptr, x.shape, x.strides).extent();
    };
    return a.storage == b.storage && a.offset < end(b) && b.offset < end(a);
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
    case ProgramFault::other_version: return "other version";
    case ProgramFault::fewer_places: return "fewer places";
    case ProgramFault::other_integers: return "other integers";
    case ProgramFault::other_order: return "other order";
    case ProgramFault::not_copied: return "not copied";
    case ProgramFault::planted: return "planted";
  }
  return "?";
}

std::vector<ProgramMutant> program_mutants(const Program& program, const Plan& plan, std::size_t alternatives) {
  return Mutator(program, plan, alternatives).all();
}

}  // namespace assay::falsify
