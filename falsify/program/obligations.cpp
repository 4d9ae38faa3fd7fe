// The obligations of systems.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/errors.hpp"
#include "falsify/program/check.hpp"
#include "falsify/program/obligations.hpp"
#include "program/model/parameters.hpp"
#include "program/operations.hpp"

namespace assay::falsify {

template <class T>
Outcome same(std::string_view name, std::span<const T> got, std::span<const T> want, std::string_view meaning) {
  Outcome outcome;
  for (std::size_t i = 0; i < want.size(); ++i) {
    ++outcome.elements;
    outcome.nonzero += want[i] != 0;
    if (got[i] == want[i] || outcome.finding) continue;
    outcome.kind = Outcome::Kind::falsified;
    outcome.finding = Finding{
        Finding::Kind::bits,          "", std::string(name), {static_cast<Index>(i)}, static_cast<double>(got[i]),
        static_cast<double>(want[i]), 0};
    outcome.finding->message = fmt::format("{} (got {:.9g}, want {:.9g})", meaning, got[i], want[i]);
  }
  return outcome;
}
template Outcome same(std::string_view, std::span<const float>, std::span<const float>, std::string_view);
template Outcome same(std::string_view, std::span<const double>, std::span<const double>, std::string_view);

Outcome holds(bool claim, std::string sentence) {
  Outcome outcome;
  if (!claim) outcome = Outcome::falsify({Finding::Kind::contract, std::move(sentence), {}, {}});
  outcome.elements = outcome.nonzero = 1;
  return outcome;
}

namespace {

using namespace program;

/// A composed bound below this part of the rms of its tensor counts as small.
constexpr double kSmallComposed = 0.01;

Program altered(const SystemTrial& trial, Program p) {
  trial.alter(p);
  return p;
}
Differentiated altered(const SystemTrial& trial, Differentiated d) {
  trial.alter(d.program);
  return d;
}

/// A block in double. `given` replaces drawn numbers.
class InDouble {
 public:
  InDouble(const SystemTrial& trial, const BlockCase& c, const Numbers& given = {}, bool backward = false)
      : block_(c),
        d_(altered(trial, backward ? block_.differentiated() : Differentiated{block_.builder.program(), {}, {}})),
        plan_(plan(d_.program)), exact_(d_.program, plan_, std::nan("")),
        bounded_(d_.program, plan_, Bounded(std::nan(""))) {
    for_each_set_by_host(d_.program, [&](Value v) {
      const auto found = given.find(d_.program[v].name);
      const std::vector<double> numbers = found == given.end() ? numbers_of(c, d_.program, v) : found->second;
      write(exact_[v], numbers), write(bounded_[v], numbers);
    });
    exact_.run(), bounded_.run();
  }

  std::vector<double> y() { return read(exact_[block_.y]); }
  Expected expected_y() { return expected("y", block_.y); }
  Expected gradient(std::string_view leaf) {
    const std::vector<Value> leaves = block_.leaves();
    for (std::size_t n = 0; n < leaves.size(); ++n)
      if (d_.program[leaves[n]].name == leaf) return expected(std::string(leaf), d_.gradients[n]);
    throw InputError(std::string(leaf), "is no leaf", "name a parameter");
  }

 private:
  Expected expected(std::string name, Value v) {
    Expected e{std::move(name), {}, d_.program[v].shape, read(exact_[v]), {}};
    for (const Bounded& b : read(bounded_[v])) e.bound.push_back(0x1p-29 * b.error);
    return e;
  }

  Block block_;
  Differentiated d_;
  Plan plan_;
  Execution<double> exact_;
  Execution<Bounded> bounded_;
};

Numbers parameters_of(const BlockCase& c) {
  const Program p = Block(c).builder.program();
  Numbers numbers;
  for (const Parameter& parameter : p.parameters) numbers[parameter.name] = numbers_of(c, p, parameter.value);
  return numbers;
}

/// Adds the bounds of what is compared with: it errs as well.
Outcome within_both(Expected want, const Expected& got) {
  for (std::size_t i = 0; i < want.bound.size(); ++i) want.bound[i] += got.bound[i];
  return judge(want, got.want);
}

}  // namespace

Outcome of_rows(const SystemTrial& trial, std::string_view claim) {
  const Wiring& wiring = trial.wiring();
  ProgramMutant own = wiring.right();
  trial.alter(own.program);
  const std::vector<std::vector<double>> got = wiring.run(own);
  Outcome outcome;
  for (std::size_t row = 0; row < got.size(); ++row)
    if (wiring.expected()[row].claim == claim) outcome &= judge(wiring.expected()[row], got[row]);
  return outcome;
}

namespace {

Outcome forward(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-002"); }
Outcome gradients(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-003"); }
Outcome caches(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-013"); }
Outcome saved(const SystemTrial& trial) { return of_rows(trial, "FALSIFY-SYS-018"); }

/// Runs the block once on its device, which may ask for parts.
class OnDevice {
 public:
  explicit OnDevice(const SystemTrial& trial)
      : c(trial.block()), block(fitted(c, trial.on())), d(altered(trial, block.differentiated())),
        session(d.program, trial.on(), trial.options()) {
    set_all(session, c);
  }

  static const BlockCase& fitted(BlockCase& c, const Device& device) {
    c.config.largest_buffer = std::min(c.config.largest_buffer, device.largest_buffer());
    return c;
  }

  BlockCase c;

  Block block;
  Differentiated d;
  Session session;
};

Outcome checked(Session& session, std::uint64_t seed) {
  const CheckedRun run = check_steps(session, seed);
  Outcome outcome;
  outcome.elements = run.elements, outcome.nonzero = run.nonzero, outcome.worst = run.worst;
  if (!run.fault) return outcome;
  outcome.kind = Outcome::Kind::falsified;
  outcome.finding = run.fault->finding;
  outcome.finding->tensor = run.fault->value;
  outcome.finding->message =
      fmt::format("{}: {}", describe(*run.fault, session.program().steps.size()), run.fault->finding.message);
  return outcome;
}

Outcome steps(const SystemTrial& trial) {
  OnDevice on(trial);
  return checked(on.session, trial.block().seed);
}

/// The backward pass alone, from what the forward pass left on the device, against both in one program.
Outcome two_passes(const SystemTrial& trial) {
  OnDevice whole(trial);
  whole.session.run();
  Passes passes = whole.block.passes();
  trial.alter(passes.forward), trial.alter(passes.backward);
  Session forward(passes.forward, trial.on(), trial.options());
  SessionOptions shared = trial.options();
  shared.shares = &forward;
  Session backward(passes.backward, trial.on(), shared);
  set_all(forward, trial.block()), set_all(backward, trial.block());
  forward.run(), backward.run();
  const std::string_view meaning = "the two passes one by one differ from both in one program";
  Outcome outcome =
      same<float>("y", forward.get<float>(whole.block.y), whole.session.get<float>(whole.block.y), meaning);
  for (const Value g : whole.d.gradients)
    outcome &= same<float>(whole.d.program[g].name, backward.get<float>(g), whole.session.get<float>(g), meaning);
  return outcome;
}

/// Two runs, whose gradients add up, and of which the second one finds the caches of the first.
Outcome composed(const SystemTrial& trial) {
  OnDevice on(trial);
  const Program& program = on.session.program();
  const Program right = on.block.differentiated().program;
  const Plan where = plan(right);
  Execution<Bounded> bounded(right, where, Bounded(std::nan("")));
  bounded.rounds_stores = true;
  for (const int run : {0, 1}) {
    set_all(bounded, right, on.c, run);
    for (const Step& step : right.steps) {
      const auto chosen = std::ranges::find(program.steps, step.label, &Step::label);
      const ArithmeticScope scope(
          chosen == program.steps.end()
              ? current_arithmetic()
              : on.session.kernel(static_cast<std::size_t>(chosen - program.steps.begin())).arithmetic);
      bounded.run(step);
    }
    set_all(on.session, on.c, run);
    on.session.run();
  }
  Outcome outcome;
  const auto compare = [&](const std::string& name, Value v) {
    const std::vector<float> got = on.session.get<float>(v);
    const std::vector<Bounded> want = read(bounded[v]);
    double squares = 0;
    for (const Bounded& w : want) squares += w.value * w.value;
    const double rms = std::sqrt(squares / static_cast<double>(want.size()));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(static_cast<double>(got[i]) - want[i].value), bound = want[i].error;
      if (bound < kSmallComposed * rms) {
        ++outcome.elements;
        outcome.nonzero += want[i].value != 0;
        outcome.zero_passes += want[i].value != 0 && std::fabs(want[i].value) <= bound;
      }
      if (error > 0 && std::isfinite(bound)) outcome.worst = std::max(outcome.worst, error / bound);
      if (error <= bound || outcome.finding) continue;
      outcome.kind = Outcome::Kind::falsified;
      outcome.finding = Finding{Finding::Kind::value, "", name, {static_cast<Index>(i)}, got[i], want[i].value, bound};
      outcome.finding->message = fmt::format("got {:.9g}, want {:.9g} within {:.3g}, the bound of the whole program",
                                             got[i], want[i].value, bound);
    }
    trial.bounds += static_cast<std::int64_t>(want.size());
  };
  compare("y", on.block.y);
  const std::vector<Value> leaves = on.block.leaves();
  for (std::size_t n = 0; n < on.d.gradients.size(); ++n) compare(on.d.program[leaves[n]].name, on.d.gradients[n]);
  for (const Value cache : on.block.caches) compare(on.d.program[cache].name, cache);
  return outcome;
}

/// R10: every leaf that trains gets a gradient unless the equations say zero, and no frozen one has any.
Outcome leaves(const SystemTrial& trial) {
  if (in_16_bits(trial.block())) return Outcome::not_applicable("a gradient of 16 bits may round to zero");
  OnDevice on(trial);
  on.session.run();
  set_all(on.session, trial.block(), 1);  // what is expected is of two runs
  on.session.run();
  Outcome outcome;
  const std::vector<Value> all = on.block.leaves();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const Expected& expected = trial.wiring().expected()[Wiring::kRuns + n];
    double largest = 0;
    for (std::size_t i = 0; i < expected.want.size(); ++i)
      if (0x1p29 * expected.bound[i] < std::fabs(expected.want[i]))  // in float32 it is not zero
        largest = std::max(largest, std::fabs(expected.want[i]));
    if (largest == 0) continue;
    const std::vector<float> got = on.session.get<float>(on.d.gradients[n]);
    const bool moves = std::ranges::any_of(got, [](float g) { return g != 0; });
    outcome &=
        holds(moves, fmt::format("{} gets no gradient, and {:.3g} is its largest element", expected.name, largest));
  }
  BlockCase frozen = trial.block();
  frozen.config.trains = false;
  if (frozen.config.adapters.on.empty()) return outcome;
  const Block block(frozen);
  std::size_t adapters = 0;
  for (const Parameter& p : block.builder.program().parameters) adapters += p.trainable;
  if (adapters == 0) return outcome;
  const Differentiated d = differentiate(block.builder.program(), std::vector{block.y});
  std::size_t stored = 0;
  for (const Storage& storage : d.program.storages) stored += storage.kind == Kind::gradient;
  outcome &= holds(
      d.gradients.size() == adapters && stored == 1,
      fmt::format("of a frozen base {} leaves get gradients, and adapters have {}", d.gradients.size(), adapters));
  return outcome;
}

/// Changes what padding holds, with upstream gradients of zero there.
Outcome padding(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.length_of(c.batch - 1) == c.s) return Outcome::not_applicable("there is no padding");
  OnDevice on(trial);
  const auto is_padding = [&](std::size_t element, std::size_t elements) {
    if (static_cast<Index>(elements) < c.rows()) return false;  // of a classifier, an element a sequence
    const auto row = static_cast<Index>(element / (elements / static_cast<std::size_t>(c.rows())));
    return row % c.s >= c.length_of(row / c.s);
  };
  const Value upstream = on.d.upstream[0];
  std::vector<double> dy = numbers_of(c, on.d.program, upstream);
  for (std::size_t i = 0; i < dy.size(); ++i)
    if (is_padding(i, dy.size())) dy[i] = 0;
  set(on.session, upstream, dy);
  const auto results = [&] {
    on.session.clear_gradients();
    on.session.run();
    std::vector<std::vector<float>> all{on.session.get<float>(on.block.y)};
    for (std::size_t i = 0; i < all[0].size(); ++i)
      if (is_padding(i, all[0].size())) all[0][i] = 0;
    for (const Value g : on.d.gradients) all.push_back(on.session.get<float>(g));
    return all;
  };
  const std::vector<std::vector<float>> before = results();
  std::vector<double> x = numbers_of(c, on.d.program, on.block.x);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (is_padding(i, x.size()))
      x[i] = c.part == BlockPart::loss || c.part == BlockPart::classifier
                 ? static_cast<double>((static_cast<Index>(x[i]) + 1) % c.config.vocabulary)
                 : 100 - x[i];
  set(on.session, on.block.x, x);
  const std::vector<std::vector<float>> after = results();
  Outcome outcome;
  for (std::size_t r = 0; r < before.size(); ++r)
    outcome &= same<float>(r == 0 ? "y" : "gradient of " + on.d.program[on.block.leaves()[r - 1]].name, after[r],
                           before[r], "what padding holds changes this");
  return outcome;
}

Outcome prefix(const SystemTrial& trial) {
  BlockCase whole = trial.block();
  whole.batch = 1;
  BlockCase shorter = whole;
  if (!shorter.config.causal && shorter.part != BlockPart::feed_forward)
    return Outcome::not_applicable("an encoder's positions see those behind them");
  if (shorter.s == 1) return Outcome::not_applicable("one position has no prefix");
  shorter.s =
      1 + static_cast<Index>(shorter.seed % static_cast<std::uint64_t>(std::min(shorter.length, shorter.s - 1)));
  shorter.length = shorter.s;
  return same<double>("y", InDouble(trial, whole).y(), InDouble(trial, shorter).y(),
                      fmt::format("the first {} positions differ from a run of them alone", shorter.s));
}

/// R6 and R13: each sequence of a padded batch is that sequence alone, without padding.
Outcome batch(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.batch == 1) return Outcome::not_applicable("one sequence is no batch");
  const Program p = Block(c).builder.program();
  const std::vector<double> together = InDouble(trial, c).y();
  Outcome outcome;
  for (Index b = 0; b < c.batch; ++b) {
    BlockCase single = c;
    single.batch = 1, single.length = c.length_of(b);
    if (c.part != BlockPart::decode) single.s = single.length;
    const auto tokens = [&](const std::vector<double>& all, bool of_tokens = true) {  // of one sequence, no padding
      const auto each = std::ssize(all) / c.batch;
      const auto first = all.begin() + b * each;
      return std::vector<double>(first, first + (of_tokens ? each * single.s / c.s : each));
    };
    const bool losses_of_tokens = c.part != BlockPart::classifier;
    Numbers own;
    for_each_set_by_host(p, [&](Value v) {
      const std::string& name = p[v].name;
      if (name == "x" || name == "ids" || name == "targets" || name == "positions" || name.starts_with("cache."))
        own[name] = c.part == BlockPart::decode && name == "ids"
                        ? taken(c, tokens(tokens_of(c)))
                        : tokens(numbers_of(c, p, v), name != "targets" || losses_of_tokens);
    });
    outcome &= same<double>("y", tokens(together, losses_of_tokens), InDouble(trial, single, own).y(),
                            fmt::format("sequence {} of {} differs from a run of its tokens alone", b + 1, c.batch));
  }
  return outcome;
}

/// R1: the gradients of a batch are the sums of those of its sequences, each as long as it is.
Outcome accumulated(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.batch == 1) return Outcome::not_applicable("one sequence is no batch");
  const Block block(c);
  const Differentiated d = block.differentiated();
  const auto each = [&](const std::vector<double>& all) { return std::ssize(all) / c.batch; };
  const std::string upstream = d.program[d.upstream[0]].name;
  Numbers padded{{upstream, numbers_of(c, d.program, d.upstream[0])}};  // padding has no loss
  for (Index b = 0; b < c.batch && c.part != BlockPart::feed_forward; ++b) {
    std::vector<double>& dy = padded[upstream];
    std::fill(dy.begin() + b * each(dy) + each(dy) * c.length_of(b) / c.s, dy.begin() + (b + 1) * each(dy), 0);
  }
  InDouble together(trial, c, padded, true);
  std::vector<Expected> sums;
  const std::vector<Value> leaves = block.leaves();
  for (const Value leaf : leaves)
    if (leaf != block.x)
      sums.push_back(together.gradient(d.program[leaf].name)), std::ranges::fill(sums.back().want, 0);
  if (sums.empty()) return Outcome::not_applicable("nothing but x trains");
  for (Index b = 0; b < c.batch; ++b) {
    BlockCase single = c;
    single.batch = 1, single.length = c.length_of(b);
    if (c.part != BlockPart::feed_forward) single.s = single.length;
    Numbers own;
    for_each_set_by_host(d.program, [&](Value v) {
      const std::string& name = d.program[v].name;
      if (name != "x" && name != "ids" && name != "targets" && name != "positions" && name != upstream) return;
      const std::vector<double> all = numbers_of(c, d.program, v);
      const auto first = all.begin() + b * each(all);
      own[name].assign(first, first + each(all) * single.s / c.s);
    });
    InDouble alone(trial, single, own, true);
    for (Expected& sum : sums) {
      const Expected more = alone.gradient(sum.name);
      for (std::size_t i = 0; i < sum.want.size(); ++i) sum.want[i] += more.want[i], sum.bound[i] += more.bound[i];
    }
  }
  Outcome outcome;
  for (Expected& sum : sums) outcome &= judge(sum, together.gradient(sum.name).want);
  return outcome;
}

Outcome zero_adapter(const SystemTrial& trial) {
  BlockCase base = trial.block();
  Numbers zeros;
  for (const auto& [name, numbers] : parameters_of(base))
    if (name.ends_with("lora_B.weight")) zeros[name].resize(numbers.size());
  if (zeros.empty()) return Outcome::not_applicable("no adapters");
  if (in_16_bits(base) && base.part != BlockPart::decode)
    return Outcome::not_applicable("without adapters nothing of it trains");
  base.config.adapters.on.clear(), base.config.trains = true;
  return same<double>("y", InDouble(trial, trial.block(), zeros).y(), InDouble(trial, base).y(),
                      "with adapters whose B is zero it is not the base");
}

/// R9: what an adapter was merged into is the base again once it is taken out.
Outcome unmerged(const SystemTrial& trial, const Numbers& own) {
  const TransformerConfig& t = trial.block().config;
  Outcome outcome;
  for (const auto& [name, a] : own) {
    if (!name.ends_with("lora_A.weight")) continue;
    const std::string layer = name.substr(0, name.size() - std::string_view("lora_A.weight").size());
    const std::vector<double>&w = own.at(layer + "weight"), &b = own.at(layer + "lora_B.weight");
    const Index rank = t.adapters.rank, in = std::ssize(a) / rank, out = std::ssize(b) / rank;
    Builder builder;
    const Value base = builder.input("base", {out, in}), down = builder.input("a", {rank, in}),
                up = builder.input("b", {out, rank});
    const Value restored =
        lora_unmerge(builder, lora_merge(builder, base, down, up, t.adapters.alpha), down, up, t.adapters.alpha);
    builder.output(restored);
    const Program program = altered(trial, builder.take());
    const Plan where = plan(program);
    Execution<double> exact(program, where, std::nan(""));
    Execution<Bounded> bounded(program, where, Bounded(std::nan("")));
    const auto run = [&](auto& execution) {
      write(execution[base], w), write(execution[down], a), write(execution[up], b);
      execution.run();
    };
    run(exact), run(bounded);
    Expected expected{layer + "weight", {}, {out, in}, w, {}};
    for (const Bounded& bound : read(bounded[restored])) expected.bound.push_back(0x1p-29 * bound.error);
    outcome &= judge(expected, read(exact[restored]));
  }
  return outcome;
}

Outcome merged(const SystemTrial& trial) {
  BlockCase base = trial.block();
  Numbers own = parameters_of(base), weights;
  for (auto& [name, weight] : whole_weights(base, Block(base).builder.program())) own[name] = weights[name] = weight;
  const double factor = base.config.adapters.alpha / static_cast<double>(base.config.adapters.rank);
  const auto rank = static_cast<std::size_t>(base.config.adapters.rank);
  for (const auto& [name, a] : own) {
    if (!name.ends_with("lora_A.weight")) continue;
    const std::string layer = name.substr(0, name.size() - std::string_view("lora_A.weight").size());
    const std::vector<double>& b = own.at(layer + "lora_B.weight");
    std::vector<double>& w = weights[layer + "weight"] = own.at(layer + "weight");
    const std::size_t in = a.size() / rank;
    for (std::size_t o = 0; o < b.size() / rank; ++o)
      for (std::size_t r = 0; r < rank; ++r)
        for (std::size_t i = 0; i < in; ++i) w[o * in + i] += factor * b[o * rank + r] * a[r * in + i];
  }
  if (base.config.adapters.on.empty()) return Outcome::not_applicable("no adapters");
  if (in_16_bits(base) && (base.part == BlockPart::layer || base.part == BlockPart::decode))
    return Outcome::not_applicable("in float32 it reads another x, or other caches");
  const Outcome restored = unmerged(trial, own);
  base.config.adapters.on.clear(), base.config.trains = true, base.config.weights = WeightFormat::f32;
  base.config.largest_buffer = SIZE_MAX;
  Outcome outcome =
      within_both(InDouble(trial, base, weights).expected_y(), InDouble(trial, trial.block()).expected_y());
  return outcome &= restored;
}

Outcome tied(const SystemTrial& trial) {
  BlockCase c = trial.block();
  if (in_16_bits(c)) return Outcome::not_applicable("the table does not train");
  c.config.trains = true;
  BlockCase untied = c;
  c.config.tied_head = true, untied.config.tied_head = false;
  const std::string table = "model.embed_tokens.weight", head = "lm_head.weight";
  InDouble one(trial, c, {}, true), two(trial, untied, {{head, parameters_of(c).at(table)}}, true);
  Expected sum = two.gradient(table);
  const Expected more = two.gradient(head);
  for (std::size_t i = 0; i < sum.want.size(); ++i) sum.want[i] += more.want[i], sum.bound[i] += more.bound[i];
  return within_both(sum, one.gradient(table));
}

/// Repeats keys and values of each group, so that every query head has its own.
Outcome repeated_heads(const SystemTrial& trial) {
  const BlockCase& shared = trial.block();
  BlockCase repeated = shared;
  repeated.config.kv_heads = repeated.config.heads;
  const auto group = static_cast<std::size_t>(shared.config.heads / shared.config.kv_heads);
  if (group == 1) return Outcome::not_applicable("every query head has keys of its own");
  Numbers operands;
  for (const auto& [name, numbers] : parameters_of(shared)) {
    const bool keys_or_values = name.find("k_proj.") != name.npos || name.find("v_proj.") != name.npos;
    if (!keys_or_values || name.ends_with("lora_A.weight")) continue;
    const std::size_t head = numbers.size() / static_cast<std::size_t>(shared.config.kv_heads);
    for (std::size_t n = 0; n < group * numbers.size(); ++n)
      operands[name].push_back(numbers[n / (group * head) * head + n % head]);
  }
  return same<double>("y", InDouble(trial, shared).y(), InDouble(trial, repeated, operands).y(),
                      "shared keys and values differ from repeated ones");
}

/// y - x of multi-query attention is the sum of y - x of its heads.
Outcome single_heads(const SystemTrial& trial) {
  BlockCase c = trial.block();
  c.config.kv_heads = 1, c.config.adapters.on.clear(), c.config.trains = true;
  c.config.biases.erase(Projection::o);  // each head would add it
  const Numbers own = parameters_of(c);
  const auto heads = static_cast<std::size_t>(c.config.heads), d = static_cast<std::size_t>(c.config.head_dim);
  BlockCase single = c;
  single.config.heads = 1;
  const Block block(c);
  const std::vector<double> x = numbers_of(c, block.builder.program(), block.x);
  Expected sum{"y", {}, {static_cast<Index>(x.size())}, x, std::vector<double>(x.size(), 0)};
  for (std::size_t h = 0; h < heads; ++h) {
    Numbers part;
    for (const std::string name : {"self_attn.q_proj.weight", "self_attn.q_proj.bias"}) {
      const auto all = own.find(name);
      if (all == own.end()) continue;
      const auto rows = static_cast<std::ptrdiff_t>(all->second.size() / heads),
                 first = static_cast<std::ptrdiff_t>(h) * rows;
      part[name].assign(all->second.begin() + first, all->second.begin() + first + rows);
    }
    const std::vector<double>& o = own.at("self_attn.o_proj.weight");
    for (std::size_t i = 0; i < o.size(); ++i)
      if (i % (heads * d) / d == h) part["self_attn.o_proj.weight"].push_back(o[i]);
    const Expected of_head = InDouble(trial, single, part).expected_y();
    for (std::size_t i = 0; i < x.size(); ++i) sum.want[i] += of_head.want[i] - x[i], sum.bound[i] += of_head.bound[i];
  }
  return within_both(sum, InDouble(trial, c).expected_y());
}

/// R12: a prompt in chunks and then token by token, against attention over all of it: in double bit for bit, on the
/// device step by step. A second sequence reuses the caches of a first.
Outcome decoding(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  const TransformerConfig& t = c.config;
  Random random(derive(c.seed, "decoding"));
  const Index s = c.s + random.between(1, 5), capacity = s + random.between(0, 2), prompt = random.between(1, s - 1);
  const double scale = 1 / std::sqrt(static_cast<double>(t.head_dim));
  Builder b;
  const Value q = b.input("q", {s, t.heads, t.head_dim}), k = b.input("k", {s, t.kv_heads, t.head_dim}),
              v = b.input("v", {s, t.kv_heads, t.head_dim}), positions = b.input("positions", {s}, DType::i32),
              places = b.input("places", {s + 1}, DType::i32);
  const auto rotated = [&](Value x, Index from, Index to) {
    const Value rows = b.rows(x, from, to);
    return t.theta > 0 ? rope(b, rows, b.rows(positions, from, to), t.theta, 0, 0) : rows;
  };
  const auto batched = [&](Value x) {
    const Shape shape = b.shape(x);
    return b.reshape(x, {1, shape[0], shape[1], shape[2]});
  };
  const auto place = [&](Index i) { return b.rows(places, i, i + 1); };
  const Value whole =
      attention(b, batched(rotated(q, 0, s)), batched(rotated(k, 0, s)), batched(v), place(s), place(0), scale, 1).y;
  const Shape cache{1, capacity, t.kv_heads, t.head_dim};
  const Value all_keys = b.state("keys", cache), all_values = b.state("values", cache);
  Value keys = all_keys, values = all_values;
  std::vector<Value> parts;
  for (Index from = 0, to = 0; from < s; from = to) {
    to = from < prompt ? random.between(from + 1, prompt) : from + 1;
    if (from < prompt) {
      keys = cache_append(b, batched(rotated(k, from, to)), place(from), keys, capacity - (to - from));
      values = cache_append(b, batched(b.rows(v, from, to)), place(from), values, capacity - (to - from));
      parts.push_back(attention(b, batched(rotated(q, from, to)), keys, values, place(to), place(from), scale, 1).y);
    } else {
      const auto step = attention_decode(b, rotated(q, from, to), rotated(k, from, to), b.rows(v, from, to),
                                         place(from), keys, values, scale);
      keys = step.k_cache, values = step.v_cache;
      parts.push_back(step.y);
    }
  }
  b.output(whole);
  for (const Value part : parts) b.output(part);
  Program program = b.take();
  trial.alter(program);
  const auto numbers = [&](Value of, int run) {
    std::vector<double> n = numbers_of(c, program, of, run);
    for (std::size_t i = 0; i < n.size() && of == places; ++i) n[i] = static_cast<double>(i);
    return n;
  };
  const Plan where = plan(program);
  Execution<double> exact(program, where, std::nan(""));
  fill(exact[all_keys], std::nan("")), fill(exact[all_values], std::nan(""));
  Session session(program, trial.on(), trial.options());
  Outcome outcome;
  for (const int run : {0, 1}) {
    for_each_set_by_host(program, [&](Value of) {
      write(exact[of], numbers(of, run));
      set(session, of, numbers(of, run));
    });
    exact.run();
    std::vector<double> got;
    for (const Value part : parts)
      for (const double y : read(exact[part])) got.push_back(y);
    outcome &= same<double>("y", got, read(exact[whole]),
                            fmt::format("of {} positions, {} of them a prompt in chunks, these differ from attention "
                                        "over all of them at once, for sequence {} in these caches",
                                        s, prompt, run + 1));
    outcome &= checked(session, c.seed);
  }
  return outcome;
}

Outcome divisibility(const SystemTrial& trial) {
  const auto refused = [&](Index heads, Index kv_heads) {
    TransformerConfig t = trial.block().config;
    t.heads = heads, t.kv_heads = kv_heads;
    try {
      trial.check(t);
    } catch (const InputError&) {
      return holds(true, "");
    }
    return holds(false, fmt::format("{} heads are taken with {} key-value heads", heads, kv_heads));
  };
  const Index heads = std::max<Index>(3, trial.block().config.heads);  // in every range, and n - 1 never divides it
  Outcome outcome = refused(heads, heads - 1);
  return outcome &= refused(trial.block().config.heads, 0);
}

/// Returns the shape of a projection's weight in the first layer.
Shape shape_of(const SystemTrial& trial, const Program& program, std::string_view projection) {
  const BlockPart part = trial.block().part;
  const bool model = part == BlockPart::loss || part == BlockPart::classifier;
  const std::string_view layer = model ? "model.layers.0." : "";
  return program[parameter(program, fmt::format("{}self_attn.{}_proj.weight", layer, projection)).value].shape;
}
Outcome has_shape(std::string_view name, const Shape& shape, const Shape& want) {
  return holds(shape == want, fmt::format("{} is {}, and {} is wanted", name, to_string(shape), to_string(want)));
}

Outcome key_value_shapes(const SystemTrial& trial) {
  const Program p = altered(trial, Block(trial.block()).builder.program());
  const TransformerConfig& t = trial.block().config;
  Outcome outcome;
  for (const char* projection : {"k", "v"})
    outcome &= has_shape(projection, shape_of(trial, p, projection), {t.kv_heads * t.head_dim, t.hidden});
  return outcome;
}

Outcome result_shape(const SystemTrial& trial) {
  const Block block(trial.block());
  const BlockCase& c = trial.block();
  const Shape want = c.part == BlockPart::loss         ? Shape{c.rows()}
                     : c.part == BlockPart::classifier ? Shape{c.batch}
                                                       : Shape{c.rows(), c.config.hidden};
  return has_shape("y", altered(trial, block.builder.program())[block.y].shape, want);
}

Outcome head_shapes(const SystemTrial& trial) {
  const Program p = altered(trial, Block(trial.block()).builder.program());
  const TransformerConfig& t = trial.block().config;
  Outcome outcome = has_shape("q", shape_of(trial, p, "q"), {t.heads * t.head_dim, t.hidden});
  return outcome &= has_shape("o", shape_of(trial, p, "o"), {t.hidden, t.heads * t.head_dim});
}

Outcome wrong_shapes(const SystemTrial& trial) {
  OnDevice on(trial);
  Outcome outcome;
  for (const Parameter& p : on.block.builder.program().parameters) {
    const auto takes = [&](const Shape& shape, Index elements) {
      try {
        set_parameter(on.session, p.name, shape, std::vector<float>(static_cast<std::size_t>(elements)));
      } catch (const InputError&) {
        return false;
      }
      return true;
    };
    Shape wrong = p.shape;
    if (wrong.rank() == 2 && wrong[0] != wrong[1]) std::swap(wrong[0], wrong[1]);  // transposed: as many elements
    else ++wrong[0];
    outcome &= holds(takes(p.shape, p.shape.size()), fmt::format("{} is refused its own shape", p.name));
    outcome &=
        holds(!takes(wrong, wrong.size()), fmt::format("{} is set to elements of shape {}", p.name, to_string(wrong)));
    outcome &= holds(!takes(p.shape, p.shape.size() - 1), fmt::format("{} is set with an element missing", p.name));
  }
  return outcome;
}

Outcome initialization(const SystemTrial& trial) {
  const Program p = altered(trial, Block(trial.block()).builder.program());
  Outcome outcome;
  std::map<std::vector<float>, std::string> seen;
  for (const Parameter& parameter : p.parameters) {
    const std::vector<float> values = initial_values(parameter.name, p[parameter.value].shape, trial.block().seed);
    outcome &= holds(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }),
                     parameter.name + " begins infinite");
    const bool constant = parameter.name.ends_with("norm.weight") || parameter.name.ends_with(".bias") ||
                          parameter.name.ends_with("lora_B.weight");
    if (constant) continue;
    const auto again = [&](std::uint64_t seed) { return initial_values(parameter.name, parameter.shape, seed); };
    outcome &=
        holds(values == again(trial.block().seed) && (values.size() < 4 || values != again(trial.block().seed + 1)),
              parameter.name + " does not begin as the seed says");
    outcome &= holds(std::ranges::all_of(values, [](float v) { return std::fabs(v) <= 6 * 0.02F; }),
                     parameter.name + " begins beyond 6 deviations of normal(0, 0.02)");
    // Weights of different sizes are alike if they begin alike: four elements agree by chance once in 2^64.
    const auto [first, is_new] = seen.emplace(
        std::vector(values.begin(), values.begin() + (values.size() < 4 ? std::ssize(values) : 4)), parameter.name);
    outcome &= holds(is_new, fmt::format("{} begins as {} does", parameter.name, first->second));
    if (values.size() > 1)
      outcome &= holds(std::ranges::adjacent_find(values, std::not_equal_to<>()) != values.end(),
                       parameter.name + " begins constant");
  }
  return outcome;
}

/// Returns the param of a step as the configuration alone gives it, without the builder; none if it gives none.
std::optional<double> configured(const BlockCase& c, const Step& step, std::string_view param) {
  const TransformerConfig& t = c.config;
  std::string_view op = step.op->name;
  if (op.ends_with("_backward")) op.remove_suffix(std::string_view("_backward").size());
  const auto is = [&](std::string_view of, std::string_view name) { return op == of && param == name; };
  if ((op == "attention" || op == "attention_decode") && param == "scale")
    return 1 / std::sqrt(static_cast<double>(t.head_dim));
  if (is("attention", "causal")) return t.causal;
  if (is("rope", "theta")) return t.theta;
  if (op == "rope") return 0;  // halves turn, by exact angles
  if (is("rmsnorm", "eps")) return t.eps;
  if (is("lora_linear", "alpha")) return t.adapters.alpha;
  if (is("residual_add", "alpha"))
    return step.label.find("_proj.") == step.label.npos ? 1 : t.adapters.alpha / static_cast<double>(t.adapters.rank);
  if (is("adamw_step", "lr")) return c.step.lr;
  if (is("adamw_step", "eps")) return c.step.eps;
  if (is("adamw_step", "weight_decay")) return c.step.weight_decay;
  if (is("clip_grad_norm", "max_norm")) return c.step.max_norm;
  return {};
}

/// The same of the extents of a tensor, -1 where the configuration says nothing; none of a tensor of which it says nothing.
std::vector<Index> extents(const BlockCase& c, std::string_view op, std::string_view tensor) {
  const TransformerConfig& t = c.config;
  if (op.starts_with("attention")) {
    std::vector<Index> heads = op == "attention_decode" ? std::vector<Index>{c.batch, 0, t.head_dim}
                                                        : std::vector<Index>{c.batch, -1, 0, t.head_dim};
    heads[heads.size() - 2] = tensor == "q" || tensor == "y" ? t.heads : t.kv_heads;
    if (tensor == "q" || tensor == "k" || tensor == "v" || tensor == "y") return heads;
  }
  if (op == "rope" && tensor == "x") return {c.rows(), -1, t.head_dim};
  if (op == "lora_linear" && tensor == "a") return {t.adapters.rank, -1};
  if (op == "lora_linear" && tensor == "b") return {-1, t.adapters.rank};
  return {};
}

}  // namespace

Outcome as_configured(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  const Program p = altered(trial, Block(c).differentiated()).program;
  Outcome outcome;
  for (const Step& step : p.steps) {
    for (std::size_t i = 0; i < step.params.size(); ++i) {
      const std::string_view name = step.op->params[i].name;
      if (const auto want = configured(c, step, name))
        outcome &= holds(step.params[i] == *want, fmt::format("{}: {} is {}, and the configuration says {}",
                                                              describe(step), name, step.params[i], *want));
    }
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
      const Shape& shape = p[step.tensors[i]].shape;
      const std::string_view name = step.op->tensors[i].name;
      const std::vector<Index> wanted = extents(c, step.op->name, name);
      if (shape.size() == 0) continue;  // no adapter
      for (std::size_t axis = 0; axis < wanted.size(); ++axis)
        outcome &= holds(wanted[axis] < 0 || shape[static_cast<int>(axis)] == wanted[axis],
                         fmt::format("{}: {} is {}, and axis {} has {} by the configuration", describe(step), name,
                                     to_string(shape), axis, wanted[axis]));
    }
  }
  return outcome;
}

namespace {

Outcome finite(const SystemTrial& trial) {
  OnDevice on(trial);
  initialize(on.session, trial.block().seed);
  on.session.run();
  Outcome outcome;
  for (const float y : on.session.get<float>(on.block.y)) {
    outcome &= holds(std::isfinite(y), fmt::format("a result is {}", y));
    outcome.nonzero += (y != 0) - 1;
  }
  return outcome;
}

constexpr BlockPart kEvery[] = {BlockPart::attention, BlockPart::feed_forward, BlockPart::layer, BlockPart::loss,
                                BlockPart::training,  BlockPart::classifier,   BlockPart::decode},
                    kDecode[] = {BlockPart::decode}, kTraining[] = {BlockPart::training},
                    kHasBackward[] = {BlockPart::attention, BlockPart::feed_forward, BlockPart::layer,
                                      BlockPart::loss,      BlockPart::training,     BlockPart::classifier},
                    kFormats[] = {BlockPart::attention, BlockPart::feed_forward, BlockPart::layer,
                                  BlockPart::loss,      BlockPart::classifier,   BlockPart::decode},
                    kAttendsOrDecodes[] = {BlockPart::attention, BlockPart::layer, BlockPart::loss,
                                           BlockPart::classifier, BlockPart::decode};
constexpr BlockPart kAll[] = {BlockPart::attention, BlockPart::feed_forward, BlockPart::layer, BlockPart::loss},
                    kBegins[] = {BlockPart::attention, BlockPart::feed_forward, BlockPart::layer, BlockPart::loss,
                                 BlockPart::classifier},
                    kAttends[] = {BlockPart::attention, BlockPart::layer, BlockPart::loss, BlockPart::classifier},
                    kAttention[] = {BlockPart::attention}, kLoss[] = {BlockPart::loss};

constexpr SystemObligation kObligations[] = {
    {{"FALSIFY-SYS-001",
      "every step, forward and backward, is within its own worst-case bound on the operands that it really got",
      "steps", "the kernel of the step that is named, or memory that serves two values at once"},
     kEvery,
     true,
     &steps},
    {{"FALSIFY-SYS-002", "the forward pass is its equations, in double", "forward",
      "operands, constants or order of the forward steps"},
     kEvery,
     false,
     &forward},
    {{"FALSIFY-SYS-003",
      "the gradient of every leaf is the derivative of the equations, and adds up over runs, in double", "gradients",
      "a path of the backward pass that is missing, cut, doubled or exchanged"},
     kHasBackward,
     false,
     &gradients},
    {{"FALSIFY-SYS-004", "results and gradients are within the bound of the whole program", "composed",
      "a kernel of the back end; FALSIFY-SYS-001 names the step"},
     kFormats,
     false,
     &composed},
    {{"FALSIFY-SYS-005", "every leaf that trains gets a gradient, and no frozen one does", "leaves",
      "a projection or an adapter is cut off from the loss"},
     kHasBackward,
     false,
     &leaves},
    {{"FALSIFY-SYS-006", "what padding holds changes no result of a token and no gradient, bitwise", "padding",
      "lengths, or the mask of the backward pass"},
     kAttends,
     true,
     &padding},
    {{"FALSIFY-SYS-007", "the first positions are those of a run of them alone, bitwise, at every length", "prefix",
      "the causal mask is off, or positions count from another place"},
     kAll,
     false,
     &prefix},
    {{"FALSIFY-SYS-008", "adapters whose B is zero leave the base, bitwise", "zero_adapter",
      "an adapter replaces its base, or drops the bias"},
     kFormats,
     false,
     &zero_adapter},
    {{"FALSIFY-SYS-009", "adapters merged into their weights are the adapters, and taken out again they leave the base",
      "merged", "the scale alpha / rank, or the layout of A or B"},
     kFormats,
     false,
     &merged},
    {{"FALSIFY-SYS-010", "a tied table gets the gradients of both of its uses", "tied",
      "one of two uses overwrites the other's gradient"},
     kLoss,
     false,
     &tied},
    {{"FALSIFY-SYS-011", "each sequence of a padded batch is its tokens alone, bitwise, at their own positions",
      "batch", "a length, a position or a key of another sequence"},
     kAttendsOrDecodes,
     false,
     &batch},
    {{"FALSIFY-SYS-012",
      "a prompt in chunks and decoding token by token are attention over all of it, bitwise, in caches used before",
      "decoding", "a place in the cache, a position, or keys that an earlier sequence left"},
     kAttention,
     false,
     &decoding},
    {{"FALSIFY-SYS-013", "keys and values are cached at the place of their position, and no other place changes",
      "caches", "a place in the cache, a rotation, or the cache of another layer or sequence"},
     kDecode,
     false,
     &caches},
    {{"FALSIFY-SYS-014",
      "token by token, in chunks, and in caches used before, logits are those of the whole prompt at once, bitwise",
      "whole_prompt", "a position, a length, or a step that one of the three programs lacks"},
     kDecode,
     false,
     &whole_prompt},
    {{"FALSIFY-SYS-015", "the tokens of other sequences, and sequences without a token, change no logit, bitwise",
      "other_sequences", "a kernel whose order depends on the batch, or a read of another sequence's cache"},
     kDecode,
     false,
     &other_sequences},
    {{"FALSIFY-SYS-016", "after a reset a sequence decodes as in a new decoder, bitwise", "after_reset",
      "keys that an earlier sequence left"},
     kDecode,
     false,
     &after_reset},
    {{"FALSIFY-SYS-017",
      "a token is counted once, and one too many, or one beyond the vocabulary, is refused before anything changes",
      "full_cache", "the check of the capacity, or a position that is not the length of the cache"},
     kDecode,
     false,
     &full_cache},
    {{"FALSIFY-SYS-018", "what a layer saves for its backward pass is what the equations name, in double", "saved",
      "a buffer that the next layer uses again, or a value of before or behind the one that is needed"},
     kTraining,
     false,
     &saved},
    {{"FALSIFY-SYS-019",
      "the backward pass alone, from what the forward pass saved, gives the gradients of both in one program, bitwise",
      "two_passes", "something that the backward pass reads is not saved"},
     kTraining,
     false,
     &two_passes},
    {{"FALSIFY-SYS-027",
      "the gradients of a batch are the sums of those of its sequences, whatever the number of their tokens",
      "accumulated", "a mean of means, or a sequence that counts twice or not at all"},
     kHasBackward,
     false,
     &accumulated},
    {{"FALSIFY-SYS-028",
      "every constant and extent of a step is the configuration's, forward and backward, at any size", "as_configured",
      "a constant that the builder takes from elsewhere, or only of some sizes"},
     kEvery,
     true,
     &as_configured},
    {{"FALSIFY-SYS-029",
      "the decoder's logits are within the bound of the whole model on each sequence's tokens: ragged prompts in "
      "chunks, tokens of some sequences, and prompts behind a reset",
      "decoder", "a place, a length or a token that the host sets, or a kernel of the back end"},
     kDecode,
     false,
     &decoder_by_equations},
    {{"FALSIFY-A1", "a weight of another shape is refused, a transposed one included", "wrong_shapes",
      "only numbers of elements are compared"},
     kAttendsOrDecodes,
     false,
     &wrong_shapes},
    {{"FALSIFY-A2", "keys and values are projected to kv_heads * head_dim", "key_value_shapes", "heads for kv_heads"},
     kAttends,
     false,
     &key_value_shapes},
    {{"FALSIFY-A3", "the result has the shape of x, that of a loss one element a position or a sequence",
      "result_shape", "the output projection"},
     kAttends,
     false,
     &result_shape},
    {{"FALSIFY-A4", "C-INIT-001: weights begin as seed and full name say, finite and varied, no two alike",
      "initialization", "the key of the initialization lacks the layer or the name"},
     kBegins,
     false,
     &initialization},
    {{"FALSIFY-A5", "with weights as they begin, results are finite", "finite", "a norm or a sum of exponentials"},
     kFormats,
     false,
     &finite},
    {{"FALSIFY-GQ-001", "q and o have the shapes of their heads at every ratio of heads", "head_shapes",
      "hidden for heads * head_dim"},
     kAttends,
     false,
     &head_shapes},
    {{"FALSIFY-GQ-002", "shared keys and values are those of attention with repeated heads, bitwise", "repeated_heads",
      "the map from query heads to key-value heads"},
     kAttends,
     false,
     &repeated_heads},
    {{"FALSIFY-GQ-004", "heads that do not share key-value heads evenly are refused", "divisibility",
      "the check of the configuration"},
     kAttends,
     false,
     &divisibility},
    {{"FALSIFY-GQ-006", "multi-query attention is the sum of its single heads", "single_heads",
      "heads side by side in another order, or a head left out"},
     kAttention,
     false,
     &single_heads},
};

}  // namespace

std::span<const SystemObligation> system_obligations() { return kObligations; }

}  // namespace assay::falsify
