#include "cli/training_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <tuple>

#include "cli/built_from.hpp"
#include "cli/progress.hpp"
#include "cli/selection.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/percentile.hpp"
#include "program/model/adapters.hpp"
#include "program/model/checkpoint.hpp"
#include "program/model/parameters.hpp"
#include "runtime/registry.hpp"
#include "system/interrupt.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace training_run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using program::Judgement;
using program::Sample;
using program::Session;
using program::Trainer;

/// Judgements as bytes, in the order of members, each with `classes` logits.
std::string to_bytes(const std::vector<Judgement>& all) {
  std::string bytes;
  const auto append = [&](const auto* from, std::size_t count) {
    bytes.append(reinterpret_cast<const char*>(from), count * sizeof *from);
  };
  for (const Judgement& j : all) append(&j.loss, 1), append(&j.label, 1), append(j.logits.data(), j.logits.size());
  return bytes;
}
void append_from(std::string_view bytes, std::size_t classes, std::vector<Judgement>& to) {
  const auto take = [&](auto* into, std::size_t count) {
    std::memcpy(into, bytes.data(), count * sizeof *into);
    bytes.remove_prefix(count * sizeof *into);
  };
  while (!bytes.empty()) {
    Judgement& j = to.emplace_back();
    j.logits.resize(classes);
    take(&j.loss, 1), take(&j.label, 1), take(j.logits.data(), classes);
  }
}

/// Each rank of a host takes a GPU of its own: of those that are visible, the one of its number there.
Device& device_of(const TrainSettings& s, const program::Ranks& ranks) {
  if (s.backend == "cuda" && ranks.size() > 1) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    std::string own = fmt::format("{}", ranks.local_rank());
    if (visible != nullptr) {
      std::istringstream all(visible);
      for (int r = 0; r <= ranks.local_rank(); ++r)
        if (!std::getline(all, own, ','))
          throw Unavailable("cuda", fmt::format("CUDA_VISIBLE_DEVICES={} has no GPU for rank {} of this host", visible,
                                                ranks.local_rank()));
    }
    setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
  }
  return assay::device(backend_from(s.backend));
}

/// The part of `count` things that a rank has: parts differ by one at most, and lie one behind the other.
std::pair<std::size_t, std::size_t> part_of(std::size_t count, const program::Ranks& ranks) {
  const auto rank = static_cast<std::size_t>(ranks.rank()), size = static_cast<std::size_t>(ranks.size());
  return {count * rank / size, count * (rank + 1) / size};
}

/// Updates that the median leaves out: a device prepares itself in the first ones.
constexpr std::ptrdiff_t kFirst = 2;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace
}  // namespace training_run

using namespace training_run;

TrainingRun::TrainingRun(const TrainOptions& o, TrainSettings settings, Team& team)
    : o_(o), team_(team), s_(std::move(settings)), device_(device_of(s_, team.ranks())) {
  program::CorpusOptions corpus{s_.classes, s_.classifier.multi_label, s_.options.length,
                                s_.classifier.model.vocabulary};
  if (!s_.corpus.tokenizer.empty()) {
    tokenizer_.emplace(s_.corpus.tokenizer);
    corpus.tokenize = [this](std::string_view text) { return tokenizer_->encode(text); };
  }
  train_ = read_corpus(s_.corpus.train, corpus);
  if (!s_.corpus.held_out.empty()) held_out_ = read_corpus(s_.corpus.held_out, corpus);
  else if (s_.corpus.share > 0) std::tie(train_, held_out_) = split(std::move(train_), s_.corpus.share, s_.seed);
  make_trainer();
  if (s_.model.weights) weights_.emplace(*s_.model.weights);
  const std::vector<std::string> unused = set_base(trainer_->session(), weights_ ? &*weights_ : nullptr, s_.seed);
  if (!s_.model.adapters.empty()) load_adapters(trainer_->session(), s_.model.adapters);
  for (const std::string& name : unused)
    if (name != "lm_head.weight") say(fmt::format("{} is in the weights, and the model has no place for it", name));
  take_checkpoint();
  expect_one_run();
  for (const auto& [key, value] : summary()) say(fmt::format("{:<11}{}", key, value));
}

void TrainingRun::train() {
  begin_ = Clock::now();
  for (; epoch_ < s_.epochs && !patience_ended(); ++epoch_, at_ = 0, epoch_score_ = {}) {
    const std::vector<std::size_t> order =
        program::shuffled(train_.samples.size(), s_.seed, static_cast<std::uint64_t>(epoch_));
    while (at_ < order.size()) {
      const Clock::time_point before = Clock::now();
      update(order);
      update_seconds_.push_back(seconds_since(before));
      progress();
      if (s_.every > 0 && std::ssize(curve_) % s_.every == 0) save_checkpoint();
      if (signal_ != 0) {
        save_checkpoint();
        throw EndedBySignal{signal_};
      }
    }
    end_epoch();
  }
  save_checkpoint();
}

json TrainingRun::finish() {
  if (!best_.empty()) {
    program::TrainerState state = trainer_->state();
    state.parameters = best_;
    trainer_->set_state(state);
  }
  json j{{"schema", "assay-train/1"}, {"device", device_.description()}, {"epochs", epoch_}};
  j["updates"] = trainer_->steps(), j["skipped"] = trainer_->skipped();
  if (!curve_.empty()) j["loss"] = curve_.back().loss, j["norm"] = curve_.back().norm;
  if (!held_out_.samples.empty()) j["held_out"] = judge_held_out();
  for (const auto& [key, value] : summary()) j["summary"][key] = value;
  if (!team_.speaks()) return j;
  save_model();
  const std::string title = fmt::format("Training of {}", fs::path(o_.config).filename().string());
  files::write(s_.output / "curve.csv", curve_csv(curve_));
  files::write(s_.output / "curve.html", curve_html(curve_, title, summary()));
  j["output"] = s_.output.string();
  return j;
}

json TrainingRun::figures() const {
  const double seconds = seconds_since(begin_);
  json j{{"seconds", seconds}, {"tokens_a_second", static_cast<double>(tokens_) / seconds}};
  if (std::ssize(update_seconds_) > kFirst)
    j["median_update_seconds"] = falsify::percentile({update_seconds_.begin() + kFirst, update_seconds_.end()}, 0.5);
  if (o_.every > 0)
    j["checked"] = {{"steps", checked_.steps}, {"elements", checked_.elements}, {"worst", checked_.worst}};
  return j;
}

void TrainingRun::end_line() {
  if (open_line_) fmt::print(stderr, "\r\x1b[K");
  open_line_ = false;
}

std::vector<std::pair<std::string, std::string>> TrainingRun::summary() const {
  const program::TransformerConfig& t = s_.classifier.model;
  const program::Program& p = trainer_->session().program();
  std::vector<std::string_view> on;
  for (const program::Projection projection : t.adapters.on) on.push_back(name(projection));
  const Index head = (t.hidden + 1) * s_.classifier.classes, cut = train_.cut + held_out_.cut,
              lost = train_.tokens_lost + held_out_.tokens_lost;
  std::vector<std::pair<std::string, std::string>> all;
  if (team_.size() > 1) all.emplace_back("ranks", ranks_text());
  all.insert(all.end(),
             {{"device", device_.description()},
              {"model",
               fmt::format("{} layers, hidden {}, {}, weights {}", t.layers, t.hidden, name(t.weights),
                           s_.model.weights ? s_.model.weights->string() : fmt::format("random by seed {}", s_.seed))},
              {"tokenizer", tokenizer_ ? fmt::format("BPE ({})", tokenizer_->vocabulary()) : "bytes (256)"},
              {"adapters", on.empty() ? "none"
                                      : fmt::format("rank {}, alpha {} on {}", t.adapters.rank, t.adapters.alpha,
                                                    fmt::join(on, ", "))},
              {"classifier", fmt::format("{} -> {} ({} parameters)", t.hidden, s_.classifier.classes, head)},
              {"trainable", fmt::format("{} of {} parameters", parameter_count(p, true), parameter_count(p))},
              {"corpus", fmt::format("{} samples, {} held out", train_.samples.size(), held_out_.samples.size())},
              {"cut", fmt::format("{} samples at {} tokens; {} tokens left out", cut, s_.options.length, lost)}});
  return all;
}

void TrainingRun::say(const std::string& line) {
  if (o_.quiet || o_.json || !team_.speaks()) return;
  end_line();
  fmt::print(stderr, "{}\n", line);
}

void TrainingRun::make_trainer() {
  KernelOfSteps kernel(o_.kernel, device_, fmt::format("say its backend in {}", o_.config));
  program::SessionOptions options;
  options.choose = std::ref(kernel);
  options.check = falsify::steps_within_bounds(checked_, s_.seed);
  try {
    trainer_ = std::make_unique<Trainer>(s_.classifier, s_.options, device_, options);
  } catch (const falsify::WrongStep& wrong) {
    throw WrongStep{wrong.what()};
  }
  if (s_.backend == "cuda" && team_.size() > 1) link_ = program::link_of_gpus(team_.ranks());
  all_reduce_.emplace(team_.ranks(), *trainer_, link_.get());
  kernel.expect_taken(trainer_->sessions(), "training", "name a kernel of an operation that it has");
  trainer_->set_runner([this](std::string_view name, Session& session) {
    try {
      session.run(checking_ ? program::Check::steps : program::Check::none);
    } catch (const falsify::WrongStep& wrong) {
      throw WrongStep{fmt::format("update {}, {}: {}", curve_.size() + 1, name, wrong.what())};
    }
  });
}

void TrainingRun::update(const std::vector<std::size_t>& order) {
  checking_ = o_.every > 0 && (std::ssize(curve_) + 1) % o_.every == 0;
  // A rank has whole runs, so that their results are those of a process that is alone.
  const std::size_t begin = at_, each = static_cast<std::size_t>(s_.options.batch),
                    end = std::min(order.size(), begin + each * static_cast<std::size_t>(s_.micro_batches));
  const auto [first, last] = part_of((end - begin + each - 1) / each, team_.ranks());
  std::vector<Judgement> own;
  for (std::size_t run = first; run < last; ++run) {
    std::vector<Sample> batch;
    for (std::size_t i = begin + run * each; i < std::min(end, begin + (run + 1) * each); ++i)
      batch.push_back(train_.samples[order[i]]);
    for (Judgement& j : trainer_->accumulate(batch)) own.push_back(std::move(j));
  }
  Score score;
  for (const Judgement& j : joined(own)) {
    const Sample& sample = train_.samples[order[at_++]];
    score.add(j, sample), epoch_score_.add(j, sample);
    tokens_ += std::ssize(sample.tokens);
  }
  (*all_reduce_)();
  const Index next = trainer_->steps() + 1;
  const double lr = s_.options.lr * (next < s_.warmup ? static_cast<double>(next) / static_cast<double>(s_.warmup) : 1);
  trainer_->set_lr(lr);
  const program::Update done = trainer_->apply();
  checking_ = false;
  agree(done);
  if (done.skipped) say(fmt::format("update {} is skipped: its gradient is not finite", curve_.size() + 1));
  curve_.push_back({epoch_ + 1, std::ssize(curve_) + 1, score.samples, lr, score.mean(), score.accuracy(), done.norm});
  ++updates_;
}

void TrainingRun::agree(const program::Update& done) {
  signal_ = caught_signal();
  if (team_.size() == 1) return;
  const std::vector<std::string> all = team_.exchange(std::string(1, static_cast<char>(signal_)));
  for (const std::string& signal : all) signal_ = std::max<int>(signal_, signal[0]);
  team_.expect_same(fmt::format("{:a} {}", done.norm, done.samples), "the update has another norm than that of rank 0",
                    "give all ranks the same kind of device");
}

void TrainingRun::expect_same_parameters() {
  if (team_.size() == 1) return;
  const std::vector<float> now = trainer_->state().parameters;
  team_.expect_same(sha256({reinterpret_cast<const char*>(now.data()), now.size() * sizeof(float)}),
                    fmt::format("behind update {} its parameters are not those of rank 0", curve_.size()),
                    "give all ranks the same kind of device");
}

void TrainingRun::expect_one_run() {
  if (team_.size() == 1) return;
  std::string sources;
  for (const BuiltFile& file : built_from()) sources.append(file.path).append(file.digest);
  json own = identity_;
  own["build"] = sha256(sources + std::string(kBuild)), own["--check"] = o_.every, own["--resume"] = o_.resume;
  own["training.epochs"] = s_.epochs, own["training.patience"] = s_.patience;
  own["checkpoint"] = {epoch_, at_, curve_.size()};
  const std::vector<std::string> all = team_.exchange(own.dump());
  const json of_first = json::parse(all[0]);
  for (std::size_t r = 1; r < all.size(); ++r) {
    const json theirs = json::parse(all[r]);
    for (const auto& [key, value] : of_first.items())
      if (theirs.value(key, json()) != value)
        throw InputError(fmt::format("rank {}", r), fmt::format("has another {} than rank 0", key),
                         "start all ranks with the same program, configuration and files");
  }
  expect_same_parameters();
}

std::string TrainingRun::ranks_text() const {
  const Index idle = team_.size() - s_.micro_batches;
  std::string text = fmt::format("{}; each computes whole runs of {} samples", team_.size(), s_.options.batch);
  if (s_.backend == "cuda") text += link_ ? ", and NCCL moves gradients" : ", and gradients pass through the host";
  if (idle > 0)
    text += fmt::format("; {} of them are idle: an update is {} runs (micro_batches)", idle, s_.micro_batches);
  return text;
}

std::vector<Judgement> TrainingRun::joined(const std::vector<Judgement>& own) {
  if (team_.size() == 1) return own;
  std::vector<Judgement> all;
  for (const std::string& bytes : team_.exchange(to_bytes(own)))
    append_from(bytes, static_cast<std::size_t>(s_.classifier.classes), all);
  return all;
}

std::vector<Judgement> TrainingRun::evaluate(const std::vector<Sample>& samples) {
  const std::size_t each = static_cast<std::size_t>(s_.options.batch);
  const auto [first, last] = part_of((samples.size() + each - 1) / each, team_.ranks());
  const std::size_t begin = std::min(samples.size(), first * each), end = std::min(samples.size(), last * each);
  return joined(trainer_->evaluate(std::span(samples).subspan(begin, end - begin)));
}

void TrainingRun::end_epoch() {
  expect_same_parameters();
  CurveRow& row = curve_.back();
  std::string line = fmt::format("epoch {}/{}  updates {}  loss {:.4f}  accuracy {:.4f}", epoch_ + 1, s_.epochs,
                                 curve_.size(), epoch_score_.mean(), epoch_score_.accuracy());
  if (!held_out_.samples.empty()) {
    Score score;
    const std::vector<Judgement> judged = evaluate(held_out_.samples);
    for (std::size_t i = 0; i < judged.size(); ++i) score.add(judged[i], held_out_.samples[i]);
    row.held_out_loss = score.mean(), row.held_out_accuracy = score.accuracy();
    line += fmt::format("  held out: loss {:.4f}  accuracy {:.4f}", row.held_out_loss, row.held_out_accuracy);
    if (s_.patience > 0) {
      ++epochs_since_best_;
      if (row.held_out_loss < best_loss_)
        best_loss_ = row.held_out_loss, best_ = trainer_->state().parameters, epochs_since_best_ = 0;
    }
  }
  say(line);
  if (patience_ended()) say(fmt::format("no lower loss on what is held out for {} epochs: training ends", s_.patience));
  if (s_.checkpoints.empty() || s_.every > 0) return;
  ++epoch_, at_ = 0;
  const Score kept = std::exchange(epoch_score_, {});
  save_checkpoint();
  --epoch_, epoch_score_ = kept;
}

void TrainingRun::progress() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (o_.quiet || o_.json || !team_.speaks() || (!terminal && seconds_since(last_line_) < 10)) return;
  last_line_ = Clock::now();
  const CurveRow& row = curve_.back();
  const double seconds = seconds_since(begin_);
  const Index each = s_.options.batch * s_.micro_batches,
              left = s_.epochs * ((std::ssize(train_.samples) + each - 1) / each) - std::ssize(curve_);
  const std::string line = fmt::format(
      "epoch {}/{}  update {}  loss {:.4f}  accuracy {:.3f}  norm {:.3g}  {:.0f} tokens/s  about {} left", row.epoch,
      s_.epochs, row.step, row.loss, row.accuracy, row.norm, static_cast<double>(tokens_) / seconds,
      duration_text(seconds / static_cast<double>(updates_) * static_cast<double>(left)));
  if (!terminal) return say(line);
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
  open_line_ = true;
}

void TrainingRun::save_checkpoint() {
  if (s_.checkpoints.empty() || !team_.speaks()) return;
  const json run{{"identity", identity_},
                 {"epoch", epoch_},
                 {"at", at_},
                 {"curve", to_json(curve_)},
                 {"best_loss", best_loss_ < INFINITY ? json(best_loss_) : json()},
                 {"since_best", epochs_since_best_},
                 {"score", {epoch_score_.loss, epoch_score_.right, epoch_score_.samples}}};
  program::write(checkpoint(), {run.dump(), trainer_->state(), best_});
}

void TrainingRun::take_checkpoint() {
  identity_ = identity(s_);
  identity_["--kernel"] = o_.kernel;
  if (s_.checkpoints.empty()) {
    if (o_.resume)
      throw InputError("--resume", fmt::format("{} names no folder of checkpoints", o_.config),
                       "add 'checkpoints: {folder: ...}'");
    return;
  }
  if (!fs::exists(checkpoint())) {
    if (o_.resume) say(fmt::format("{} is not there: the run begins at its beginning", checkpoint().string()));
    return;
  }
  if (!o_.resume)
    throw InputError(checkpoint().string(), "is the checkpoint of an earlier run",
                     "go on with --resume, or name another folder");
  const program::Checkpoint read = program::read_checkpoint(checkpoint());
  const json run = json::parse(read.run);
  for (const auto& [key, value] : identity_.items())
    if (run["identity"].value(key, json()) != value)
      throw InputError(checkpoint().string(), fmt::format("was written under another {}", key),
                       "go on with the same settings, or name another folder");
  if (run["identity"].size() != identity_.size())
    throw InputError(checkpoint().string(), "was written under other settings", "name another folder");
  trainer_->set_state(read.trainer);
  epoch_ = run["epoch"], at_ = run["at"], curve_ = curve_from(run["curve"]), best_ = read.best;
  best_loss_ = run["best_loss"].is_null() ? INFINITY : run["best_loss"].get<double>();
  epochs_since_best_ = run["since_best"];
  epoch_score_ = {run["score"][0], run["score"][1], run["score"][2]};
  say(fmt::format("goes on behind update {} in epoch {}", curve_.size(), epoch_ + 1));
}

json TrainingRun::judge_held_out() {
  const std::vector<Judgement> judged = evaluate(held_out_.samples);
  Score score;
  for (std::size_t i = 0; i < judged.size(); ++i) score.add(judged[i], held_out_.samples[i]);
  if (team_.speaks()) files::write(s_.output / "probabilities.jsonl", judgement_lines(held_out_, judged, s_.classes));
  return {{"samples", score.samples}, {"loss", score.mean()}, {"accuracy", score.accuracy()}};
}

void TrainingRun::save_model() {
  const program::TransformerConfig& t = s_.classifier.model;
  const bool adapters_alone = !t.adapters.on.empty() && program::has_frozen_bases(trainer_->session().program());
  if (adapters_alone)
    save_adapters(trainer_->session(), t.adapters, s_.output / "adapter",
                  (s_.model.weights ? *s_.model.weights : s_.model.config).string());
  if (adapters_alone && !s_.model.merge) return;
  save_merged(trainer_->session(), t.adapters, s_.output / "model" / "model.safetensors");
  files::write(s_.output / "model" / "config.json", files::read(configuration_of(s_), ""));
}

}  // namespace assay::cli
