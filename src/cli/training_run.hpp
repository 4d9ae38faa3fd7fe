// A run of `assay train`, from its settings to the files that it leaves.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/learning_curve.hpp"
#include "cli/parser.hpp"
#include "cli/classifier_score.hpp"
#include "cli/team.hpp"
#include "cli/train_settings.hpp"
#include "falsify/program/check.hpp"
#include "program/model/safetensors.hpp"
#include "program/model/tokenizer.hpp"

namespace assay::cli {

struct TrainOptions : Output {
  std::string config, kernel;
  Index every = 0;      ///< every so many updates one is checked; 0: none
  bool resume = false;  ///< goes on from the last checkpoint
};

class TrainingRun {
 public:
  /// Reads corpus, weights and checkpoint: each rank its own copy, and all must be the same. Throws InputError for what
  /// does not fit, and what a Trainer throws.
  TrainingRun(const TrainOptions& options, TrainSettings settings, Team& team);

  /// Throws WrongStep, RanksFailed, and EndedBySignal after the checkpoint of a caught signal (CatchSignals).
  void train();
  /// Judges what is held out, and writes model, probabilities and curve: of the best epoch where training was patient,
  /// else of the last one. Returns the figures, which are the same after a run that was interrupted.
  nlohmann::json finish();
  /// Figures of this process: seconds, tokens a second, the median of an update behind the first two, steps that were
  /// checked.
  nlohmann::json figures() const;
  /// Clears the line of progress on a terminal.
  void end_line();

 private:
  std::vector<std::pair<std::string, std::string>> summary() const;
  bool patience_ended() const { return s_.patience > 0 && epochs_since_best_ >= s_.patience; }
  std::filesystem::path checkpoint() const { return s_.checkpoints / "checkpoint"; }
  void say(const std::string& line);
  void make_trainer();
  void update(const std::vector<std::size_t>& order);
  /// Ends all ranks with the signal that one has caught, and refuses an update that is not the same on all.
  void agree(const program::Update& done);
  void expect_same_parameters();
  /// Throws InputError on every rank unless all have the same program, settings, files and checkpoint.
  void expect_one_run();
  std::string ranks_text() const;
  /// The judgements of all ranks, one rank's behind those of the other.
  std::vector<program::Judgement> joined(const std::vector<program::Judgement>& own);
  std::vector<program::Judgement> evaluate(const std::vector<program::Sample>& samples);
  void end_epoch();
  void progress();
  void save_checkpoint();
  void take_checkpoint();
  nlohmann::json judge_held_out();
  void save_model();

  const TrainOptions& o_;
  Team& team_;
  const TrainSettings s_;
  Device& device_;
  std::optional<program::Tokenizer> tokenizer_;  ///< none: bytes
  program::Corpus train_, held_out_;
  std::optional<program::Weights> weights_;
  std::unique_ptr<program::Trainer> trainer_;
  std::unique_ptr<program::DeviceLink> link_;  ///< between GPUs
  std::optional<program::AllReduce> all_reduce_;
  nlohmann::json identity_;

  /// The place in the run. With the trainer's state a checkpoint holds all of it.
  Index epoch_ = 0;
  std::size_t at_ = 0;  ///< in the order of the epoch
  std::vector<CurveRow> curve_;
  Score epoch_score_;
  std::vector<float> best_;  ///< parameters of the best epoch
  double best_loss_ = INFINITY;
  Index epochs_since_best_ = 0;

  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now(), last_line_ = begin_;
  Index tokens_ = 0, updates_ = 0;      ///< of this process
  std::vector<double> update_seconds_;  ///< of each update of this process
  bool checking_ = false, open_line_ = false;
  int signal_ = 0;  ///< that any rank has caught
  falsify::CheckedRun checked_;
};

}  // namespace assay::cli
