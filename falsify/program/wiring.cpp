#include "falsify/program/wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <numeric>

#include "falsify/program/equations.hpp"

namespace assay::falsify {
namespace {

using namespace program;

constexpr std::string_view kForward = "FALSIFY-SYS-002", kGradients = "FALSIFY-SYS-003", kCaches = "FALSIFY-SYS-013",
                           kSaved = "FALSIFY-SYS-018", kUpdate = "FALSIFY-SYS-020";

/// The elements of one of c.batch sequences.
template <class T>
std::vector<T> part(const BlockCase& c, const std::vector<T>& all, Index sequence) {
  const auto each = std::ssize(all) / c.batch;
  return {all.begin() + sequence * each, all.begin() + (sequence + 1) * each};
}

/// The block by its equations, sequence by sequence. `named` holds its leaves, `constants` its inputs.
template <class T>
std::vector<T> by_equations(const BlockCase& c, const std::map<std::string, std::vector<T>>& named,
                            const std::map<std::string, std::vector<double>>& constants,
                            typename Equations<T>::Trace* trace = nullptr) {
  std::vector<T> all;
  for (Index b = 0; b < c.batch; ++b) {
    const auto input = [&](const char* name) { return part(c, constants.at(name), b); };
    const auto x = [&] { return part(c, named.at("x"), b); };
    const bool rotates = constants.contains("positions");
    typename Equations<T>::Trace own;
    const Equations<T> equations(c.config, named, rotates ? input("positions") : std::vector<double>(), c.s,
                                 c.length_of(b), nullptr, 0, trace != nullptr ? &own : nullptr);
    const std::vector<T> y = [&] {
      switch (c.part) {
        case BlockPart::attention: return equations.attention_block("", x());
        case BlockPart::feed_forward: return equations.feed_forward_block("", x());
        case BlockPart::layer: return equations.decoder_layer("", x());
        case BlockPart::classifier:
          return equations.classifier_loss(input("ids"), input("targets"), constants.at("class weights"),
                                           c.multi_label);
        case BlockPart::loss:
        case BlockPart::training:
        case BlockPart::decode:
        case BlockPart::step: break;
      }
      return equations.losses(input("ids"), input("targets"), constants.at("class weights"));
    }();
    all.insert(all.end(), y.begin(), y.end());
    for (const auto& [name, elements] : own)
      (*trace)[name].insert((*trace)[name].end(), elements.begin(), elements.end());
  }
  return all;
}

/// The place of element n in row-major order.
Shape place(const Shape& shape, Index n) {
  Shape index = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) index[axis] = n % shape[axis], n /= shape[axis];
  return index;
}

}  // namespace

Outcome judge(const Expected& expected, std::span<const double> got) {
  Outcome outcome;
  double largest = 0;
  for (const double w : expected.want) largest = std::max(largest, std::fabs(w));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = expected.want[i], bound = expected.bound[i], error = std::fabs(got[i] - want);
    if (bound < kSmallBound * largest) {
      ++outcome.elements;
      outcome.nonzero += want != 0;
      outcome.zero_passes += want != 0 && std::fabs(want) <= bound;
    }
    if (error > 0 && bound > 0) outcome.worst = std::max(outcome.worst, error / bound);
    if (error <= bound || outcome.finding) continue;
    outcome.kind = Outcome::Kind::falsified;
    outcome.finding = Finding{
        Finding::Kind::value, "", expected.name, place(expected.shape, static_cast<Index>(i)), got[i], want, bound};
    outcome.finding->message = fmt::format(
        "got {:.9g}, want {:.9g} within {:.2g}, in double: the block is not its equations", got[i], want, bound);
  }
  return outcome;
}

Wiring::Wiring(const BlockCase& c) : case_(c), block_(c), d_(block_.differentiated()), plan_(plan(d_.program)) {
  finals_ = c.part == BlockPart::decode ? block_.caches : d_.gradients;
  for (const Activation& a : block_.activations) finals_.push_back(a.value);
  if (c.part == BlockPart::step) step_ = step_program(c), expect_step();
  else if (c.part == BlockPart::decode) expect_caches();
  else expect_gradients();
  const std::vector<std::vector<Bounded>> bounded = results<Bounded>(right(), Bounded(std::nan("")));
  for (std::size_t row = 0; row < expected_.size(); ++row)
    for (std::size_t i = 0; i < bounded[row].size(); ++i)  // what is wanted is rounded to double
      expected_[row].bound[i] += 0x1p-29 * bounded[row][i].error + 0x1p-53 * std::fabs(expected_[row].want[i]);
}

void Wiring::expect(std::string name, std::string_view claim, Value of, const std::vector<long double>& want) {
  expected_.push_back(
      {std::move(name), claim, d_.program[of].shape, {want.begin(), want.end()}, std::vector<double>(want.size(), 0)});
}

void Wiring::expect_gradients() {
  const BlockCase& c = case_;
  // Eleven bits more than double: what the equations err is nothing beside the program's bound.
  using Lifted = Dual<long double>;
  const std::vector<Value> leaves = block_.leaves();
  std::vector<std::vector<long double>> gradients;
  Equations<Lifted>::Trace trace;
  // Each derivative costs a forward pass: of wide heads, those of a few elements of each leaf are wanted.
  constexpr Index kWide = 256;
  constexpr std::size_t kFew = 3;
  std::vector<std::vector<std::size_t>> wanted;
  for (const Value leaf : leaves) {
    const auto size = static_cast<std::size_t>(d_.program[leaf].shape.size());
    gradients.emplace_back(size);
    std::vector<std::size_t>& own = wanted.emplace_back(size);
    std::iota(own.begin(), own.end(), 0);
    if (c.config.heads * c.config.head_dim < kWide || c.part == BlockPart::feed_forward) continue;
    Random random(derive(c.seed, "wanted of " + d_.program[leaf].name));
    for (std::size_t n = 0; n < std::min(kFew, size); ++n) std::swap(own[n], own[n + random.below(size - n)]);
    own.resize(std::min(kFew, size));
  }
  for (std::size_t run = 0; run < kRuns; ++run) {
    std::map<std::string, std::vector<double>> numbers;
    std::map<std::string, std::vector<Lifted>> lifted;
    for_each_set_by_host(d_.program, [&](Value v) {
      const std::string& name = d_.program[v].name;
      numbers[name] = numbers_of(c, d_.program, v, static_cast<int>(run));
      for (const double n : numbers[name]) lifted[name].push_back(Lifted(n));
    });
    std::vector<long double> y;
    trace.clear();
    for (const Lifted& element : by_equations<Lifted>(c, lifted, numbers, &trace)) y.push_back(element.value);
    expect(fmt::format("y of run {}", run + 1), kForward, block_.y, y);
    const std::vector<double>& upstream = numbers.at(d_.program[d_.upstream[0]].name);
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      std::vector<Lifted>& elements = lifted.at(d_.program[leaves[leaf]].name);
      for (const std::size_t e : wanted[leaf]) {
        elements[e].derivative = 1;
        const std::vector<Lifted> dy = by_equations<Lifted>(c, lifted, numbers);
        elements[e].derivative = 0;
        for (std::size_t i = 0; i < dy.size(); ++i) gradients[leaf][e] += upstream[i] * dy[i].derivative;
      }
    }
  }
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    expect(d_.program[leaves[leaf]].name, kGradients, leaves[leaf], gradients[leaf]);
    std::vector<double>& bound = expected_.back().bound;
    std::vector<double> of_wanted(bound.size(), std::numeric_limits<double>::infinity());
    for (const std::size_t e : wanted[leaf]) of_wanted[e] = 0;
    bound = of_wanted;
  }
  for (const Activation& a : block_.activations) {
    std::vector<long double> want;
    for (const Lifted& element : trace.at(a.name)) want.push_back(element.value);
    expect(a.name, kSaved, a.value, want);
  }
}

void Wiring::expect_caches() {
  const BlockCase& c = case_;
  using Real = long double;
  std::map<std::string, std::vector<Real>> weights;
  std::map<std::string, std::vector<double>> numbers;
  for_each_set_by_host(d_.program, [&](Value v) {
    const std::string& name = d_.program[v].name;
    numbers[name] = numbers_of(c, d_.program, v);
    weights[name].assign(numbers[name].begin(), numbers[name].end());
  });
  for (const auto& [name, elements] : whole_weights(c, d_.program))
    weights[name].assign(elements.begin(), elements.end());
  const auto cache = [&](Index layer, const char* what) -> std::vector<Real>& {
    return weights.at(fmt::format("cache.{}.{}", layer, what));
  };
  const auto prefix = [](Index layer) { return fmt::format("model.layers.{}.", layer); };
  const Index place = c.config.kv_heads * c.config.head_dim;
  for (std::size_t run = 0; run < kRuns; ++run) {
    const std::vector<double> ids = tokens_of(c, static_cast<int>(run));
    std::vector<Real> logits;
    for (Index b = 0; b < c.batch; ++b) {
      const Index held = c.length_of(b) + static_cast<Index>(run) * c.s, first = b * c.capacity * place;
      Equations<Real>::Caches caches;
      for (Index layer = 0; layer < c.config.layers; ++layer) {
        const auto held_part = [&](const char* what) {
          const auto begin = cache(layer, what).begin() + first;
          return std::vector<Real>(begin, begin + held * place);
        };
        caches[prefix(layer)] = {held_part("keys"), held_part("values")};
      }
      std::vector<double> positions;
      for (Index i = 0; i < c.s; ++i) positions.push_back(static_cast<double>(held + i));
      const Equations<Real> equations(c.config, weights, positions, c.s, held + c.s, &caches, held);
      const std::vector<Real> own = equations.logits(part(c, ids, b));
      logits.insert(logits.end(), own.begin(), own.end());
      for (Index layer = 0; layer < c.config.layers; ++layer) {
        const auto& [keys, values] = caches.at(prefix(layer));
        std::ranges::copy(keys, cache(layer, "keys").begin() + first);
        std::ranges::copy(values, cache(layer, "values").begin() + first);
      }
    }
    expect(fmt::format("y of run {}", run + 1), kForward, block_.y,
           c.s == 1 ? logits : cache(c.config.layers - 1, "values"));
  }
  for (const Value v : block_.caches) {
    const std::string& name = d_.program[v].name;
    expect(name, kCaches, v, weights.at(name));
  }
}

void Wiring::expect_step() {
  const BlockCase& c = case_;
  const Program& program = step_->program;
  const Means means = means_of(c, *step_);
  StepMirror::Tensors parameters, m, v;
  for (const auto& [name, elements] : elements_of(c, program)) parameters[name] = {elements.begin(), elements.end()};
  std::vector<std::string> names;
  for (const Value leaf : step_->leaves) {
    const ValueInfo& info = program[leaf];
    names.push_back(info.name);
    const auto of = [&](const std::vector<double>& all) {
      return std::vector<long double>(all.begin() + info.offset, all.begin() + info.offset + info.shape.size());
    };
    m[info.name] = of(means.m), v[info.name] = of(means.v);
  }
  StepMirror mirror(c, parameters, names, m, v);
  // A batch is filled with one token 0 of class 0, without labels.
  const Sample filler{{0}, 0, std::vector<float>(static_cast<std::size_t>(c.classes))};
  std::vector<StepMirror::Result> done;
  for (std::size_t step = 0; step < kRuns; ++step) {
    const StepMirror before = mirror;
    done.push_back(mirror.step(samples_of(c, static_cast<int>(step))));
    std::vector<long double>& losses = done.back().losses;
    losses.resize(static_cast<std::size_t>(c.batch), before.loss(filler));
    expect(fmt::format("y of run {}", step + 1), kForward, block_.y, losses);
  }
  for (std::size_t leaf = 0; leaf < names.size(); ++leaf)
    expect(names[leaf], kGradients, step_->leaves[leaf], done[0].gradients.at(names[leaf]));
  for (std::size_t step = 0; step < kRuns; ++step)
    expect(fmt::format("norm of step {}", step + 1), kUpdate, step_->of.norm_of_sum, {done[step].norm});
  for (std::size_t leaf = 0; leaf < names.size(); ++leaf) {
    expect(names[leaf] + " after the steps", kUpdate, step_->leaves[leaf], mirror.parameters.at(names[leaf]));
    expect("m of " + names[leaf], kUpdate, step_->leaves[leaf], mirror.m.at(names[leaf]));
    expect("v of " + names[leaf], kUpdate, step_->leaves[leaf], mirror.v.at(names[leaf]));
  }
}

template <class T>
std::vector<std::vector<T>> Wiring::results_of_steps(const ProgramMutant& mutant, const T& poison) const {
  StepExecution<T> execution(mutant, *step_, case_, poison);
  execution.of_double = true;
  std::vector<std::vector<T>> all, gradients, norms;
  for (std::size_t step = 0; step < kRuns; ++step) {
    for (const auto& batch : samples_of(case_, static_cast<int>(step))) execution.accumulate(batch);
    all.push_back(read(execution.memory[block_.y]));
    norms.push_back({execution.apply()});
    for (const Value g : d_.gradients)
      if (step == 0) gradients.push_back(read(execution.memory[g]));
    execution.clear();
  }
  all.insert(all.end(), gradients.begin(), gradients.end());
  all.insert(all.end(), norms.begin(), norms.end());
  for (std::size_t leaf = 0; leaf < step_->leaves.size(); ++leaf)
    for (const Value v : {step_->leaves[leaf], step_->m[leaf], step_->v[leaf]})
      all.push_back(read(execution.memory[v]));
  return all;
}

template <class T>
std::vector<std::vector<T>> Wiring::results(const ProgramMutant& m, const T& poison) const {
  if (step_) return results_of_steps(m, poison);
  Execution<T> execution(m.program, m.plan, poison);
  std::vector<std::vector<T>> all;
  std::vector<T> before;  // the run
  const auto result = [&](Value v) { return v == m.not_read ? before : read(execution[v]); };
  run_mutant<T>(m, execution, static_cast<int>(kRuns), [&](int run, Execution<T>& memory) {
    if (run > 0) all.push_back(result(block_.y));
    if (m.not_read) before = read(memory[m.not_read]);
    set_all(memory, m.program, case_, run);
  });
  all.push_back(result(block_.y));
  for (const Value v : finals_) all.push_back(result(v));
  return all;
}

std::vector<std::vector<double>> Wiring::run(const ProgramMutant& mutant) const {
  return results<double>(mutant, std::nan(""));
}

std::vector<ProgramMutant> Wiring::mutants() const {
  std::vector<ProgramMutant> all = program_mutants(d_.program, plan_);
  if (step_) std::erase_if(all, [](const ProgramMutant& m) { return m.fault == ProgramFault::not_copied; });
  return all;
}

bool Wiring::equivalent(const ProgramMutant& mutant) const {
  const Digits50 poison(std::nan(""));
  if (digits_.empty()) digits_ = results<Digits50>(right(), poison);
  return results<Digits50>(mutant, poison) == digits_;
}

std::vector<Expected> Wiring::by_complex_step() const {
  using Complex = std::complex<double>;
  constexpr double kStep = 1e-100;
  const Program& forward = block_.builder.program();
  const Plan where = plan(forward);
  Execution<Complex> execution(forward, where, std::nan(""));
  const std::vector<Value> leaves = block_.leaves();
  const MicroBatches micro_batches = step_ ? samples_of(case_, 0) : MicroBatches();
  const std::size_t runs = step_ ? micro_batches.size() : kRuns;
  const auto first = expected_.begin() + kRuns;
  std::vector<Expected> gradients(first, first + std::ssize(d_.gradients));
  for (Expected& g : gradients) {
    std::ranges::fill(g.want, 0);
    // These err as well: a complex product rounds like a dual one, and a quotient half as often again.
    for (double& bound : g.bound) bound *= 2.5;
  }
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<double> upstream;
    if (step_) {
      if (run == 0) set_all(execution, forward, case_), set_constants(execution, *step_, case_);
      upstream = set_samples(execution, *step_, case_, micro_batches[run]);
    } else {
      set_all(execution, forward, case_, static_cast<int>(run));
      upstream = numbers_of(case_, d_.program, d_.upstream[0], static_cast<int>(run));
    }
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
      for (std::size_t e = 0; e < gradients[leaf].want.size(); ++e) {
        if (std::isinf(gradients[leaf].bound[e])) continue;  // it is not wanted, or not known
        Complex& element = execution[leaves[leaf]].data()[e];
        element.imag(kStep);
        execution.run();
        element.imag(0);
        const View<Complex> y = execution[block_.y];
        for (std::size_t i = 0; i < upstream.size(); ++i)
          gradients[leaf].want[e] += upstream[i] * y.data()[i].imag() / kStep;
      }
  }
  return gradients;
}

}  // namespace assay::falsify
