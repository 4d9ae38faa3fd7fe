// Checkpoints of a training run: one file, from which the run goes on with the same bits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/model/training.hpp"

namespace assay::program {

struct Checkpoint {
  std::string run;       ///< of the program that trains, in JSON: its settings, its place in the corpus, its figures
  TrainerState trainer;  ///< between two updates
  std::vector<float> best{};  ///< parameters of the best epoch, in the trainer's order; or none
};

/// Replaces the file when the new one is whole and on the disk: a killed process or a full disk leaves the earlier one.
void write(const std::filesystem::path& file, const Checkpoint& checkpoint);
/// Throws InputError for a file that is no checkpoint, or not the one that was written.
Checkpoint read_checkpoint(const std::filesystem::path& file);

}  // namespace assay::program
