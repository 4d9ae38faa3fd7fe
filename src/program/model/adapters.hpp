// Adapters in the format of peft, and models into which they are merged.
// Source: huggingface/peft, src/peft/utils/save_and_load.py and src/peft/tuners/lora/config.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/model/safetensors.hpp"
#include "program/model/transformer.hpp"

namespace assay::program {

/// Sets every parameter to the tensor of its name, or to initial_values() where there are no weights, and where an
/// adapter or the classifier has no tensor. Throws InputError as load() does. Returns the tensors that nothing takes.
std::vector<std::string> set_base(Session& session, const Weights* weights, std::uint64_t seed);

/// Sets every parameter to the one of its name in another session, and adapters that it has not to initial_values().
/// Throws InputError, before any parameter changes, where the two programs differ in more than that.
void set_base(Session& session, Session& from, std::uint64_t seed);

/// Returns the parameters that are adapters, such as "layers.0.self_attn.q_proj.lora_A.weight", in their order; all
/// others are the base's.
std::vector<std::string> adapter_names(const Program& program);

/// Returns whether no weight trains beside its adapter: peft has no place for one.
bool has_frozen_bases(const Program& program);

/// Writes adapter_config.json and adapter_model.safetensors: of each projection lora_A.weight [rank, in] and
/// lora_B.weight [out, rank]; all biases of projections if one of them trains; what else trains as "modules to save".
/// The classifier's weight is [classes, hidden] there, as in a torch.nn.Linear named classifier. `base` is the model's
/// name in the configuration. Needs has_frozen_bases().
void save_adapters(Session& session, const Adapters& adapters, const std::filesystem::path& folder,
                   const std::string& base);

/// Reads projections, rank and alpha from adapter_config.json. Throws InputError for what is not built: DoRA, scales by
/// the root of the rank, ranks by pattern.
Adapters read_adapters(const std::filesystem::path& folder);
/// Sets the parameters that adapter_model.safetensors holds. Throws InputError, before any parameter changes, where an
/// adapter of the program has no tensor or one of another shape, or where the file holds a tensor that nothing takes.
void load_adapters(Session& session, const std::filesystem::path& folder);

/// Writes the session's parameters as one safetensors file with W + alpha / rank B A in place of each adapted W. A
/// packed weight is what its codes mean: the adapters were trained on that, not on what was packed.
void save_merged(Session& session, const Adapters& adapters, const std::filesystem::path& file);

}  // namespace assay::program
