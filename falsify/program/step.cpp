#include "falsify/program/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "falsify/program/equations.hpp"
#include "falsify/program/traced.hpp"

namespace assay::falsify {

using namespace program;

ClassifierConfig classifier_of(const BlockCase& c) {
  ClassifierConfig all{.model = c.config, .classes = c.classes, .multi_label = c.multi_label};
  Random random(derive(c.seed, "class weights"));
  for (Index k = 0; k < c.classes; ++k)
    all.class_weights.push_back(static_cast<float>(0.5 + static_cast<double>(random.below(64)) / 32));
  return all;
}

TrainingOptions options_of(const BlockCase& c) {
  return {.batch = c.batch,
          .length = c.s,
          .lr = c.step.lr,
          .eps = c.step.eps,
          .weight_decay = c.step.weight_decay,
          .max_norm = c.step.max_norm};
}

MicroBatches samples_of(const BlockCase& c, int step) {
  Random random(derive(c.seed, fmt::format("samples of step {}", step)));
  MicroBatches all;
  for (Index micro = 0; micro < c.step.micro_batches; ++micro) {
    std::vector<Sample>& batch = all.emplace_back();
    for (Index n = std::max<Index>(1, c.batch - micro); n > 0; --n) {
      Sample& sample = batch.emplace_back();
      const Index length = batch.size() == 1 ? c.length : random.between(1, c.length);
      for (Index t = 0; t < length; ++t)
        sample.tokens.push_back(
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c.config.vocabulary))));
      sample.label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c.classes)));
      for (Index k = 0; k < c.classes; ++k) sample.labels.push_back(random.chance(0.5) ? 1.0F : 0.0F);
    }
  }
  return all;
}

namespace {

/// Appends a program whose parameters, states and gradients are those of the same name. Returns its first value's place.
std::int32_t append(Program& to, const Program& from, std::string_view label) {
  const auto first = static_cast<std::int32_t>(to.values.size());
  const auto moved = [&](Value v) { return Value{v.id < 0 ? v.id : v.id + first}; };
  std::vector<std::int32_t> storages;
  for (const Storage& storage : from.storages) {
    const auto shared = storage.kind == Kind::temporary ? to.storages.end()
                                                        : std::ranges::find(to.storages, storage.name, &Storage::name);
    storages.push_back(static_cast<std::int32_t>(shared - to.storages.begin()));
    if (shared == to.storages.end()) to.storages.push_back(storage);
  }
  for (ValueInfo v : from.values) {
    v.storage = storages[static_cast<std::size_t>(v.storage)], v.base = moved(v.base);
    // Shared storages are set by the names of the first program.
    const auto own = std::ranges::find(to.values, v.storage, &ValueInfo::storage);
    if (own - to.values.begin() < first) v.base = own->base;
    to.values.push_back(std::move(v));
  }
  for (Step step : from.steps) {
    for (Value& v : step.tensors) v = moved(v);
    step.label = fmt::format("{}.{}", label, step.label);
    to.steps.push_back(std::move(step));
  }
  for (const Value v : from.outputs) to.outputs.push_back(moved(v));
  return first;
}

}  // namespace

StepProgram joined(StepPrograms programs) {
  StepProgram all{programs.gradients, std::move(programs), {}, {}, {}};
  const std::int32_t norm = append(all.program, all.of.norm, "norm"),
                     update = append(all.program, all.of.update, "update");
  all.of.sums.id += norm, all.of.norm_of_sum.id += norm;
  for (Value* v : {&all.of.parameters, &all.of.m, &all.of.v}) v->id += update;
  for (const Parameter& p : all.program.parameters) {
    if (!p.trainable) continue;
    all.leaves.push_back(p.value);
    for (const auto& [name, whole, views] : {std::tuple{"m", all.of.m, &all.m}, std::tuple{"v", all.of.v, &all.v}}) {
      ValueInfo view = all.program[p.value];
      view.name = fmt::format("{} of {}", name, p.name), view.storage = all.program[whole].storage, view.base = whole;
      views->push_back({static_cast<std::int32_t>(all.program.values.size())});
      all.program.values.push_back(std::move(view));
    }
  }
  return all;
}

StepOfCase::StepOfCase(const BlockCase& c)
    : programs(step_programs(classifier_of(c), options_of(c))), joined(step_program(c, programs)) {}

StepProgram step_program(const BlockCase& c) { return step_program(c, step_programs(classifier_of(c), options_of(c))); }

StepProgram step_program(const BlockCase& c, StepPrograms programs) {
  StepProgram all = joined(std::move(programs));
  std::size_t samples = 0;
  for (const auto& batch : samples_of(c, 0)) samples += batch.size();
  for (Step& step : all.program.steps)
    if (step.label == "update.scale") step.params[0] = 1 / static_cast<double>(samples);
    else if (step.label == "update.adamw_step") step.params[5] = static_cast<double>(c.step.steps + 1);
  return all;
}

Means means_of(const BlockCase& c, const StepProgram& step) {
  Means means;
  for (std::vector<double>* all : {&means.m, &means.v})
    all->resize(static_cast<std::size_t>(step.program[step.of.m].shape.size()));
  for (std::size_t leaf = 0; leaf < step.leaves.size() && c.step.steps > 0; ++leaf) {
    const ValueInfo& info = step.program[step.leaves[leaf]];
    Random random(derive(c.seed, "means of " + info.name));
    for (Index i = info.offset; i < info.offset + info.shape.size(); ++i) {
      means.m[static_cast<std::size_t>(i)] = static_cast<float>(0.05 * random.gaussian());
      means.v[static_cast<std::size_t>(i)] = static_cast<float>(0.0025 * (0.1 + std::pow(random.gaussian(), 2)));
    }
  }
  return means;
}

std::map<std::string, std::vector<double>> elements_of(const BlockCase& c, const Program& program) {
  std::map<std::string, std::vector<double>> all = whole_weights(c, program);
  for (const Parameter& p : program.parameters)
    if (!all.contains(p.name)) all[p.name] = numbers_of(c, program, p.value);
  return all;
}

StepMirror::StepMirror(const BlockCase& c, Tensors all, std::vector<std::string> trained, Tensors means,
                       Tensors squares)
    : parameters(std::move(all)), m(std::move(means)), v(std::move(squares)), c_(c), classifier_(classifier_of(c)),
      trained_(std::move(trained)), steps_(c.step.steps) {}

namespace {

/// Of one sample: weights[label] (log sum exp(x) - x[label]), or the mean over the classes of
/// weights t log(1 + exp(-x)) + (1 - t) log(1 + exp(x)).
template <class T>
T loss_of(const ClassifierConfig& c, const std::map<std::string, std::vector<T>>& weights, const Sample& sample) {
  using std::exp, std::log;
  const Index n = std::ssize(sample.tokens);
  std::vector<double> positions;
  while (std::ssize(positions) < n) positions.push_back(static_cast<double>(positions.size()));
  const std::vector<T> x = Equations<T>(c.model, weights, positions, n, n)
                               .class_logits({sample.tokens.begin(), sample.tokens.end()}, c.classes);
  T sum(0);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const T weight(c.class_weights[k]), t(sample.labels[k]);
    sum = sum + (c.multi_label ? weight * t * log(T(1) + exp(-x[k])) + (T(1) - t) * log(T(1) + exp(x[k])) : exp(x[k]));
  }
  if (c.multi_label) return sum / T(static_cast<double>(c.classes));
  const auto label = static_cast<std::size_t>(sample.label);
  return T(c.class_weights[label]) * (log(sum) - x[label]);
}

}  // namespace

StepMirror::Real StepMirror::loss(const Sample& sample) const { return loss_of<Real>(classifier_, parameters, sample); }

StepMirror::Result StepMirror::step(const MicroBatches& all) {
  Result result;
  ++steps_;
  Real samples = 0;
  for (const std::string& name : trained_) result.gradients[name].resize(parameters.at(name).size());
  for (const std::vector<Sample>& batch : all) {
    result.losses.clear();
    for (const Sample& sample : batch) {
      std::map<std::string, std::vector<Traced>> weights;
      for (const auto& [name, elements] : parameters) {
        const bool trains = std::ranges::find(trained_, name) != trained_.end();
        for (const Real e : elements) weights[name].push_back(trains ? Traced::operand(e) : Traced(e));
      }
      const Traced loss = loss_of<Traced>(classifier_, weights, sample);
      result.losses.push_back(loss.value());
      const std::vector<Real> derivatives = Traced::derivatives(loss);
      for (const std::string& name : trained_)
        for (std::size_t i = 0; i < weights[name].size(); ++i)
          result.gradients[name][i] += derivatives[weights[name][i].place()];
      ++samples;
    }
  }
  Real squares = 0;
  for (const auto& [name, gradient] : result.gradients)
    for (const Real g : gradient) squares += g / samples * (g / samples);
  result.norm = std::sqrt(squares);
  // Constants are float32 numbers; the corrections are formed of them in double (contract of adamw_step).
  const auto f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const TrainingOptions o = options_of(c_);
  const double first = f32(o.beta1), second = f32(o.beta2), t = static_cast<double>(steps_);
  const Real beta1 = first, beta2 = second, correction1 = 1 - std::pow(first, t), correction2 = 1 - std::pow(second, t),
             lr = f32(o.lr), eps = f32(o.eps), decay = f32(o.weight_decay), most = f32(o.max_norm);
  const Real clip = most > 0 && result.norm > most ? most / result.norm : 1;
  for (const std::string& name : trained_)
    for (std::size_t i = 0; i < parameters.at(name).size(); ++i) {
      const Real g = result.gradients[name][i] / samples * clip;
      Real &p = parameters[name][i], &mean = m[name][i], &square = v[name][i];
      mean = beta1 * mean + (1 - beta1) * g, square = beta2 * square + (1 - beta2) * g * g;
      const Real corrected = mean / correction1, root = std::sqrt(square / correction2);
      p = p - lr * (corrected / (root + eps) + decay * p);
    }
  return result;
}

}  // namespace assay::falsify
