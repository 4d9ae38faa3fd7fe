// The configuration of `assay train`: a YAML file, strict: an unknown key is an error with its line.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/model/training.hpp"

namespace assay::cli {

/// Paths are relative to the folder of the file that names them.
struct TrainSettings {
  struct Model {
    std::filesystem::path config;                  ///< config.json, or the folder that holds it
    std::optional<std::filesystem::path> weights;  ///< none: random, by the seed
    std::filesystem::path adapters;                ///< a folder in peft's format from which they begin; or empty
    bool merge = false;                            ///< saves the merged model too
  } model;
  std::vector<std::string> classes;
  struct Corpus {
    std::filesystem::path train, held_out;  ///< `held_out` empty: a share of `train`
    std::filesystem::path tokenizer;        ///< a tokenizer.json; empty: bytes
    double share = 0;
  } corpus;
  program::ClassifierConfig classifier;
  program::TrainingOptions options;
  Index epochs = 1, micro_batches = 1, warmup = 0;
  Index patience = 0;  ///< epochs without a lower loss on held-out samples, after which training ends; 0: all epochs
  std::uint64_t seed = 1;
  std::string backend = "cpu";
  std::filesystem::path checkpoints;  ///< folder; empty: none are written
  Index every = 0;                    ///< updates between two of them; 0: one after each epoch
  std::filesystem::path output;
};

/// Throws InputError, with file, line and column.
TrainSettings read_train_settings(const std::filesystem::path& file);

/// The model's config.json.
std::filesystem::path configuration_of(const TrainSettings& settings);
/// All that decides the bits of an update, by its key: numbers, and digests of files. Large files of weights are known
/// by their size, their beginning and their end.
nlohmann::json identity(const TrainSettings& settings);

}  // namespace assay::cli
