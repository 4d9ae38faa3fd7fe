#include "falsify/audit/rows.hpp"

#include <fmt/format.h>

#include <cstring>

namespace assay::falsify::audit {
namespace {

Case gaussian(const OpDescriptor& op, const std::vector<Index>& dims) {
  Case c;
  c.dims = dims;
  make_valid(op, c.dims);
  for (const ParamInfo& param : op.params) c.params.push_back(param.typical);
  c.seed = 1;
  return c;
}

/// Returns the axis along which a tensor has one extent for each row; -1 if there is none. Throws InputError if rows
/// cannot be distinguished.
int row_axis(const OpDescriptor& op, int tensor, std::vector<Index> dims) {
  const auto shape = [&](Index rows) {
    dims[0] = rows;
    return op.tensors[static_cast<std::size_t>(tensor)].shape(dims);
  };
  const Shape one = shape(1), two = shape(2), many = shape(37);
  for (int axis = 0; axis < one.rank(); ++axis) {
    if (one[axis] == two[axis] && one[axis] == many[axis]) continue;
    if (one[axis] != 1 || two[axis] != 2 || many[axis] != 37) return -2;
    return axis;
  }
  return -1;
}

/// Returns the elements of one row.
std::vector<float> cut(const Shape& shape, int axis, const std::vector<float>& values, Index row) {
  Index outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= shape[a];
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  std::vector<float> part;
  for (Index o = 0; o < outer; ++o) {
    const auto begin = values.begin() + (o * shape[axis] + row) * inner;
    part.insert(part.end(), begin, begin + inner);
  }
  return part;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// Describes the first of three rows that depends on the others; empty if none does.
std::optional<std::string> dependence(const OpDescriptor& op, const Kernel& kernel, const Case& c,
                                      const std::vector<int>& axes, Worker& worker) {
  Trial trial(op, kernel, c, worker);
  const Problem whole = trial.problem();
  const Run all = trial.run(whole, Poison::finite);
  const Index rows = whole.dims[0];
  for (Index row : {Index{0}, rows / 2, rows - 1}) {
    Problem part = whole;
    part.dims[0] = 1;
    for (int t : inputs_of(op))
      if (axes[static_cast<std::size_t>(t)] >= 0)
        part.values[static_cast<std::size_t>(t)] =
            cut(whole.shape(t), axes[static_cast<std::size_t>(t)], whole.values[static_cast<std::size_t>(t)], row);
    const Run alone = trial.run(part, Poison::finite);
    const std::vector<int> outputs = outputs_of(op);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const int axis = axes[static_cast<std::size_t>(outputs[o])];
      if (axis < 0) continue;
      const std::vector<float> within = cut(whole.shape(outputs[o]), axis, all.outputs[o], row);
      for (std::size_t i = 0; i < within.size(); ++i)
        if (!same_bits({within[i]}, {alone.outputs[o][i]}))
          return fmt::format("row {} of {} has {} at {} of {}, and {} alone", row, rows, within[i], i,
                             op.tensors[static_cast<std::size_t>(outputs[o])].name, alone.outputs[o][i]);
    }
  }
  return std::nullopt;
}

}  // namespace

Property<bool> batch_invariant(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims,
                               Worker& worker) {
  Property<bool> property;
  std::vector<int> axes;
  bool shown = false;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    axes.push_back(row_axis(op, static_cast<int>(t), gaussian(op, dims).dims));
    if (axes.back() == -2 || op.dims[0].multiple > 1) {
      property.why_not = fmt::format("{} is not made of rows of {}", op.tensors[t].name, op.dims[0].name);
      return property;
    }
    shown = shown || (axes.back() >= 0 && op.tensors[t].role != Role::in);
  }
  if (!shown) {
    property.why_not = fmt::format("no output has {}", op.dims[0].name);
    return property;
  }
  property.value = true;
  for (Index rows : {Index{4}, Index{37}}) {
    Case c = gaussian(op, dims);
    c.dims[0] = rows;
    make_valid(op, c.dims);
    const auto found = dependence(op, kernel, c, axes, worker);
    if (!found) continue;
    property.value = false;
    property.probe = *found;
    return property;
  }
  return property;
}

Property<bool> deterministic(const OpDescriptor& op, const Kernel& kernel, const std::vector<Index>& dims,
                             Worker& worker) {
  const Case c = gaussian(op, dims);
  Trial trial(op, kernel, c, worker);
  const Problem problem = trial.problem();
  const Run first = trial.run(problem, Poison::finite);
  Property<bool> property;
  property.value = true;
  for (int again = 0; again < 4; ++again) {
    if (again == 3) worker.restart();
    const Run run = trial.run(problem, Poison::finite);
    for (std::size_t o = 0; o < first.outputs.size(); ++o)
      if (!same_bits(first.outputs[o], run.outputs[o])) {
        property.value = false;
        property.probe = fmt::format("run {} differs from the first", again + 2);
      }
  }
  return property;
}

}  // namespace assay::falsify::audit
