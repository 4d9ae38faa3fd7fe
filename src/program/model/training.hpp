// A training step of a classifier: gradients of batches, added up; the norm of all of them; one update.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "program/differentiate.hpp"
#include "program/model/transformer.hpp"
#include "program/session.hpp"

namespace assay::program {

struct ClassifierConfig {
  TransformerConfig model;
  Index classes = 2;
  bool multi_label = false;            ///< a loss for each class (binary cross-entropy), else one class a sample
  std::vector<float> class_weights{};  ///< of the loss, or of its positive part; empty: ones
};

struct TrainingOptions {
  Index batch = 8;     ///< samples of a run; fewer are filled up with samples that have no gradient
  Index length = 128;  ///< tokens of a sample at most
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  double max_norm = 1;         ///< of all gradients together; 0: they are not clipped
  bool compute_again = false;  ///< the backward pass computes each layer again from its input: less memory
};

/// Throws InputError with one sentence for the first option that no operation takes.
void check_options(const TrainingOptions& options);

struct Sample {
  std::vector<std::int32_t> tokens;
  std::int32_t label = 0;
  std::vector<float> labels{};  ///< of each class, 0 to 1, if there may be several
};

/// The programs of a step. They share parameters, gradients and AdamW's means by name (SessionOptions::shares).
struct StepPrograms {
  Program forward, gradients, norm, update;
  Value ids, lengths, starts, positions, targets, weights, logits, loss;  ///< of forward, and of gradients
  Value upstream;                                                         ///< of gradients
  std::vector<Value> leaf_gradients;  ///< of gradients: of each parameter that trains, in their order
  Value sums, norm_of_sum;            ///< of norm: all gradients
  Value parameters, m, v;             ///< of update
};
/// Throws InputError for classes or weights of classes that fit no loss, for options as check_options() does, and what
/// transformers throw.
StepPrograms step_programs(const ClassifierConfig& config, const TrainingOptions& options);

/// Samples as a program takes them: padded with token 0, and the batch filled up with samples of one token 0.
struct Batch {
  std::vector<std::int32_t> ids, lengths, targets;
  std::vector<float> labels;    ///< of every class, if there may be several
  std::vector<float> upstream;  ///< 1 for each sample, 0 for what fills the batch
};
/// Throws InputError for more samples than a batch takes, for a sample without tokens or with too many, and for ids,
/// labels or targets that do not exist.
Batch batch_of(const ClassifierConfig& config, const TrainingOptions& options, std::span<const Sample> samples);

/// The model's judgement of a sample.
struct Judgement {
  double loss = 0;
  Index label = 0;  ///< the most likely class, the first of several; -1 if a logit is NaN
  std::vector<float> logits;
};

/// The result of an update.
struct Update {
  Index samples = 0;     ///< over which gradients were averaged
  double norm = 0;       ///< of the mean gradient, before it was clipped
  bool skipped = false;  ///< a gradient was not finite: nothing has changed but the gradients, which are zero again
};

/// Gradients that have added up, and of how many samples.
struct Gradients {
  std::vector<float> sums;  ///< of all parameters that train, in the order of their storage
  Index samples = 0;
};

/// Everything that an update changes.
struct TrainerState {
  std::vector<float> parameters, m, v;  ///< of all parameters that train, in the order of their storage
  Index steps = 0, skipped = 0;
};

/// Programs: gradients of a batch; its forward pass alone; the norm of what has added up; the update. They share
/// parameters, gradients and AdamW's means. Between gradients and update the host reads one number, the norm.
class Trainer {
 public:
  /// Reserves everything, and allocates nothing later. Throws what a Session throws; Unavailable, before the first
  /// allocation, where the programs do not fit together.
  Trainer(const ClassifierConfig& config, const TrainingOptions& options, Device& device,
          const SessionOptions& session = {});
  /// With programs that step_programs() returned, or altered ones.
  Trainer(const ClassifierConfig& config, const TrainingOptions& options, StepPrograms programs, Device& device,
          const SessionOptions& session);

  /// Its parameters are set by initialize(), load() and set_parameter().
  Session& session() { return *gradients_; }
  /// Of gradients, forward pass, norm and update.
  std::array<const Session*, 4> sessions() const {
    return {gradients_.get(), forward_.get(), norm_.get(), update_.get()};
  }

  /// Adds the gradients of at most `batch` samples. Throws what batch_of() throws, before anything changes.
  std::vector<Judgement> accumulate(std::span<const Sample> samples);
  /// Returns or replaces the gradients added up so far, such as by the sum over several trainers. Setting throws
  /// InputError, before anything changes, for another number of elements.
  Gradients gradients();
  void set_gradients(const Gradients& gradients);
  /// The sums in the device's memory, where something else may add to them; and of how many samples they are then.
  std::span<float> gradients_on_device() const;
  void set_samples(Index samples) { samples_ = samples; }
  Index samples() const { return samples_; }
  /// Averages what has added up, clips it, takes one step and clears the gradients. Without samples nothing happens.
  Update apply();
  /// Judges samples; gradients and parameters stay.
  std::vector<Judgement> evaluate(std::span<const Sample> samples);

  double lr() const { return options_.lr; }
  /// 0: an update changes AdamW's means alone.
  void set_lr(double lr);
  Index steps() const { return steps_; }
  Index skipped() const { return skipped_; }

  /// A trainer in this state goes on with the same bits. Only between apply() and accumulate(). Setting throws
  /// InputError, before anything changes, for another number of parameters.
  TrainerState state();
  void set_state(const TrainerState& state);

  /// Runs the programs of a step, "gradients", "norm" and "update", in place of Session::run().
  using Runner = std::function<void(std::string_view name, Session& session)>;
  void set_runner(Runner runner) { runner_ = std::move(runner); }

 private:
  void set_constants(Session& session) const;
  void set_batch(Session& session, const Batch& batch) const;
  std::vector<Judgement> judgements(Session& session, std::size_t samples) const;

  ClassifierConfig config_;
  TrainingOptions options_;
  StepPrograms of_;  ///< values alone: sessions own the programs
  std::unique_ptr<Session> gradients_, forward_, norm_, update_;
  Runner runner_ = [](std::string_view, Session& session) { session.run(); };
  Index samples_ = 0, steps_ = 0, skipped_ = 0;
};

}  // namespace assay::program
