// `assay train`: trains a classifier on a corpus, holds its own steps to their bounds, and goes on from checkpoints.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/training_run.hpp"
#include "core/errors.hpp"
#include "system/interrupt.hpp"

namespace assay::cli {
namespace train_command {
namespace {

using nlohmann::json;

/// N of "1/N"; 0 of nothing.
Index parse_check(const std::string& text) {
  Index n = 0;
  if (text.empty()) return n;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("1/") || std::from_chars(text.data() + 2, end, n).ptr != end || n < 1)
    throw InputError("--check " + text, "is no share of the updates", "give 1/N for every N-th, as in --check 1/100");
  return n;
}

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

int fault(const TrainOptions& o, const std::string& sentence) {
  if (o.json) fmt::print("{}\n", json{{"schema", "assay-train/1"}, {"fault", sentence}}.dump(1));
  else fmt::print("wrong      {}\n", sentence);
  return kFalsified;
}

int run(const TrainOptions& o, Team& team) {
  std::optional<TrainingRun> training;
  try {
    json j;
    team.together([&] {
      training.emplace(o, read_train_settings(o.config), team);
      training->train();
      j = training->figures();
      training->end_line();
      j.update(training->finish());
    });
    if (!team.speaks()) return kNothingFalsified;
    if (o.json) fmt::print("{}\n", j.dump(1));
    else print(j);
    return kNothingFalsified;
  } catch (const WrongStep& wrong) {
    if (training) training->end_line();
    return fault(o, wrong.sentence);
  } catch (const RanksFailed& failed) {
    if (training) training->end_line();
    if (!team.speaks()) return failed.failure.code;
    if (failed.failure.code == kFalsified) return fault(o, failed.failure.sentence);
    fmt::print(stderr, "assay: {}\n", failed.failure.sentence);
    return failed.failure.code;
  } catch (const EndedBySignal& ended) {
    training->end_line();
    return 128 + ended.signal;
  }
}

int run(const TrainOptions& o) {
  // Never restored: mpirun sends SIGTERM to the ranks that are left, and each must still end with its own exit code.
  [[maybe_unused]] static const auto* const catching = new CatchSignals;
  try {
    Team team;
    return run(o, team);
  } catch (const program::RankLost& lost) {
    if (lost.speaks) fmt::print(stderr, "assay: {}; no rank goes on: start them again with --resume\n", lost.what());
    return kUnavailable;
  }
}

}  // namespace
}  // namespace train_command

Command add_train(Parser& parser) {
  using namespace train_command;
  struct Options : TrainOptions {
    std::string check;
  };
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("train", "Trains a classifier: text in, adapters or a model out, its own steps checked", *o);
  command.option("CONFIG", o->config, "YAML: model, classifier, corpus, training, backend, checkpoints, output")
      .required();
  command.flag("--resume", o->resume, "Goes on from the last checkpoint, with the bits of an uninterrupted run");
  command.option("--check", o->check,
                 "1/N: holds every step of every N-th update to its own bound; stops at the first wrong one");
  command.option("--kernel", o->kernel, "A kernel, or a mutant, for every step of its operation");
  return {command, [o] {
            o->every = parse_check(o->check);
            return run(*o);
          }};
}

}  // namespace assay::cli
