// The obligations of decoding that take several steps of several sequences.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/errors.hpp"
#include "falsify/program/equations.hpp"
#include "falsify/program/obligations.hpp"

namespace assay::falsify {
namespace {

using namespace program;
using Tokens = std::vector<std::int32_t>;

Tokens draw_tokens(const BlockCase& c, Random& random, Index count) {
  Tokens ids;
  while (std::ssize(ids) < count)
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(c.config.vocabulary))));
  return ids;
}

/// A model in double whose caches outlive its programs.
class InDouble {
 public:
  InDouble(const SystemTrial& trial, Index capacity) : trial_(trial), c_(trial.block()), capacity_(capacity) {
    c_.config.trains = false;
  }

  void reset() { length_ = 0; }

  /// Appends tokens of one sequence. Returns the logits if there is one.
  std::vector<double> append(std::span<const std::int32_t> ids) {
    const Index rows = std::ssize(ids);
    DecodeProgram d = decode_program(c_.config, 1, capacity_, rows);
    trial_.alter(d.program);
    const Plan where = plan(d.program);
    Execution<double> run(d.program, where, std::nan(""));
    for_each_set_by_host(d.program, [&](Value v) {
      if (d.program.storage_of(v).kind == Kind::parameter) write(run[v], numbers_of(c_, d.program, v));
    });
    const auto start = static_cast<double>(length_);
    length_ += rows;
    write(run[d.ids], taken(c_, {ids.begin(), ids.end()}));
    write(run[d.starts], {start});
    if (rows > 1) {
      std::vector<double> places(ids.size());
      std::iota(places.begin(), places.end(), start);
      if (d.positions) write(run[d.positions], places);
      write(run[d.lengths], {static_cast<double>(length_)});
    }
    for (std::size_t layer = 0; layer < d.caches.size(); ++layer)
      for (const bool values : {false, true}) {
        const View<double> memory = run[values ? d.caches[layer].values : d.caches[layer].keys];
        const auto held = caches_.find({layer, values});
        if (held == caches_.end()) fill(memory, std::nan(""));
        else write(memory, held->second);
      }
    run.run();
    for (std::size_t layer = 0; layer < d.caches.size(); ++layer)
      caches_[{layer, false}] = read(run[d.caches[layer].keys]),
                      caches_[{layer, true}] = read(run[d.caches[layer].values]);
    return rows == 1 ? read(run[d.logits]) : std::vector<double>();
  }

  /// The logits of every token, by the program of all of them at once.
  std::vector<double> whole(std::span<const std::int32_t> ids) const {
    BlockCase c = c_;
    c.config.decodes = false;
    const Index s = std::ssize(ids);
    Builder b;
    const Sequences all = sequences(b, c.config, s);
    const Value in = b.input("ids", {s}, DType::i32), logits = decoder(b, c.config, in, all);
    b.output(logits);
    Program p = b.take();
    trial_.alter(p);
    const Plan where = plan(p);
    Execution<double> run(p, where, std::nan(""));
    for (const Parameter& parameter : p.parameters) {
      write(run[parameter.value], numbers_of(c, p, parameter.value));
      if (parameter.scales) write(run[parameter.scales], numbers_of(c, p, parameter.scales));
    }
    std::vector<double> places(ids.size());
    std::iota(places.begin(), places.end(), 0);
    write(run[in], {ids.begin(), ids.end()});
    write(run[all.lengths], {static_cast<double>(s)}), write(run[all.starts], {0});
    if (all.positions) write(run[all.positions], places);
    run.run();
    return read(run[logits]);
  }

 private:
  const SystemTrial& trial_;
  BlockCase c_;
  Index capacity_, length_ = 0;
  std::map<std::pair<std::size_t, bool>, std::vector<double>> caches_;
};

/// A decoder on the trial's device, with the case's weights.
class OnDevice {
 public:
  OnDevice(const SystemTrial& trial, Index batch, Index capacity)
      : decoder(trial.block().config, {.batch = batch, .capacity = capacity, .chunk = trial.block().s}, trial.on(),
                trial.options()) {
    Session& session = decoder.session();
    const Program& program = session.program();
    for_each_set_by_host(program, [&](Value v) {
      if (program.storage_of(v).kind == Kind::parameter) set(session, v, numbers_of(trial.block(), program, v));
    });
  }

  std::vector<float> prompt(Index sequence, std::span<const std::int32_t> ids) {
    const auto logits = decoder.prompt(sequence, ids);
    return {logits.begin(), logits.end()};
  }
  std::vector<float> step(const Tokens& ids) {
    const auto logits = decoder.step(ids);
    return {logits.begin(), logits.end()};
  }

  Decoder decoder;
};

/// The logits behind the last of these tokens by the equations, and how far the decoder's may be off: its tokens came as
/// chunks of these sizes, 1 for a step, through the kernels that it has chosen: those of a batch, of which every sequence
/// has these tokens here.
Expected behind(const BlockCase& c, const Decoder& decoder, const Session& step, std::span<const std::int32_t> ids,
                std::span<const Index> pieces, Index capacity) {
  TransformerConfig config = c.config;
  config.trains = false;
  std::map<std::pair<std::size_t, bool>, std::vector<Bounded>> caches;
  Expected expected{"logits", {}, {config.vocabulary}, {}, {}};
  std::map<std::string, std::vector<double>> weights;
  Index held = 0;
  const auto of_batch = [&](const std::vector<double>& one) {
    std::vector<double> all;
    for (Index b = 0; b < c.batch; ++b) all.insert(all.end(), one.begin(), one.end());
    return all;
  };
  for (const Index rows : pieces) {
    const DecodeProgram d = decode_program(config, c.batch, capacity, rows);
    const Plan where = plan(d.program);
    Execution<Bounded> run(d.program, where, Bounded(std::nan("")));
    run.rounds_stores = true;
    for_each_set_by_host(d.program, [&](Value v) {
      if (d.program.storage_of(v).kind == Kind::parameter) write(run[v], numbers_of(c, d.program, v));
    });
    const auto part = ids.subspan(static_cast<std::size_t>(held), static_cast<std::size_t>(rows));
    write(run[d.ids], taken(c, of_batch({part.begin(), part.end()})));
    write(run[d.starts], of_batch({static_cast<double>(held)}));
    if (rows > 1) {
      std::vector<double> places(part.size());
      std::iota(places.begin(), places.end(), static_cast<double>(held));
      if (d.positions) write(run[d.positions], of_batch(places));
      write(run[d.lengths], of_batch({static_cast<double>(held + rows)}));
    }
    held += rows;
    for (std::size_t layer = 0; layer < d.caches.size(); ++layer)
      for (const bool values : {false, true})
        if (const auto before = caches.find({layer, values}); before != caches.end())
          std::ranges::copy(before->second, run[values ? d.caches[layer].values : d.caches[layer].keys].data());
    const Session& of = rows > 1 ? *decoder.chunk_session() : step;
    for (std::size_t s = 0; s < d.program.steps.size(); ++s) {
      const ArithmeticScope scope(of.kernel(s).arithmetic);
      run.run(d.program.steps[s]);
    }
    for (std::size_t layer = 0; layer < d.caches.size(); ++layer)
      caches[{layer, false}] = read(run[d.caches[layer].keys]),
                     caches[{layer, true}] = read(run[d.caches[layer].values]);
    if (held < std::ssize(ids)) continue;
    for (const Bounded& logit : read(run[d.logits])) expected.bound.push_back(logit.error);
    expected.bound.resize(static_cast<std::size_t>(config.vocabulary));
  }
  // The expected logits are those of all tokens at once, without caches.
  const DecodeProgram names = decode_program(config, 1, capacity);
  std::map<std::string, std::vector<long double>> numbers;
  for_each_set_by_host(names.program, [&](Value v) {
    if (names.program.storage_of(v).kind != Kind::parameter) return;
    const std::vector<double> all = numbers_of(c, names.program, v);
    numbers[names.program[v].name].assign(all.begin(), all.end());
  });
  for (const auto& [name, all] : whole_weights(c, names.program)) numbers[name].assign(all.begin(), all.end());
  std::vector<double> places(ids.size());
  std::iota(places.begin(), places.end(), 0);
  const Equations<long double> equations(config, numbers, places, std::ssize(ids), std::ssize(ids));
  const std::vector<long double> logits = equations.logits({ids.begin(), ids.end()});
  expected.want.assign(logits.end() - config.vocabulary, logits.end());
  return expected;
}

}  // namespace

Outcome decoder_by_equations(const SystemTrial& trial) {
  constexpr double kSmall = 0.01;  // of the rms
  const BlockCase& c = trial.block();
  Random random(derive(c.seed, "decoder"));
  const Index capacity = 2 * c.s + random.between(4, 6);
  OnDevice on(trial, c.batch, capacity);
  const auto chunk = on.decoder.chunk_session() != nullptr ? c.s : Index{0};
  std::vector<Tokens> held(static_cast<std::size_t>(c.batch));
  std::vector<std::vector<Index>> pieces(held.size());
  Outcome outcome;
  const auto compare = [&](std::size_t b, std::span<const float> got, std::string_view when) {
    const Expected want = behind(c, on.decoder, on.decoder.session(), held[b], pieces[b], capacity);
    double squares = 0;
    for (const double w : want.want) squares += w * w;
    const double rms = std::sqrt(squares / static_cast<double>(want.want.size()));
    for (std::size_t i = 0; i < want.want.size(); ++i) {
      const double error = std::fabs(static_cast<double>(got[i]) - want.want[i]), bound = want.bound[i];
      if (bound < kSmall * rms) {
        ++outcome.elements;
        outcome.nonzero += want.want[i] != 0;
        outcome.zero_passes += want.want[i] != 0 && std::fabs(want.want[i]) <= bound;
      }
      if (error > 0 && std::isfinite(bound)) outcome.worst = std::max(outcome.worst, error / bound);
      if (error <= bound || outcome.finding) continue;
      outcome.kind = Outcome::Kind::falsified;
      outcome.finding =
          Finding{Finding::Kind::value, "", "logits", {static_cast<Index>(i)}, got[i], want.want[i], bound};
      outcome.finding->message = fmt::format(
          "sequence {} of {}, {}, behind {} tokens: got {:.9g}, want {:.9g} within {:.3g}, by the equations", b + 1,
          c.batch, when, held[b].size(), got[i], want.want[i], bound);
    }
    trial.bounds += static_cast<std::int64_t>(want.want.size());
  };
  const auto prompt = [&](std::size_t b, Index count, std::string_view when) {
    const Tokens ids = draw_tokens(c, random, count);
    Index left = count;
    for (; chunk > 1 && left > chunk; left -= chunk) pieces[b].push_back(chunk);
    pieces[b].insert(pieces[b].end(), static_cast<std::size_t>(left), 1);
    held[b].insert(held[b].end(), ids.begin(), ids.end());
    compare(b, on.prompt(static_cast<Index>(b), ids), when);
  };
  const auto step = [&] {
    Tokens ids = draw_tokens(c, random, c.batch);
    for (std::size_t b = 1; b < ids.size(); ++b)
      if (random.chance(0.5)) ids[b] = Decoder::kNone;
    for (std::size_t b = 0; b < ids.size(); ++b)
      if (ids[b] != Decoder::kNone) held[b].push_back(ids[b]), pieces[b].push_back(1);
    const std::vector<float> logits = on.step(ids);
    const auto words = static_cast<std::size_t>(c.config.vocabulary);
    for (std::size_t b = 0; b < ids.size(); ++b)
      if (ids[b] != Decoder::kNone) compare(b, std::span(logits).subspan(b * words, words), "in a step of all");
  };
  // A first prompt of more than a chunk; a step behind it; a chunk behind tokens, of a sequence that is not the first.
  for (std::size_t b = 0; b < held.size(); ++b) prompt(b, b == 0 ? c.s + 1 : random.between(1, c.s + 1), "a prompt");
  step();
  const std::size_t last = held.size() - 1;
  prompt(last, std::min<Index>(c.s + 1, capacity - std::ssize(held[last])), "a prompt behind tokens");
  held[0].clear(), pieces[0].clear();
  on.decoder.reset(0);
  prompt(0, random.between(1, c.s + 1), "a prompt behind a reset");
  step();
  return outcome;
}

Outcome whole_prompt(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  Random random(derive(c.seed, "whole prompt"));
  const Index n = random.between(3, 8), capacity = n + random.between(0, 2);
  InDouble model(trial, capacity);
  Outcome outcome;
  for (const bool chunks : {false, true}) {  // the second prompt finds the caches of the first
    const Tokens ids = draw_tokens(c, random, n);
    const std::vector<double> want = model.whole(ids);
    const Index prompt = chunks ? random.between(2, n - 1) : 0;
    model.reset();
    for (Index at = 0, to = 0; at < n; at = to) {
      to = at < prompt ? random.between(std::min(at + 2, prompt), prompt) : at + 1;
      const std::vector<double> got =
          model.append(std::span(ids).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(to - at)));
      if (got.empty()) continue;
      const std::span row = std::span(want).subspan(static_cast<std::size_t>(at) * got.size(), got.size());
      outcome &=
          same<double>("logits", got, row,
                       fmt::format("behind token {} of {}, of which {} came in chunks, these differ from those of "
                                   "the whole prompt",
                                   at + 1, n, prompt));
    }
  }
  return outcome;
}

Outcome other_sequences(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  if (c.batch == 1) return Outcome::not_applicable("there is no other sequence");
  Random random(derive(c.seed, "other sequences"));
  const Index n = random.between(2, 6);
  const auto words = static_cast<std::size_t>(c.config.vocabulary);
  Outcome outcome;
  for (const Index own : {Index{0}, c.batch - 1}) {
    const Tokens ids = draw_tokens(c, random, n);
    std::vector<std::vector<float>> logits;
    for (const bool ragged : {false, true}) {
      OnDevice on(trial, c.batch, 2 * n);
      for (Index b = 0; b < c.batch && ragged; ++b)
        if (b != own) on.prompt(b, draw_tokens(c, random, random.between(1, n)));
      logits.emplace_back();
      for (const std::int32_t id : ids) {
        Tokens all = draw_tokens(c, random, c.batch);
        for (std::int32_t& other : all)
          if (ragged && random.chance(0.5)) other = Decoder::kNone;
        all[static_cast<std::size_t>(own)] = id;
        const std::vector<float> step = on.step(all);
        const auto first = step.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(own) * words);
        logits.back().insert(logits.back().end(), first, first + static_cast<std::ptrdiff_t>(words));
      }
    }
    outcome &= same<float>("logits", logits[1], logits[0],
                           fmt::format("sequence {} of {} depends on the others", own + 1, c.batch));
  }
  return outcome;
}

Outcome after_reset(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  Random random(derive(c.seed, "after reset"));
  const Index n = random.between(2, 6),
              sequence = static_cast<Index>(random.below(static_cast<std::uint64_t>(c.batch)));
  const Tokens before = draw_tokens(c, random, n), ids = draw_tokens(c, random, random.between(1, n));
  OnDevice used(trial, c.batch, n), fresh(trial, c.batch, n);
  used.prompt(sequence, before);
  used.decoder.reset(sequence);
  return same<float>("logits", used.prompt(sequence, ids), fresh.prompt(sequence, ids),
                     fmt::format("the caches held {} tokens before, and these change the logits", n));
}

Outcome full_cache(const SystemTrial& trial) {
  const BlockCase& c = trial.block();
  Random random(derive(c.seed, "full cache"));
  const Index capacity = random.between(1, 4);
  OnDevice on(trial, c.batch, std::max(capacity, c.s));
  const Index places = std::max(capacity, c.s);
  Outcome outcome;
  const auto refused = [&](const Tokens& ids, const std::string& words) {
    const Index before = on.decoder.length(0);
    std::string said = "nothing";
    try {
      on.decoder.prompt(0, ids);
    } catch (const InputError& e) {
      said = e.what();
    }
    outcome &= holds(said.find(words) != said.npos,
                     fmt::format("{} tokens behind {} of {} are refused with {}", ids.size(), before, places, said));
    outcome &= holds(on.decoder.length(0) == before, "a token that is refused is counted");
  };
  refused(draw_tokens(c, random, places + 1), fmt::format("its cache holds 0 of {} tokens", places));
  refused({static_cast<std::int32_t>(c.config.vocabulary)}, fmt::format("the vocabulary has {}", c.config.vocabulary));
  for (Index n = 1; n <= places; ++n) {
    on.prompt(0, draw_tokens(c, random, 1));
    outcome &= holds(on.decoder.length(0) == n,
                     fmt::format("after {} tokens the length of the cache is {}", n, on.decoder.length(0)));
  }
  refused(draw_tokens(c, random, 1), fmt::format("its cache holds {} of {} tokens, and 1 more", places, places));
  return outcome;
}

}  // namespace assay::falsify
