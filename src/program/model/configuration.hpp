// Configurations of models as Hugging Face's config.json, or a GGUF file, has them.
#pragma once

#include <filesystem>

#include "program/model/transformer.hpp"

namespace assay::program {

/// Reads the configuration of a Llama, Qwen2 or Qwen3 model (`model_type`), from a config.json, the folder that holds
/// it, or a GGUF file. Throws InputError for what changes the computation and is not built: other activations, scaled rotations, sliding
/// windows, other model types.
TransformerConfig read_configuration(const std::filesystem::path& path);

}  // namespace assay::program
