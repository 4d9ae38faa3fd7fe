#include "program/model/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// Throws unless the operation takes this number as that parameter.
void expect_in_contract(std::string_view field, double number, std::string_view op, std::string_view as) {
  const std::span<const ParamInfo> params = operation(op).params;
  const ParamInfo& p = *std::ranges::find(params, as, &ParamInfo::name);
  if (!(p.min <= number && number <= p.max))
    throw InputError(fmt::format("training: {}", field),
                     fmt::format("it is {}, and {} takes {} to {}", number, op, p.min, p.max),
                     "choose one in that range");
}

/// A long vector as a matrix: operations limit each dim.
Value as_matrix(Builder& b, Value v) {
  constexpr Index kColumns = 64;  // storages of parameters are multiples of it
  return b.reshape(v, {b.shape(v)[0] / kColumns, kColumns});
}

}  // namespace

void check_options(const TrainingOptions& o) {
  const auto expect_some = [](const char* field, Index count) {
    constexpr Index kMost = 1048576;  // of rows of every operation
    if (count < 1 || count > kMost)
      throw InputError(fmt::format("training: {}", field), fmt::format("it is {}", count),
                       fmt::format("give 1 to {}", kMost));
  };
  expect_some("batch", o.batch), expect_some("length", o.length);
  expect_in_contract("lr", o.lr, "adamw_step", "lr");
  expect_in_contract("beta1", o.beta1, "adamw_step", "beta1"),
      expect_in_contract("beta2", o.beta2, "adamw_step", "beta2");
  expect_in_contract("eps", o.eps, "adamw_step", "eps");
  expect_in_contract("weight_decay", o.weight_decay, "adamw_step", "weight_decay");
  if (o.max_norm != 0) expect_in_contract("max_norm", o.max_norm, "clip_grad_norm", "max_norm");
}

StepPrograms step_programs(const ClassifierConfig& config, const TrainingOptions& options) {
  if (config.classes < 2) throw InputError("classes", fmt::format("{}", config.classes), "have two or more");
  if (!config.class_weights.empty() && std::ssize(config.class_weights) != config.classes)
    throw InputError("class weights", fmt::format("{} for {} classes", config.class_weights.size(), config.classes),
                     "give one for each");
  for (const float weight : config.class_weights)
    if (!std::isfinite(weight) || weight < 0)
      throw InputError("class weights", fmt::format("one of them is {}", weight), "give finite numbers of 0 or more");
  check_options(options);
  StepPrograms all;
  Builder b;
  const Index rows = options.batch * options.length;
  const Sequences sequences = program::sequences(b, config.model, rows, options.batch);
  all.lengths = sequences.lengths, all.starts = sequences.starts, all.positions = sequences.positions;
  all.ids = b.input("ids", {rows}, DType::i32);
  all.logits = classifier(b, config.model, config.classes, all.ids, sequences);
  check_trained(config.model, b.program());
  all.weights = b.input("class weights", {config.classes});
  if (config.multi_label) {
    all.targets = b.input("targets", {options.batch, config.classes});
    all.loss = bce_with_logits(b, all.logits, all.targets, all.weights);
  } else {
    all.targets = b.input("targets", {options.batch}, DType::i32);
    all.loss = cross_entropy(b, all.logits, all.targets, all.weights, 2).loss;
  }
  b.output(all.logits), b.output(all.loss);
  all.forward = b.take();
  const Kept kept = inputs_of_layers(all.forward);
  Differentiated d = differentiate(all.forward, std::vector{all.loss}, {}, options.compute_again ? &kept : nullptr);
  all.upstream = d.upstream[0], all.leaf_gradients = d.gradients, all.gradients = std::move(d.program);
  const Index n = trained_elements(all.gradients);

  Builder norm;
  all.sums = norm.gradient(kGradients, {n});
  all.norm_of_sum = global_grad_norm(norm, all.sums);
  norm.output(all.norm_of_sum);
  all.norm = norm.take();

  Builder update;
  Value g = update.reshape(scale(update, as_matrix(update, update.gradient(kGradients, {n})), 1), {n});
  if (options.max_norm > 0) g = clip_grad_norm(update, g, options.max_norm, 0).g;
  const auto state = [&](const char* name) { return update.state(name, {n}); };
  all.parameters = state("parameters"), all.m = state("adamw.m"), all.v = state("adamw.v");
  adamw_step(update, all.parameters, all.m, all.v, g, options.lr, options.beta1, options.beta2, options.eps,
             options.weight_decay, 1, 0);
  all.update = update.take();
  return all;
}

Batch batch_of(const ClassifierConfig& config, const TrainingOptions& options, std::span<const Sample> samples) {
  if (std::ssize(samples) > options.batch)
    throw InputError("batch", fmt::format("{} samples, and a run takes {}", samples.size(), options.batch),
                     "add them up in several runs");
  const auto size = static_cast<std::size_t>(options.batch), length = static_cast<std::size_t>(options.length),
             classes = static_cast<std::size_t>(config.classes);
  Batch all;
  all.ids.resize(size * length), all.lengths.assign(size, 1), all.targets.resize(size), all.upstream.resize(size);
  all.labels.resize(config.multi_label ? size * classes : 0);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const Sample& sample = samples[s];
    const std::string where = fmt::format("sample {}", s);
    if (sample.tokens.empty() || sample.tokens.size() > length)
      throw InputError(where, fmt::format("it has {} tokens", sample.tokens.size()),
                       fmt::format("give 1 to {}", length));
    for (const std::int32_t id : sample.tokens)
      if (id < 0 || id >= config.model.vocabulary)
        throw InputError(where, fmt::format("token {} is beyond the vocabulary of {}", id, config.model.vocabulary),
                         "tokenize with the model's own tokenizer");
    if (config.multi_label && sample.labels.size() != classes)
      throw InputError(where, fmt::format("{} labels for {} classes", sample.labels.size(), classes),
                       "give 0 or 1 for each class");
    for (const float label : sample.labels)
      if (config.multi_label && !(0 <= label && label <= 1))
        throw InputError(where, fmt::format("the label of a class is {}", label), "give 0 to 1 for each class");
    if (!config.multi_label && (sample.label < 0 || sample.label >= config.classes))
      throw InputError(where, fmt::format("label {} of {} classes", sample.label, classes), "count classes from 0");
    std::ranges::copy(sample.tokens, all.ids.begin() + static_cast<std::ptrdiff_t>(s * length));
    if (config.multi_label)
      std::ranges::copy(sample.labels, all.labels.begin() + static_cast<std::ptrdiff_t>(s * classes));
    all.lengths[s] = static_cast<std::int32_t>(sample.tokens.size()), all.targets[s] = sample.label;
    all.upstream[s] = 1;
  }
  return all;
}

Trainer::Trainer(const ClassifierConfig& config, const TrainingOptions& options, Device& device,
                 const SessionOptions& session)
    : Trainer(config, options, step_programs(config, options), device, session) {}

Trainer::Trainer(const ClassifierConfig& config, const TrainingOptions& options, StepPrograms programs, Device& device,
                 const SessionOptions& session)
    : config_(config), options_(options), of_(std::move(programs)) {
  check_options(options_);
  expect_room(device, std::array<const Program*, 4>{&of_.gradients, &of_.forward, &of_.norm, &of_.update}, session);
  SessionOptions shared = session;
  const auto open = [&](Program& program) { return std::make_unique<Session>(std::move(program), device, shared); };
  gradients_ = open(of_.gradients);
  shared.shares = gradients_.get();
  forward_ = open(of_.forward), norm_ = open(of_.norm);
  shared.adjusted = {"scale", "adamw_step"};
  update_ = open(of_.update);
  set_constants(*gradients_), set_constants(*forward_);
}

void Trainer::set_constants(Session& session) const {
  std::vector<float> weights = config_.class_weights;
  weights.resize(static_cast<std::size_t>(config_.classes), 1);
  session.set(of_.weights, weights);
  session.set(of_.starts, std::vector<std::int32_t>(static_cast<std::size_t>(options_.batch), 0));
  if (!of_.positions) return;
  std::vector<std::int32_t> places(static_cast<std::size_t>(options_.batch * options_.length));
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<std::int32_t>(static_cast<Index>(i) % options_.length);
  session.set(of_.positions, places);
}

void Trainer::set_batch(Session& session, const Batch& batch) const {
  session.set(of_.ids, batch.ids);
  session.set(of_.lengths, batch.lengths);
  if (config_.multi_label) session.set(of_.targets, batch.labels);
  else session.set(of_.targets, batch.targets);
}

std::vector<Judgement> Trainer::judgements(Session& session, std::size_t samples) const {
  const std::vector<float> logits = session.get<float>(of_.logits), losses = session.get<float>(of_.loss);
  std::vector<Judgement> all;
  for (std::size_t s = 0; s < samples; ++s) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(s) * config_.classes;
    Judgement j{losses[s], 0, {first, first + config_.classes}};
    const bool all_numbers = std::ranges::none_of(j.logits, [](float logit) { return std::isnan(logit); });
    j.label = all_numbers ? std::ranges::max_element(j.logits) - j.logits.begin() : -1;
    all.push_back(std::move(j));
  }
  return all;
}

std::vector<Judgement> Trainer::accumulate(std::span<const Sample> samples) {
  const Batch batch = batch_of(config_, options_, samples);
  set_batch(*gradients_, batch);
  gradients_->set(of_.upstream, batch.upstream);
  runner_("gradients", *gradients_);
  samples_ += std::ssize(samples);
  return judgements(*gradients_, samples.size());
}

Gradients Trainer::gradients() { return {norm_->get<float>(of_.sums), samples_}; }

void Trainer::set_gradients(const Gradients& gradients) {
  const auto wanted = static_cast<std::size_t>(norm_->program()[of_.sums].shape.size());
  if (gradients.samples < 0)
    throw InputError("gradients", fmt::format("they are of {} samples", gradients.samples), "give 0 or more");
  if (gradients.sums.size() != wanted)
    throw InputError("gradients", fmt::format("{} elements for {} that train", gradients.sums.size(), wanted),
                     "take gradients of the same model");
  norm_->set(of_.sums, gradients.sums);
  samples_ = gradients.samples;
}

std::span<float> Trainer::gradients_on_device() const {
  const Tensor& sums = norm_->call(0).tensors[0];
  return {static_cast<float*>(sums.data), static_cast<std::size_t>(sums.shape.size())};
}

std::vector<Judgement> Trainer::evaluate(std::span<const Sample> samples) {
  std::vector<Judgement> all;
  const auto batch = static_cast<std::size_t>(options_.batch);
  for (std::size_t at = 0; at < samples.size(); at += batch) {
    const auto part = samples.subspan(at, std::min(samples.size() - at, batch));
    set_batch(*forward_, batch_of(config_, options_, part));
    forward_->run();
    for (Judgement& j : judgements(*forward_, part.size())) all.push_back(std::move(j));
  }
  return all;
}

Update Trainer::apply() {
  Update done{samples_};
  if (samples_ == 0) return done;
  runner_("norm", *norm_);
  const double sum = norm_->get<float>(of_.norm_of_sum)[0];
  done.norm = sum / static_cast<double>(samples_), done.skipped = !std::isfinite(sum);
  samples_ = 0;
  if (done.skipped) {
    ++skipped_;
  } else {
    update_->set_param("scale", "alpha", 1 / static_cast<double>(done.samples));
    update_->set_param("adamw_step", "step", static_cast<double>(steps_ + 1));
    runner_("update", *update_);
    ++steps_;
  }
  gradients_->clear_gradients();
  return done;
}

TrainerState Trainer::state() {
  if (samples_ != 0) throw std::logic_error("gradients have added up that no state holds");
  return {update_->get<float>(of_.parameters), update_->get<float>(of_.m), update_->get<float>(of_.v), steps_,
          skipped_};
}

void Trainer::set_state(const TrainerState& state) {
  const auto wanted = static_cast<std::size_t>(update_->program()[of_.parameters].shape.size());
  for (const std::vector<float>* all : {&state.parameters, &state.m, &state.v})
    if (all->size() != wanted)
      throw InputError("state", fmt::format("{} elements for {} that train", all->size(), wanted),
                       "take a state of the same model");
  if (state.steps < 0 || state.skipped < 0)
    throw InputError("state", fmt::format("{} steps, and {} skipped", state.steps, state.skipped), "give 0 or more");
  update_->set(of_.parameters, state.parameters), update_->set(of_.m, state.m), update_->set(of_.v, state.v);
  gradients_->clear_gradients();
  samples_ = 0, steps_ = state.steps, skipped_ = state.skipped;
}

void Trainer::set_lr(double lr) {
  expect_in_contract("lr", lr, "adamw_step", "lr");
  options_.lr = lr;
  update_->set_param("adamw_step", "lr", lr);
}

}  // namespace assay::program
