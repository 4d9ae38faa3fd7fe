// Models in GGUF files: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
#pragma once

#include <filesystem>

#include "program/model/safetensors.hpp"
#include "program/model/transformer.hpp"

namespace assay::program {

/// True if the file begins as GGUF does.
bool is_gguf(const std::filesystem::path& path);

/// Returns the tensors of a file, of version 2 or 3 and in one piece, by the names of Hugging Face checkpoints. Reads and
/// checks the header alone. Throws InputError for whatever the format forbids, and for types that are unknown.
std::map<std::string, Weights::Entry, std::less<>> gguf_tensors(const std::filesystem::path& file);

/// Reads the configuration of a llama, qwen2 or qwen3 model. Biases, norms of heads and an own head are there if their
/// tensors are. `weights` is q4_k if every projection is stored so. Throws InputError for what changes the computation
/// and is not built: other architectures, experts, scaled or partial rotations, sliding windows.
TransformerConfig gguf_configuration(const std::filesystem::path& file);

}  // namespace assay::program
