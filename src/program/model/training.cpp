#include "program/model/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/errors.hpp"
#include "program/operations.hpp"

namespace assay::program {
namespace {

constexpr const char* kGradients = "gradients of parameters";

/// Elements of the storage of all parameters that train.
Index trained_elements(const Program& program) {
  for (const Parameter& p : program.parameters)
    if (p.trainable) return program.storage_of(p.value).elements;
  return 0;
}

/// A long vector as a matrix: operations limit each dim.
Value as_matrix(Builder& b, Value v) {
  constexpr Index kColumns = 64;  // storages of parameters are multiples of it
  return b.reshape(v, {b.shape(v)[0] / kColumns, kColumns});
}

}  // namespace

Trainer::Trainer(const ClassifierConfig& config, const TrainingOptions& options, Device& device,
                 const SessionOptions& session)
    : config_(config), options_(options) {
  if (config.classes < 2) throw InputError("classes", fmt::format("{}", config.classes), "have two or more");
  if (!config.class_weights.empty() && std::ssize(config.class_weights) != config.classes)
    throw InputError("class weights", fmt::format("{} for {} classes", config.class_weights.size(), config.classes),
                     "give one for each");
  Builder b;
  const Index rows = options.batch * options.length;
  const Sequences all = sequences(b, config.model, rows, options.batch);
  lengths_ = all.lengths, starts_ = all.starts, positions_ = all.positions;
  ids_ = b.input("ids", {rows}, DType::i32);
  logits_ = classifier(b, config.model, config.classes, ids_, all);
  check_trained(config.model, b.program());
  weights_ = b.input("class weights", {config.classes});
  if (config.multi_label) {
    targets_ = b.input("targets", {options.batch, config.classes});
    loss_ = bce_with_logits(b, logits_, targets_, weights_);
  } else {
    targets_ = b.input("targets", {options.batch}, DType::i32);
    loss_ = cross_entropy(b, logits_, targets_, weights_, 2).loss;
  }
  b.output(logits_), b.output(loss_);
  const Kept kept = inputs_of_layers(b.program());
  const Differentiated d = differentiate(b.program(), std::vector{loss_}, {}, options.compute_again ? &kept : nullptr);
  upstream_ = d.upstream[0];
  gradients_ = std::make_unique<Session>(d.program, device, session);
  SessionOptions shared = session;
  shared.shares = gradients_.get();
  forward_ = std::make_unique<Session>(b.take(), device, shared);
  set_constants(*gradients_), set_constants(*forward_);
  const Index n = trained_elements(d.program);

  Builder norm;
  norm_value_ = global_grad_norm(norm, norm.gradient(kGradients, {n}));
  norm.output(norm_value_);
  norm_ = std::make_unique<Session>(norm.take(), device, shared);

  Builder update;
  Value g = update.reshape(scale(update, as_matrix(update, update.gradient(kGradients, {n})), 1), {n});
  if (options.max_norm > 0) g = clip_grad_norm(update, g, options.max_norm).g;
  const auto state = [&](const char* name) { return update.state(name, {n}); };
  parameters_ = state("parameters"), m_ = state("adamw.m"), v_ = state("adamw.v");
  adamw_step(update, parameters_, m_, v_, g, options.lr, options.beta1, options.beta2, options.eps,
             options.weight_decay, 1);
  update_ = std::make_unique<Session>(update.take(), device, shared);
}

void Trainer::set_constants(Session& session) const {
  std::vector<float> weights = config_.class_weights;
  weights.resize(static_cast<std::size_t>(config_.classes), 1);
  session.set(weights_, weights);
  session.set(starts_, std::vector<std::int32_t>(static_cast<std::size_t>(options_.batch), 0));
  if (!positions_) return;
  std::vector<std::int32_t> places(static_cast<std::size_t>(options_.batch * options_.length));
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<std::int32_t>(static_cast<Index>(i) % options_.length);
  session.set(positions_, places);
}

void Trainer::set_batch(Session& session, std::span<const Sample> samples) const {
  if (std::ssize(samples) > options_.batch)
    throw InputError("batch", fmt::format("{} samples, and a run takes {}", samples.size(), options_.batch),
                     "add them up in several runs");
  const auto batch = static_cast<std::size_t>(options_.batch), length = static_cast<std::size_t>(options_.length),
             classes = static_cast<std::size_t>(config_.classes);
  std::vector<std::int32_t> ids(batch * length), lengths(batch, 1), targets(batch);
  std::vector<float> labels(config_.multi_label ? batch * classes : 0);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const Sample& sample = samples[s];
    const std::string where = fmt::format("sample {}", s);
    if (sample.tokens.empty() || sample.tokens.size() > length)
      throw InputError(where, fmt::format("it has {} tokens", sample.tokens.size()),
                       fmt::format("give 1 to {}", length));
    for (const std::int32_t id : sample.tokens)
      if (id < 0 || id >= config_.model.vocabulary)
        throw InputError(where, fmt::format("token {} is beyond the vocabulary of {}", id, config_.model.vocabulary),
                         "tokenize with the model's own tokenizer");
    if (config_.multi_label && sample.labels.size() != classes)
      throw InputError(where, fmt::format("{} labels for {} classes", sample.labels.size(), classes),
                       "give 0 or 1 for each class");
    if (!config_.multi_label && (sample.label < 0 || sample.label >= config_.classes))
      throw InputError(where, fmt::format("label {} of {} classes", sample.label, classes), "count classes from 0");
    std::ranges::copy(sample.tokens, ids.begin() + static_cast<std::ptrdiff_t>(s * length));
    if (config_.multi_label)
      std::ranges::copy(sample.labels, labels.begin() + static_cast<std::ptrdiff_t>(s * classes));
    lengths[s] = static_cast<std::int32_t>(sample.tokens.size()), targets[s] = sample.label;
  }
  session.set(ids_, ids);
  session.set(lengths_, lengths);
  if (config_.multi_label) session.set(targets_, labels);
  else session.set(targets_, targets);
}

std::vector<Judgement> Trainer::judgements(Session& session, std::size_t samples) const {
  const std::vector<float> logits = session.get<float>(logits_), losses = session.get<float>(loss_);
  std::vector<Judgement> all;
  for (std::size_t s = 0; s < samples; ++s) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(s) * config_.classes;
    Judgement j{losses[s], 0, {first, first + config_.classes}};
    j.label = std::ranges::max_element(j.logits) - j.logits.begin();
    all.push_back(std::move(j));
  }
  return all;
}

std::vector<Judgement> Trainer::accumulate(std::span<const Sample> samples) {
  set_batch(*gradients_, samples);
  std::vector<float> upstream(static_cast<std::size_t>(options_.batch));
  std::fill_n(upstream.begin(), samples.size(), 1.0F);
  gradients_->set(upstream_, upstream);
  runner_("gradients", *gradients_);
  samples_ += std::ssize(samples);
  return judgements(*gradients_, samples.size());
}

std::vector<Judgement> Trainer::evaluate(std::span<const Sample> samples) {
  std::vector<Judgement> all;
  const auto batch = static_cast<std::size_t>(options_.batch);
  for (std::size_t at = 0; at < samples.size(); at += batch) {
    const auto part = samples.subspan(at, std::min(samples.size() - at, batch));
    set_batch(*forward_, part);
    forward_->run();
    for (Judgement& j : judgements(*forward_, part.size())) all.push_back(std::move(j));
  }
  return all;
}

Update Trainer::apply() {
  Update done{samples_};
  if (samples_ == 0) return done;
  runner_("norm", *norm_);
  const double sum = norm_->get<float>(norm_value_)[0];
  done.norm = sum / static_cast<double>(samples_), done.skipped = !std::isfinite(sum);
  samples_ = 0;
  if (done.skipped) {
    ++skipped_;
  } else {
    ++steps_;
    update_->set_param("scale", "alpha", 1 / static_cast<double>(done.samples));
    update_->set_param("adamw_step", "step", static_cast<double>(steps_));
    runner_("update", *update_);
  }
  gradients_->clear_gradients();
  return done;
}

TrainerState Trainer::state() {
  if (samples_ != 0) throw std::logic_error("gradients have added up that no state holds");
  return {update_->get<float>(parameters_), update_->get<float>(m_), update_->get<float>(v_), steps_, skipped_};
}

void Trainer::set_state(const TrainerState& state) {
  const auto wanted = static_cast<std::size_t>(update_->program()[parameters_].shape.size());
  for (const std::vector<float>* all : {&state.parameters, &state.m, &state.v})
    if (all->size() != wanted)
      throw InputError("state", fmt::format("{} elements for {} that train", all->size(), wanted),
                       "take a state of the same model");
  update_->set(parameters_, state.parameters), update_->set(m_, state.m), update_->set(v_, state.v);
  gradients_->clear_gradients();
  samples_ = 0, steps_ = state.steps, skipped_ = state.skipped;
}

void Trainer::set_lr(double lr) {
  if (!(lr >= 0)) throw InputError("lr", fmt::format("{}", lr), "give 0 or more");
  options_.lr = lr;
  update_->set_param("adamw_step", "lr", lr);
}

}  // namespace assay::program
