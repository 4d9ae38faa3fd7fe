// `assay train`: trains a classifier on a corpus, holds its own steps to their bounds, and goes on from checkpoints.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "cli/commands.hpp"
#include "cli/learning_curve.hpp"
#include "cli/progress.hpp"
#include "cli/train_settings.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/program/check.hpp"
#include "program/model/adapters.hpp"
#include "program/model/checkpoint.hpp"
#include "program/model/corpus.hpp"
#include "program/model/parameters.hpp"
#include "system/interrupt.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace train_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using program::Corpus;
using program::Judgement;
using program::Sample;
using program::Session;
using program::Trainer;
using Clock = std::chrono::steady_clock;

struct Options : Output {
  std::string config, check, kernel;
  bool resume = false;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// N of "1/N"; 0 of nothing.
Index parse_check(const std::string& text) {
  Index n = 0;
  if (text.empty()) return n;
  const auto [last, error] = std::from_chars(text.data() + 2, text.data() + text.size(), n);
  if (!text.starts_with("1/") || text.size() < 3 || error != std::errc() || last != text.data() + text.size() || n < 1)
    throw InputError("--check " + text, "is no share of the updates", "give 1/N for every N-th, as in --check 1/100");
  return n;
}

/// A step of a checked update that is wrong.
struct WrongStep {
  std::string sentence;
};

/// Loss and right answers of judged samples.
struct Score {
  double loss = 0;
  Index right = 0, samples = 0;

  void add(const Judgement& j, const Sample& s) {
    bool correct = j.label == s.label;
    if (!s.labels.empty()) {
      correct = true;
      for (std::size_t c = 0; c < s.labels.size(); ++c) correct = correct && (j.logits[c] >= 0) == (s.labels[c] > 0.5F);
    }
    loss += j.loss, right += correct, ++samples;
  }
  double mean() const { return loss / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(samples); }
};

std::vector<double> probabilities(const Judgement& j, bool multi_label) {
  std::vector<double> p;
  const double most = *std::ranges::max_element(j.logits);
  for (const float x : j.logits) p.push_back(multi_label ? 1 / (1 + std::exp(-double{x})) : std::exp(x - most));
  const double sum = multi_label ? 1 : std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

/// Identifies a file of weights by its size, its beginning and its end.
std::string fingerprint(const fs::path& file) {
  constexpr std::uintmax_t kPiece = 1 << 20;
  const std::uintmax_t bytes = fs::file_size(file);
  std::string text = fmt::format("{} ", bytes);
  std::ifstream in(file, std::ios::binary);
  for (const std::uintmax_t at : {std::uintmax_t{0}, bytes - std::min(bytes, kPiece)}) {
    std::string piece(std::min(bytes, kPiece), ' ');
    in.seekg(static_cast<std::streamoff>(at)).read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text += piece;
  }
  return sha256(text);
}

class Run {
 public:
  Run(const Options& o, TrainSettings settings)
      : o_(o), s_(std::move(settings)), every_(parse_check(o.check)), device_(assay::device(backend_from(s_.backend))) {
    const program::CorpusOptions corpus{s_.classes, s_.classifier.multi_label, s_.options.length,
                                        s_.classifier.model.vocabulary};
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
    for (const auto& [key, value] : summary()) say(fmt::format("{:<11}{}", key, value));
  }

  void train() {
    begin_ = Clock::now();
    if (epoch_ >= s_.epochs || patience_ended()) return;
    for (; epoch_ < s_.epochs && !patience_ended(); ++epoch_, at_ = 0, epoch_score_ = {}) {
      const std::vector<std::size_t> order = program::shuffled(train_.samples.size(), s_.seed, epoch());
      while (at_ < order.size()) {
        update(order);
        progress();
        if (s_.every > 0 && std::ssize(curve_) % s_.every == 0) save_checkpoint();
        if (const int signal = caught_signal()) {
          save_checkpoint();
          throw EndedBySignal{signal};
        }
      }
      end_epoch();
    }
    if (!s_.checkpoints.empty()) save_checkpoint();
  }

  json finish() {
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
    save_model();
    const std::string title = fmt::format("Training of {}", fs::path(o_.config).filename().string());
    files::write(s_.output / "curve.csv", curve_csv(curve_));
    files::write(s_.output / "curve.html", curve_html(curve_, title, summary()));
    j["output"] = s_.output.string();
    return j;
  }

  json timing() const {
    const double seconds = seconds_since(begin_);
    json j{{"seconds", seconds}, {"tokens_a_second", static_cast<double>(tokens_) / seconds}};
    if (every_ > 0)
      j["checked"] = {{"steps", checked_.steps}, {"elements", checked_.elements}, {"worst", checked_.worst}};
    return j;
  }

  void end_line() {
    if (open_line_) fmt::print(stderr, "\r\x1b[K");
    open_line_ = false;
  }

  const std::vector<std::pair<std::string, std::string>> summary() const {
    const program::TransformerConfig& t = s_.classifier.model;
    const program::Program& p = trainer_->session().program();
    std::vector<std::string_view> on;
    for (const program::Projection projection : t.adapters.on) on.push_back(name(projection));
    const Index head = (t.hidden + 1) * s_.classifier.classes, cut = train_.cut + held_out_.cut,
                lost = train_.tokens_lost + held_out_.tokens_lost;
    return {{"device", device_.description()},
            {"model",
             fmt::format("{} layers, hidden {}, {}, weights {}", t.layers, t.hidden, name(t.weights),
                         s_.model.weights ? s_.model.weights->string() : fmt::format("random by seed {}", s_.seed))},
            {"tokenizer", "bytes (256)"},
            {"adapters", on.empty() ? "none"
                                    : fmt::format("rank {}, alpha {} on {}", t.adapters.rank, t.adapters.alpha,
                                                  fmt::join(on, ", "))},
            {"classifier", fmt::format("{} -> {} ({} parameters)", t.hidden, s_.classifier.classes, head)},
            {"trainable", fmt::format("{} of {} parameters", parameter_count(p, true), parameter_count(p))},
            {"corpus", fmt::format("{} samples, {} held out", train_.samples.size(), held_out_.samples.size())},
            {"cut", fmt::format("{} samples at {} tokens; {} tokens left out", cut, s_.options.length, lost)}};
  }

 private:
  std::uint64_t epoch() const { return static_cast<std::uint64_t>(epoch_); }
  bool patience_ended() const { return s_.patience > 0 && epochs_since_best_ >= s_.patience; }
  fs::path checkpoint() const { return s_.checkpoints / "checkpoint"; }
  Index updates_of_epoch() const {
    const Index each = s_.options.batch * s_.micro_batches;
    return (std::ssize(train_.samples) + each - 1) / each;
  }

  void say(const std::string& line) {
    if (o_.quiet || o_.json) return;
    end_line();
    fmt::print(stderr, "{}\n", line);
  }

  void make_trainer() {
    const Kernel* const kernel = o_.kernel.empty() ? nullptr : &assay::kernel(o_.kernel);
    if (kernel != nullptr && kernel->backend != device_.backend())
      throw InputError("--kernel " + o_.kernel, fmt::format("runs on {}", name(kernel->backend)),
                       fmt::format("say backend: {} in {}", name(kernel->backend), o_.config));
    bool chosen = false;
    program::SessionOptions options;
    options.choose = [&](const program::Step& step) {
      const bool its = kernel != nullptr && step.op->name == kernel->op;
      chosen = chosen || its;
      return its ? kernel : nullptr;
    };
    trainer_ = std::make_unique<Trainer>(s_.classifier, s_.options, device_, options);
    if (kernel != nullptr && !chosen)
      throw InputError("--kernel " + o_.kernel, fmt::format("no step of the training is {}", kernel->op),
                       "name a kernel of an operation that it has");
    trainer_->set_runner([this](std::string_view name, Session& session) {
      if (!checking_) return session.run();
      const falsify::CheckedRun run = falsify::check_steps(session, s_.seed);
      checked_.steps += run.steps, checked_.elements += run.elements,
          checked_.worst = std::max(checked_.worst, run.worst);
      if (run.fault)
        throw WrongStep{fmt::format("update {}, {}: {}: {}: {}", curve_.size() + 1, name, run.fault->label,
                                    run.fault->value, run.fault->finding.message)};
    });
  }

  void update(const std::vector<std::size_t>& order) {
    checking_ = every_ > 0 && (std::ssize(curve_) + 1) % every_ == 0;
    Score score;
    std::vector<Sample> batch;
    for (Index micro = 0; micro < s_.micro_batches && at_ < order.size(); ++micro) {
      batch.clear();
      for (; std::ssize(batch) < s_.options.batch && at_ < order.size(); ++at_) {
        batch.push_back(train_.samples[order[at_]]);
        tokens_ += std::ssize(batch.back().tokens);
      }
      const std::vector<Judgement> judged = trainer_->accumulate(batch);
      for (std::size_t i = 0; i < batch.size(); ++i)
        score.add(judged[i], batch[i]), epoch_score_.add(judged[i], batch[i]);
    }
    const Index next = trainer_->steps() + 1;
    const double lr =
        s_.options.lr * (next < s_.warmup ? static_cast<double>(next) / static_cast<double>(s_.warmup) : 1);
    trainer_->set_lr(lr);
    const program::Update done = trainer_->apply();
    checking_ = false;
    if (done.skipped) say(fmt::format("update {} is skipped: its gradient is not finite", curve_.size() + 1));
    curve_.push_back(
        {epoch_ + 1, std::ssize(curve_) + 1, score.samples, lr, score.mean(), score.accuracy(), done.norm});
    ++updates_;
  }

  void end_epoch() {
    CurveRow& row = curve_.back();
    std::string line = fmt::format("epoch {}/{}  updates {}  loss {:.4f}  accuracy {:.4f}", epoch_ + 1, s_.epochs,
                                   curve_.size(), epoch_score_.mean(), epoch_score_.accuracy());
    if (!held_out_.samples.empty()) {
      Score score;
      const std::vector<Judgement> judged = trainer_->evaluate(held_out_.samples);
      for (std::size_t i = 0; i < judged.size(); ++i) score.add(judged[i], held_out_.samples[i]);
      row.held_out_loss = score.mean(), row.held_out_accuracy = score.accuracy();
      line += fmt::format("  held out: loss {:.4f}  accuracy {:.4f}", row.held_out_loss, row.held_out_accuracy);
      if (s_.patience > 0) {
        ++epochs_since_best_;
        if (!(row.held_out_loss >= best_loss_)) {  // a NaN is no better than infinity
          if (std::isfinite(row.held_out_loss))
            best_loss_ = row.held_out_loss, best_ = trainer_->state().parameters, epochs_since_best_ = 0;
        }
      }
    }
    say(line);
    if (patience_ended())
      say(fmt::format("no lower loss on what is held out for {} epochs: training ends", s_.patience));
    if (s_.checkpoints.empty() || s_.every > 0) return;
    ++epoch_, at_ = 0;
    const Score kept = std::exchange(epoch_score_, {});
    save_checkpoint();
    --epoch_, epoch_score_ = kept;
  }

  /// On a terminal a line that rewrites itself; in a log a line now and then.
  void progress() {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (o_.quiet || o_.json || (!terminal && seconds_since(last_line_) < 10)) return;
    last_line_ = Clock::now();
    const CurveRow& row = curve_.back();
    const double seconds = seconds_since(begin_);
    const Index left = s_.epochs * updates_of_epoch() - std::ssize(curve_);
    const std::string line = fmt::format(
        "epoch {}/{}  update {}  loss {:.4f}  accuracy {:.3f}  norm {:.3g}  {:.0f} tokens/s  about {} left", row.epoch,
        s_.epochs, row.step, row.loss, row.accuracy, row.norm, static_cast<double>(tokens_) / seconds,
        duration_text(seconds / static_cast<double>(updates_) * static_cast<double>(left)));
    if (!terminal) return say(line);
    fmt::print(stderr, "\r\x1b[K{}", line);
    std::fflush(stderr);
    open_line_ = true;
  }

  /// All that decides the bits of an update.
  json identity() const {
    const program::TransformerConfig& t = s_.classifier.model;
    const fs::path config = fs::is_directory(s_.model.config) ? s_.model.config / "config.json" : s_.model.config;
    json j{{"model.config", sha256(files::read(config, ""))},
           {"model.base", name(t.weights)},
           {"model.trains", {t.trains, t.norms_train, t.head_trains}},
           {"model.lora.rank", t.adapters.rank},
           {"model.lora.alpha", t.adapters.alpha},
           {"classifier.labels", s_.classes},
           {"classifier.multi_label", s_.classifier.multi_label},
           {"classifier.weights", s_.classifier.class_weights},
           {"corpus.train", sha256(files::read(s_.corpus.train, ""))},
           {"corpus.held_out", s_.corpus.share},
           {"corpus.length", s_.options.length},
           {"training.batch", s_.options.batch},
           {"training.micro_batches", s_.micro_batches},
           {"training.lr", s_.options.lr},
           {"training.warmup", s_.warmup},
           {"training.weight_decay", s_.options.weight_decay},
           {"training.clip", s_.options.max_norm},
           {"training.seed", s_.seed},
           {"backend", s_.backend},
           {"--kernel", o_.kernel}};
    for (const program::Projection p : t.adapters.on) j["model.lora.targets"].push_back(name(p));
    if (!s_.corpus.held_out.empty()) j["corpus.held_out"] = sha256(files::read(s_.corpus.held_out, ""));
    if (!s_.model.adapters.empty()) j["model.lora.from"] = fingerprint(s_.model.adapters / "adapter_model.safetensors");
    if (weights_) {
      std::set<fs::path> shards;
      for (const auto& [name, entry] : weights_->entries()) shards.insert(entry.file);
      for (const fs::path& shard : shards) j["model.weights"].push_back(fingerprint(shard));
    }
    return j;
  }

  void save_checkpoint() {
    if (s_.checkpoints.empty()) return;
    const json run{{"identity", identity_},
                   {"epoch", epoch_},
                   {"at", at_},
                   {"curve", to_json(curve_)},
                   {"best_loss", best_loss_ < INFINITY ? json(best_loss_) : json()},
                   {"since_best", epochs_since_best_},
                   {"score", {epoch_score_.loss, epoch_score_.right, epoch_score_.samples}}};
    program::write(checkpoint(), {run.dump(), trainer_->state(), best_});
  }

  void take_checkpoint() {
    identity_ = identity();
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

  json judge_held_out() {
    const std::vector<Judgement> judged = trainer_->evaluate(held_out_.samples);
    const bool several = s_.classifier.multi_label;
    std::string lines;
    Score score;
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const Sample& sample = held_out_.samples[i];
      score.add(judged[i], sample);
      const std::vector<double> p = probabilities(judged[i], several);
      json line{{"line", held_out_.lines[i]}, {"loss", judged[i].loss}};
      for (std::size_t c = 0; c < p.size(); ++c) line["probabilities"][s_.classes[c]] = p[c];
      if (several) {
        line["labels"] = line["predicted"] = json::array();
        for (std::size_t c = 0; c < p.size(); ++c) {
          if (sample.labels[c] > 0.5F) line["labels"].push_back(s_.classes[c]);
          if (judged[i].logits[c] >= 0) line["predicted"].push_back(s_.classes[c]);
        }
      } else {
        line["label"] = s_.classes[static_cast<std::size_t>(sample.label)];
        line["predicted"] = s_.classes[static_cast<std::size_t>(judged[i].label)];
      }
      lines += line.dump() + "\n";
    }
    files::write(s_.output / "probabilities.jsonl", lines);
    return {{"samples", score.samples}, {"loss", score.mean()}, {"accuracy", score.accuracy()}};
  }

  void save_model() {
    const program::TransformerConfig& t = s_.classifier.model;
    const bool adapters_alone = !t.adapters.on.empty() && !t.trains;
    const fs::path config = fs::is_directory(s_.model.config) ? s_.model.config / "config.json" : s_.model.config;
    if (adapters_alone)
      save_adapters(trainer_->session(), t.adapters, s_.output / "adapter",
                    (s_.model.weights ? *s_.model.weights : s_.model.config).string());
    if (adapters_alone && !s_.model.merge) return;
    save_merged(trainer_->session(), t.adapters, weights_ ? &*weights_ : nullptr, s_.seed,
                s_.output / "model" / "model.safetensors");
    files::write(s_.output / "model" / "config.json", files::read(config, ""));
  }

  const Options& o_;
  const TrainSettings s_;
  const Index every_;
  Device& device_;
  Corpus train_, held_out_;
  std::optional<program::Weights> weights_;
  std::unique_ptr<Trainer> trainer_;
  json identity_;
  // The place in the run, all of which a checkpoint holds.
  Index epoch_ = 0;
  std::size_t at_ = 0;
  std::vector<CurveRow> curve_;
  Score epoch_score_;
  std::vector<float> best_;
  double best_loss_ = INFINITY;
  Index epochs_since_best_ = 0;
  // This process alone.
  Clock::time_point begin_ = Clock::now(), last_line_ = begin_;
  Index tokens_ = 0, updates_ = 0;
  bool checking_ = false, open_line_ = false;
  falsify::CheckedRun checked_;
};

void print(const json& j) {
  fmt::print("updates    {}, {} skipped, in {} epochs\n", j["updates"].dump(), j["skipped"].dump(), j["epochs"].dump());
  if (j.contains("held_out"))
    fmt::print("held out   {} samples: loss {:.4f}, accuracy {:.4f}\n", j["held_out"]["samples"].dump(),
               j["held_out"]["loss"].get<double>(), j["held_out"]["accuracy"].get<double>());
  fmt::print("time       {:.1f} s, {:.0f} tokens a second\n", j["seconds"].get<double>(),
             j["tokens_a_second"].get<double>());
  if (j.contains("checked"))
    fmt::print("checked    {} steps, {} elements: every one within its bound\n", j["checked"]["steps"].dump(),
               j["checked"]["elements"].dump());
  fmt::print("written    {}\n", j["output"].get<std::string>());
}

int run(const Options& o) {
  const CatchSignals catching;
  Run training(o, read_train_settings(o.config));
  try {
    training.train();
  } catch (const WrongStep& wrong) {
    training.end_line();
    if (o.json) fmt::print("{}\n", json{{"schema", "assay-train/1"}, {"fault", wrong.sentence}}.dump(1));
    else fmt::print("wrong      {}\n", wrong.sentence);
    return kFalsified;
  } catch (const EndedBySignal& ended) {
    training.end_line();
    return 128 + ended.signal;
  }
  json j = training.timing();
  training.end_line();
  j.update(training.finish());
  if (o.json) fmt::print("{}\n", j.dump(1));
  else print(j);
  return kNothingFalsified;
}

}  // namespace
}  // namespace train_command

Command add_train(Parser& parser) {
  using namespace train_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("train", "Trains a classifier: text in, adapters or a model out, its own steps checked", *o);
  command.option("CONFIG", o->config, "YAML: model, classifier, corpus, training, backend, checkpoints, output")
      .required();
  command.flag("--resume", o->resume, "Goes on from the last checkpoint, with the bits of an uninterrupted run");
  command.option("--check", o->check,
                 "1/N: holds every step of every N-th update to its own bound; stops at the first wrong one");
  command.option("--kernel", o->kernel, "A kernel, or a mutant, for every step of its operation");
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
