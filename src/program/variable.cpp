#include "program/variable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "core/errors.hpp"
#include "program/differentiate.hpp"
#include "program/session.hpp"

namespace assay::program {
namespace {

/// Never changed once made: tapes share them.
using Bytes = std::shared_ptr<const std::vector<std::byte>>;

void expect_elements(const std::string& name, const Shape& shape, std::size_t elements) {
  if (elements != static_cast<std::size_t>(shape.size()))
    throw InputError(
        name, fmt::format("{} numbers were given, and shape {} has {}", elements, to_string(shape), shape.size()),
        "give one for each element");
}

template <class T>
Bytes copy(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace

/// Operations that ran, with what they read and wrote.
struct Variable::Recorded {
  std::uint64_t number;  ///< those that ran later have higher ones
  std::vector<Variable> inputs;
  std::vector<Bytes> read;  ///< values of the inputs
  Steps steps;
  std::vector<Bytes> written;  ///< by each step, in the contract's order
};

struct Variable::Cell {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  Bytes values;
  bool requires_grad = false;
  std::optional<std::vector<float>> gradient{};
  std::shared_ptr<const Recorded> made_by{};  ///< null for leaves
  std::size_t result = 0;                     ///< which of its results
};

Variable::Variable(const Shape& shape, const std::vector<float>& values, bool requires_grad, std::string name)
    : cell_(std::make_shared<Cell>(Cell{std::move(name), shape, DType::f32, copy(values), requires_grad})) {
  expect_elements(cell_->name, shape, values.size());
}

Variable Variable::zeros(const Shape& shape, bool requires_grad, std::string name) {
  return {shape, std::vector<float>(static_cast<std::size_t>(shape.size())), requires_grad, std::move(name)};
}

Variable Variable::indices(const Shape& shape, const std::vector<std::int32_t>& values, std::string name) {
  expect_elements(name, shape, values.size());
  return Variable(std::make_shared<Cell>(Cell{std::move(name), shape, DType::i32, copy(values)}));
}

const Shape& Variable::shape() const { return cell_->shape; }
bool Variable::requires_grad() const { return cell_->requires_grad; }
const std::optional<std::vector<float>>& Variable::gradient() const { return cell_->gradient; }

std::vector<float> Variable::values() const {
  if (cell_->dtype != DType::f32)
    throw InputError(cell_->name, fmt::format("its elements are {}", name(cell_->dtype)), "read variables of f32");
  std::vector<float> floats(cell_->values->size() / sizeof(float));
  std::ranges::copy(*cell_->values, std::as_writable_bytes(std::span(floats)).begin());
  return floats;
}

void Variable::set(const std::vector<float>& values) {
  if (cell_->made_by || cell_->dtype != DType::f32)
    throw InputError(cell_->name, "it is no leaf of f32", "set leaves, and call the operations again");
  expect_elements(cell_->name, cell_->shape, values.size());
  cell_->values = copy(values);
}

std::vector<float>& Variable::expect_gradient(std::size_t elements) {
  if (!cell_->requires_grad)
    throw InputError(cell_->name, "it requires no gradient", "make it with requires_grad = true");
  expect_elements(cell_->name, cell_->shape, elements);
  if (!cell_->gradient) cell_->gradient.emplace(elements, 0.0F);
  return *cell_->gradient;
}

void Variable::set_gradient(const std::vector<float>& gradient) { expect_gradient(gradient.size()) = gradient; }

void Variable::accumulate_gradient(const std::vector<float>& more) {
  std::vector<float>& gradient = expect_gradient(more.size());
  std::ranges::transform(gradient, more, gradient.begin(), std::plus());
}

void Variable::zero_gradient() {
  if (cell_->gradient) std::ranges::fill(*cell_->gradient, 0.0F);
}

void Variable::scale_gradient(float factor) {
  if (!cell_->gradient) return;
  for (float& g : *cell_->gradient) g *= factor;
}

std::vector<Variable> Variable::record(Device& device, const std::vector<Variable>& inputs, Steps steps) {
  Builder builder;
  std::vector<Value> read;
  for (const Variable& v : inputs)
    read.push_back(builder.input(builder.free_name(v.cell_->name), v.cell_->shape, v.cell_->dtype));
  const std::vector<Value> results = steps(builder, read);
  const auto from_host = [](const Storage& s) { return s.kind != Kind::temporary && s.kind != Kind::constant; };
  if (std::ranges::count_if(builder.program().storages, from_host) != static_cast<std::ptrdiff_t>(inputs.size()))
    throw InputError("eager", "the function makes inputs, parameters or states of its own", "pass them as variables");

  Session session(builder.take(), device, {.reuse = false});
  for (std::size_t i = 0; i < inputs.size(); ++i) session.set(read[i], *inputs[i].cell_->values);
  session.run();
  const Program& program = session.program();
  std::map<std::int32_t, Bytes> fetched;  // by value
  const auto fetch = [&](Value v) {
    if (Bytes& bytes = fetched[v.id]; !bytes) {
      std::vector<std::byte> there(static_cast<std::size_t>(program[v].shape.size()) *
                                   size_of(program.storage_of(v).dtype));
      session.get(v, there);
      bytes = std::make_shared<const std::vector<std::byte>>(std::move(there));
    }
    return fetched[v.id];
  };

  std::shared_ptr<Recorded> recorded;
  if (std::ranges::any_of(inputs, &Variable::requires_grad)) {
    static std::atomic<std::uint64_t> count{0};
    recorded = std::make_shared<Recorded>(Recorded{++count, inputs, {}, std::move(steps), {}});
    for (const Variable& v : inputs) recorded->read.push_back(v.cell_->values);
    for (const Step& step : program.steps)
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role != Role::in) recorded->written.push_back(fetch(step.tensors[t]));
  }
  std::vector<Variable> made;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const ValueInfo& info = program[results[r]];
    Cell cell{info.name, info.shape, program.storage_of(results[r]).dtype, fetch(results[r])};
    if (recorded && is_floating(cell.dtype)) cell.requires_grad = true, cell.made_by = recorded, cell.result = r;
    made.push_back(Variable(std::make_shared<Cell>(std::move(cell))));
  }
  return made;
}

void backward(const Variable& root, std::span<const float> upstream, Device& device) {
  using Cell = Variable::Cell;
  using Recorded = Variable::Recorded;
  const Cell& begin = *root.cell_;
  if (!begin.requires_grad)
    throw InputError(begin.name, "it requires no gradient", "begin at a result of a variable that requires one");
  expect_elements("upstream gradient of " + begin.name, begin.shape, upstream.size());

  std::map<std::uint64_t, const Recorded*> tape;  // what the root depends on, in the order in which it ran
  for (std::vector<const Recorded*> open{begin.made_by.get()}; !open.empty();) {
    const Recorded* r = open.back();
    open.pop_back();
    if (r == nullptr || !tape.emplace(r->number, r).second) continue;
    for (const Variable& v : r->inputs) open.push_back(v.cell_->made_by.get());
  }

  Builder builder;
  std::vector<std::pair<Value, Bytes>> known;
  std::vector<Value> wanted;
  std::vector<Variable> leaves;                                 // of `wanted`
  std::map<std::pair<const Cell*, const void*>, Value> inputs;  // a leaf that was set in between has several
  std::map<const Recorded*, std::vector<Value>> results;
  const auto value_of = [&](const Variable& v, const Bytes& bytes) {
    const Cell& cell = *v.cell_;
    if (cell.made_by) return results.at(cell.made_by.get())[cell.result];
    const auto [at, added] = inputs.try_emplace({&cell, bytes.get()});
    if (added) {
      at->second = builder.input(builder.free_name(cell.name), cell.shape, cell.dtype);
      known.emplace_back(at->second, bytes);
      if (cell.requires_grad) wanted.push_back(at->second), leaves.push_back(v);
    }
    return at->second;
  };
  for (const auto& [number, r] : tape) {
    std::vector<Value> read;
    for (std::size_t i = 0; i < r->inputs.size(); ++i) read.push_back(value_of(r->inputs[i], r->read[i]));
    std::size_t s = builder.program().steps.size();
    results[r] = r->steps(builder, read);
    for (auto written = r->written.begin(); s < builder.program().steps.size(); ++s) {
      const Step& step = builder.program().steps[s];
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role != Role::in) known.emplace_back(step.tensors[t], *written++);
    }
  }
  const Value output[] = {value_of(root, begin.values)};
  const Program& forward = builder.program();
  Differentiated d = differentiate(forward, output, wanted);

  // The forward steps have run: what backward steps read of them is set like an input.
  d.program.steps.erase(d.program.steps.begin(),
                        d.program.steps.begin() + static_cast<std::ptrdiff_t>(forward.steps.size()));
  for (const Step& step : d.program.steps)
    for (const Value v : step.tensors)
      if (const auto s = static_cast<std::size_t>(d.program[v].storage);
          s < forward.storages.size() && forward.storages[s].kind == Kind::temporary)
        d.program.storages[s].kind = Kind::input;
  Session session(std::move(d.program), device);
  for (const auto& [v, bytes] : known)
    if (session.program().storage_of(v).kind == Kind::input) session.set(v, *bytes);
  session.set(d.upstream[0], std::as_bytes(upstream));
  session.run();
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].accumulate_gradient(session.get<float>(d.gradients[i]));
}

}  // namespace assay::program
