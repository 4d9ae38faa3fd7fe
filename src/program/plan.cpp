#include "program/plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace assay::program {
namespace {

struct Life {
  std::size_t first = std::numeric_limits<std::size_t>::max();  ///< step that writes it
  std::size_t last = 0;                                         ///< step that uses it last
};

std::vector<Life> lives(const Program& program) {
  std::vector<Life> all(program.storages.size());
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    for (const Value v : program.steps[s].tensors) {
      Life& life = all[static_cast<std::size_t>(program[v].storage)];
      life.first = std::min(life.first, s);
      life.last = s;
    }
  for (const Value v : program.outputs) all[static_cast<std::size_t>(program[v].storage)].last = program.steps.size();
  return all;
}

/// The smallest free slot that holds it; else the largest one, to grow; -1: none is free.
std::int32_t best_of(const std::vector<std::int32_t>& free, const std::vector<std::size_t>& slot_bytes,
                     std::size_t bytes) {
  std::int32_t best = -1;
  const auto size = [&](std::int32_t slot) { return slot_bytes[static_cast<std::size_t>(slot)]; };
  for (const std::int32_t slot : free) {
    const bool holds = size(slot) >= bytes, best_holds = best >= 0 && size(best) >= bytes;
    if (best < 0 || (holds && (!best_holds || size(slot) < size(best))) ||
        (!holds && !best_holds && size(slot) > size(best)))
      best = slot;
  }
  return best;
}

}  // namespace

Plan plan(const Program& program, bool reuse) {
  Plan plan;
  plan.slot_of.assign(program.storages.size(), -1);
  const std::vector<Life> life = lives(program);
  const auto bytes_of = [&](std::size_t storage) {
    return static_cast<std::size_t>(program.storages[storage].elements) * size_of(program.storages[storage].dtype);
  };
  const auto own_slot = [&](std::size_t storage) {
    plan.slot_of[storage] = static_cast<std::int32_t>(plan.slot_bytes.size());
    plan.slot_bytes.push_back(bytes_of(storage));
  };
  for (std::size_t i = 0; i < program.storages.size(); ++i)
    if (program.storages[i].kind != Kind::temporary || !reuse) own_slot(i);
  std::vector<std::int32_t> free;
  for (std::size_t s = 0; s < program.steps.size() && reuse; ++s) {
    for (const Value v : program.steps[s].tensors) {
      const auto storage = static_cast<std::size_t>(program[v].storage);
      if (plan.slot_of[storage] >= 0) continue;
      const std::int32_t slot = best_of(free, plan.slot_bytes, bytes_of(storage));
      if (slot < 0) {
        own_slot(storage);
        continue;
      }
      std::erase(free, slot);
      plan.slot_of[storage] = slot;
      plan.slot_bytes[static_cast<std::size_t>(slot)] =
          std::max(plan.slot_bytes[static_cast<std::size_t>(slot)], bytes_of(storage));
    }
    for (const Value v : program.steps[s].tensors) {
      const auto storage = static_cast<std::size_t>(program[v].storage);
      const std::int32_t slot = plan.slot_of[storage];
      if (program.storages[storage].kind == Kind::temporary && life[storage].last == s &&
          std::ranges::find(free, slot) == free.end())
        free.push_back(slot);
    }
  }
  if (plan.slot_bytes.empty()) plan.slot_bytes.push_back(0);
  std::ranges::replace(plan.slot_of, -1, 0);  // of storages that no step uses: any will do
  plan.bytes = std::accumulate(plan.slot_bytes.begin(), plan.slot_bytes.end(), std::size_t{0});
  return plan;
}

std::size_t bytes_together(std::span<const Program* const> programs, bool reuse) {
  const auto outlives = [](const Storage& s) {
    return s.kind == Kind::parameter || s.kind == Kind::state || s.kind == Kind::gradient;
  };
  std::set<std::string_view> of_first;
  std::size_t bytes = 0;
  for (const Program* program : programs) {
    const Plan all = plan(*program, reuse);
    bytes += all.bytes;
    for (std::size_t i = 0; i < program->storages.size(); ++i) {
      const Storage& storage = program->storages[i];
      if (!outlives(storage)) continue;
      if (program == programs.front()) of_first.insert(storage.name);
      else if (of_first.contains(storage.name)) bytes -= all.slot_bytes[static_cast<std::size_t>(all.slot_of[i])];
    }
  }
  return bytes;
}

std::vector<contract::PlannedCall> planned_calls(const Program& program) {
  std::vector<contract::PlannedCall> calls;
  for (const Step& step : program.steps) {
    contract::PlannedCall call{std::string(step.op->name), step.dims, step.params};
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].storage) call.storage = program.storage_of(step.tensors[t]).dtype;
    if (std::ranges::find(calls, call) == calls.end()) calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace assay::program
