#include "cli/train_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "contract/reader.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/adapters.hpp"
#include "program/model/configuration.hpp"
#include "program/model/corpus.hpp"
#include "program/model/safetensors.hpp"
#include "runtime/registry.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace train_settings {
namespace {

namespace fs = std::filesystem;
using contract::Fields;
using contract::Node;
using program::Projection;

constexpr Index kMost = 1 << 30;

/// Reads a key into what it sets, if the file has it.
class Reader {
 public:
  Reader(const Node& map, std::initializer_list<std::string_view> known, fs::path folder)
      : fields_(map, known), folder_(std::move(folder)) {}

  const Node* find(std::string_view key) const { return fields_.find(key); }
  const Node& require(std::string_view key) const { return fields_.require(key); }
  void take(std::string_view key, bool& to) const {
    if (const Node* n = find(key)) to = n->boolean();
  }
  void take(std::string_view key, Index& to, Index low = 0) const {
    if (const Node* n = find(key)) to = n->integer(low, kMost);
  }
  void take(std::string_view key, fs::path& to) const {
    if (const Node* n = find(key)) to = folder_ / n->text().value;
  }
  void take(std::string_view key, double& to, double low, double high) const {
    const Node* const n = find(key);
    if (n == nullptr) return;
    to = n->number();
    if (!(low <= to && to <= high))
      n->fail(fmt::format("'{}' is {}", key, n->text().value), fmt::format("write a number from {} to {}", low, high));
  }

 private:
  Fields fields_;
  fs::path folder_;
};

const ParamInfo& adamw(std::string_view name) {
  return *std::ranges::find(operation("adamw_step").params, name, &ParamInfo::name);
}

program::Adapters adapters_of(const Node& node, TrainSettings& s, const fs::path& folder) {
  program::Adapters a;
  const Reader r(node, {"rank", "alpha", "targets", "from", "merge"}, folder);
  r.take("merge", s.model.merge);
  if (r.find("from") != nullptr) {
    for (const char* key : {"rank", "alpha", "targets"})
      if (const Node* n = r.find(key)) n->fail(fmt::format("'{}' stands beside 'from'", key), "keep one of the two");
    r.take("from", s.model.adapters);
    return program::read_adapters(s.model.adapters);
  }
  a.on = {Projection::q, Projection::v};
  r.take("rank", a.rank, 1);
  r.take("alpha", a.alpha, 0.0625, 8192);
  if (const Node* targets = r.find("targets")) {
    a.on.clear();
    for (const Node& target : targets->items()) {
      std::vector<std::string_view> names;
      for (const Projection p : program::kProjections) {
        names.push_back(name(p));
        if (target.text().value == name(p)) a.on.insert(p);
      }
      if (std::ranges::find(names, target.text().value) == names.end())
        target.fail(fmt::format("'{}' is no projection", target.text().value),
                    contract::suggestion(target.text().value, names));
    }
  }
  return a;
}

void read_model(const Node& node, TrainSettings& s, const fs::path& folder) {
  const Reader r(node, {"config", "weights", "base", "trains", "norms", "head", "lora"}, folder);
  s.model.config = folder / r.require("config").text().value;
  program::TransformerConfig& t = s.classifier.model = program::read_configuration(s.model.config);
  if (const Node* weights = r.find("weights")) {
    if (weights->text().value != "random") s.model.weights = folder / weights->text().value;
  } else {
    s.model.weights = fs::is_directory(s.model.config) ? s.model.config : s.model.config.parent_path();
  }
  const Node* const lora = r.find("lora");
  t.trains = lora == nullptr;
  bool norms = false, head = true;
  if (const Node* base = r.find("base")) {
    using enum program::WeightFormat;
    const std::string format = base->one_of({"f32", "nf4", "f16", "bf16"}).value;
    t.weights = format == "nf4" ? nf4 : format == "f16" ? f16 : format == "bf16" ? bf16 : f32;
    if (lora == nullptr && t.weights != f32) base->fail(format + " does not train", "add 'lora: {rank: 8, alpha: 16}'");
  }
  r.take("norms", norms), r.take("head", head);
  t.trained.clear();
  if (head) t.trained.emplace_back("classifier.*");
  if (norms) t.trained.emplace_back("*norm.weight");
  if (const Node* trains = r.find("trains"); trains != nullptr && trains->is_list()) {
    t.trains = false;
    for (const Node& name : trains->items()) t.trained.push_back(name.text().value);
  } else if (trains != nullptr) {
    t.trains = trains->boolean();
    if (t.trains && t.weights != program::WeightFormat::f32)
      trains->fail(fmt::format("{} does not train", name(t.weights)), "say trains: false");
  }
  if (const Node* node = r.find("norms"); node != nullptr && t.trains && !norms)
    node->fail("norms train with the rest of the base", "say trains: false");
  if (lora != nullptr) t.adapters = adapters_of(*lora, s, folder);
}

void read_classifier(const Node& node, TrainSettings& s, const fs::path& folder) {
  const Reader r(node, {"labels", "multi_label", "weights"}, folder);
  const Node& labels = r.require("labels");
  for (const Node& label : labels.items()) {
    if (std::ranges::find(s.classes, label.text().value) != s.classes.end())
      label.fail(fmt::format("'{}' is given twice", label.text().value), "keep one");
    s.classes.push_back(label.text().value);
  }
  if (s.classes.size() < 2) labels.fail("'labels' has one class", "give two or more");
  r.take("multi_label", s.classifier.multi_label);
  if (const Node* weights = r.find("weights")) {
    for (const Node& w : weights->items()) s.classifier.class_weights.push_back(static_cast<float>(w.number()));
    if (s.classifier.class_weights.size() != s.classes.size())
      weights->fail(fmt::format("'weights' has {} for {} classes", weights->items().size(), s.classes.size()),
                    "give one for each");
  }
  s.classifier.classes = std::ssize(s.classes);
}

void read_corpus_of(const Node& node, TrainSettings& s, const fs::path& folder) {
  const Reader r(node, {"train", "held_out", "length", "tokenizer"}, folder);
  r.require("train");
  r.take("train", s.corpus.train);
  r.take("length", s.options.length, 1);
  if (const Node* tokenizer = r.find("tokenizer"); tokenizer != nullptr && tokenizer->text().value != "bytes")
    r.take("tokenizer", s.corpus.tokenizer);
  const Node* const out = r.find("held_out");
  if (out == nullptr) return;
  const std::string text = out->text().value;
  if (text.find_first_not_of("0123456789.eE+-") == std::string::npos)
    r.take("held_out", s.corpus.share, 0, std::nexttoward(1.0, 0.0L));
  else r.take("held_out", s.corpus.held_out);
}

void read_training(const Node& node, TrainSettings& s, const fs::path& folder) {
  const Reader r(
      node,
      {"epochs", "batch", "micro_batches", "lr", "warmup", "weight_decay", "clip", "seed", "patience", "compute_again"},
      folder);
  r.take("epochs", s.epochs, 1), r.take("batch", s.options.batch, 1), r.take("micro_batches", s.micro_batches, 1);
  r.take("warmup", s.warmup), r.take("patience", s.patience), r.take("compute_again", s.options.compute_again);
  r.take("lr", s.options.lr, adamw("lr").min, adamw("lr").max);
  r.take("weight_decay", s.options.weight_decay, adamw("weight_decay").min, adamw("weight_decay").max);
  r.take("clip", s.options.max_norm, 0, std::numeric_limits<float>::max());
  if (const Node* seed = r.find("seed"))
    s.seed = static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<Index>::max()));
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

}  // namespace
}  // namespace train_settings

TrainSettings read_train_settings(const std::filesystem::path& file) {
  using namespace train_settings;
  const Node all = Node::parse(contract::read_file(file.string(), file.string(), "a configuration"), file.string(),
                               "the configuration");
  const fs::path folder = file.parent_path();
  const Reader r(all, {"model", "classifier", "corpus", "training", "backend", "checkpoints", "output"}, folder);
  TrainSettings s;
  s.options.lr = 1e-3;
  read_model(r.require("model"), s, folder);
  read_classifier(r.require("classifier"), s, folder);
  read_corpus_of(r.require("corpus"), s, folder);
  if (const Node* training = r.find("training")) read_training(*training, s, folder);
  if (const Node* backend = r.find("backend"))
    s.backend = backend->one_of({"cpu", "cuda-host", "vulkan", "cuda"}).value;
  if (const Node* checkpoints = r.find("checkpoints")) {
    const Reader c(*checkpoints, {"folder", "every"}, folder);
    c.require("folder");
    c.take("folder", s.checkpoints), c.take("every", s.every, 1);
  }
  r.require("output");
  r.take("output", s.output);
  return s;
}

std::filesystem::path configuration_of(const TrainSettings& s) {
  return std::filesystem::is_directory(s.model.config) ? s.model.config / "config.json" : s.model.config;
}

nlohmann::json identity(const TrainSettings& s) {
  using namespace train_settings;
  const program::TransformerConfig& t = s.classifier.model;
  nlohmann::json j{
      {"model.config", sha256(files::read(configuration_of(s), ""))},
      {"model.base", name(t.weights)},
      {"model.trains", {{"base", t.trains}, {"names", t.trained}}},
      {"model.lora.rank", t.adapters.rank},
      {"model.lora.alpha", t.adapters.alpha},
      {"classifier.labels", s.classes},
      {"classifier.multi_label", s.classifier.multi_label},
      {"classifier.weights", s.classifier.class_weights},
      {"corpus.train", sha256(files::read(s.corpus.train, ""))},
      {"corpus.held_out", s.corpus.share},
      {"corpus.length", s.options.length},
      {"training.batch", s.options.batch},
      {"training.micro_batches", s.micro_batches},
      {"training.lr", s.options.lr},
      {"training.warmup", s.warmup},
      {"training.weight_decay", s.options.weight_decay},
      {"training.clip", s.options.max_norm},
      {"training.seed", s.seed},
      {"backend", s.backend},
  };
  for (const program::Projection p : t.adapters.on) j["model.lora.targets"].push_back(name(p));
  if (!s.corpus.held_out.empty()) j["corpus.held_out"] = sha256(files::read(s.corpus.held_out, ""));
  if (!s.corpus.tokenizer.empty()) j["corpus.tokenizer"] = sha256(files::read(s.corpus.tokenizer, ""));
  if (!s.model.adapters.empty()) j["model.lora.from"] = fingerprint(s.model.adapters / "adapter_model.safetensors");
  if (s.model.weights) {
    const program::Weights weights(*s.model.weights);
    std::set<fs::path> shards;
    for (const auto& [name, entry] : weights.entries()) shards.insert(entry.file);
    for (const fs::path& shard : shards) j["model.weights"].push_back(fingerprint(shard));
  }
  return j;
}

}  // namespace assay::cli
