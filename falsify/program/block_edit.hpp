// Edits of a transformer's program, of which named faults are made.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "falsify/program/mutants.hpp"

namespace assay::falsify {

using program::Kind;
using program::Program;
using program::Step;
using program::Storage;
using program::Value;
using program::ValueInfo;

class BlockEdit {
 public:
  explicit BlockEdit(ProgramMutant& mutant) : m_(mutant), p_(mutant.program) {}

  /// Labels and names are those of a decoder's second layer; a block alone has them without the layer.
  std::string here(std::string label) const {
    const bool decoder = std::ranges::any_of(p_.parameters, [](const auto& p) { return p.name.starts_with("model."); });
    const std::size_t layer = decoder ? label.npos : label.find("model.layers.1.");
    return layer == label.npos ? label : label.erase(layer, std::string_view("model.layers.1.").size());
  }
  std::size_t at(const std::string& second_layer) const {
    const std::string label = here(second_layer);
    const auto step = std::ranges::find(p_.steps, label, &Step::label);
    if (step == p_.steps.end()) throw InputError(label, "no step has this label", "plant the fault in such a program");
    return static_cast<std::size_t>(step - p_.steps.begin());
  }
  double& param(const std::string& label, std::string_view name) {
    Step& step = p_.steps[at(label)];
    const auto info = std::ranges::find(step.op->params, name, &ParamInfo::name);
    return step.params.at(static_cast<std::size_t>(info - step.op->params.begin()));
  }
  Value& tensor(const std::string& label, std::string_view name) {
    Step& step = p_.steps[at(label)];
    const auto info = std::ranges::find(step.op->tensors, name, &TensorInfo::name);
    return step.tensors.at(static_cast<std::size_t>(info - step.op->tensors.begin()));
  }
  const ValueInfo& info(Value v) const { return p_[v]; }

  Value view(Value of, const Shape& shape, const Shape& strides, Index offset = 0) {
    ValueInfo info = p_[of];
    info.shape = shape, info.strides = strides, info.offset += offset;
    p_.values.push_back(info);
    return {static_cast<std::int32_t>(p_.values.size()) - 1};
  }
  /// The elements of a dense value from `offset` on, as one row.
  Value row(Value of, Index offset = 0) {
    const Index n = p_[of].shape.size() - offset;
    return view(of, {1, n}, {n, 1}, offset);
  }
  Value fresh(std::string name, const Shape& shape, Kind kind = Kind::temporary, DType dtype = DType::f32) {
    p_.storages.push_back({name, kind, dtype, shape.size()});
    const Value v{static_cast<std::int32_t>(p_.values.size())};
    p_.values.push_back(
        {std::move(name), static_cast<std::int32_t>(p_.storages.size()) - 1, 0, shape, row_major_strides(shape), 0, v});
    return v;
  }
  Value parameter(std::string_view second_layer) const {
    const std::string name = here(std::string(second_layer));
    const auto found = std::ranges::find(p_.parameters, name, &program::Parameter::name);
    if (found == p_.parameters.end()) throw InputError(name, "no such parameter", "");
    return found->value;
  }

  void insert(std::size_t where, Step step) {
    p_.steps.insert(p_.steps.begin() + static_cast<std::ptrdiff_t>(where), std::move(step));
  }
  void erase(std::size_t where) { p_.steps.erase(p_.steps.begin() + static_cast<std::ptrdiff_t>(where)); }
  void repeat(std::size_t where) { insert(where, Step(p_.steps[where])); }
  /// dst += alpha src, both of rank 2.
  static Step sum(Value dst, Value src, double alpha) {
    return {&operation("accumulate"), {}, {alpha}, {dst, src}, "planted"};
  }
  /// Zeroes elements after the step that wrote them.
  void clear(const std::string& label, Value matrix) { insert(at(label) + 1, sum(matrix, matrix, -1)); }
  void clear(const std::string& label, std::string_view out) { clear(label, row(tensor(label, out))); }
  /// Leaves a step out: its output is its input.
  void bypass(const std::string& label, std::string_view out, std::string_view in) {
    const ValueInfo to = p_[tensor(label, in)];
    const std::int32_t from = p_[tensor(label, out)].storage;
    erase(at(label));
    for (ValueInfo& v : p_.values)
      if (v.storage == from) v.storage = to.storage, v.offset += to.offset;
  }

  /// The steps that add to the gradient of a parameter, and the one that adds to or from a step's output.
  std::vector<std::size_t> sums_into(std::string_view name) const {
    const ValueInfo& leaf = p_[parameter(name)];
    std::vector<std::size_t> found;
    for (std::size_t s = 0; s < p_.steps.size(); ++s)
      if (p_.steps[s].op->name == "accumulate") {
        const Value dst = p_.steps[s].tensors[0];
        if (p_.storage_of(dst).kind == Kind::gradient && p_[dst].offset == leaf.offset &&
            p_[dst].shape.size() == leaf.shape.size())
          found.push_back(s);
      }
    if (found.empty()) throw InputError(std::string(name), "nothing adds to its gradient", "");
    return found;
  }
  std::size_t sum_to(const std::string& label, std::string_view out) { return sum_with(label, out, 0); }
  std::size_t sum_from(const std::string& label, std::string_view out) { return sum_with(label, out, 1); }

  /// Drops every sum into the gradient of a parameter.
  void lose(std::string_view name) {
    const std::vector<std::size_t> sums = sums_into(name);
    for (std::size_t i = sums.size(); i-- > 0;) erase(sums[i]);
  }
  /// Every step of an operation.
  std::vector<std::size_t> all(std::string_view op) const {
    std::vector<std::size_t> found;
    for (std::size_t s = 0; s < p_.steps.size(); ++s)
      if (p_.steps[s].op->name == op) found.push_back(s);
    if (found.empty()) throw InputError(std::string(op), "no step is one", "plant the fault in such a program");
    return found;
  }
  /// Makes values that lie in one storage lie in another one.
  void move(Value from, Value to) {
    const std::int32_t old = p_[from].storage, storage = p_[to].storage;
    for (ValueInfo& v : p_.values)
      if (v.storage == old) v.storage = storage;
  }
  ProgramMutant& mutant() { return m_; }
  Program& program() { return p_; }

 private:
  std::size_t sum_with(const std::string& label, std::string_view out, std::size_t operand) {
    const std::int32_t storage = p_[tensor(label, out)].storage;
    for (std::size_t s = 0; s < p_.steps.size(); ++s)
      if (p_.steps[s].op->name == "accumulate" && p_[p_.steps[s].tensors[operand]].storage == storage) return s;
    throw InputError(label, fmt::format("nothing is added to or from {}", out), "");
  }

  ProgramMutant& m_;
  Program& p_;
};

}  // namespace assay::falsify
