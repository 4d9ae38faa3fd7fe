// A foreign Vulkan compute shader: a SPIR-V file, and a map from a call of a contract to its interface.
//
//     bindings: {x: 0, weight: 1, y: 2}          # tensor: its binding in set 0
//     push: [rows, n, {param: eps, as: float}]   # push constants, 4 bytes each, in the shader's order
//     groups: [(rows + 63) / 64, 1, 1]           # workgroups: whole numbers (expression.hpp)
//     specialization: [64]                       # constants with the ids 0, 1, ...
//     requires: [dense rows, "n % 4 == 0"]       # limits of the shader, as in a shim
//
// Push constants are written like the arguments of a shim (shim.hpp): dims, params, strides, numbers and constants,
// int32 or float. Every tensor has a buffer, which begins at the tensor's first element and has the tensor's strides;
// f16, bf16 and u8 are not converted. The entry point is `main`.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/descriptor.hpp"
#include "plugin/shim.hpp"

namespace assay::plugin {

/// Interface of a module.
struct ShaderModule {
  std::vector<std::uint32_t> words;
  bool has_main = false;                                                    ///< has a compute entry point `main`
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> places;  ///< set and binding of each variable
  std::uint32_t push_bytes = 0;                                             ///< size of its push constants

  /// Throws InputError if the file cannot be read or is not SPIR-V.
  static ShaderModule read(const std::string& path);
};

struct ShaderMap {
  std::vector<int> tensors;  ///< by binding
  Shim push;                 ///< push constants as arguments, and requirements
  std::vector<Expression> groups;
  std::vector<std::uint32_t> specialization;

  /// Parses a map for this operation; messages name its file `label`. Throws InputError with file:line:column.
  static ShaderMap read(const OpDescriptor& op, const std::string& text, const std::string& label);

  /// Throws InputError if the module has other bindings or more push constants than the map names.
  void expect(const OpDescriptor& op, const ShaderModule& module, const std::string& file,
              const std::string& label) const;

  /// Returns why the shader cannot take the call.
  std::optional<std::string> refuse(const OpDescriptor& op, const Call& call) const;
};

/// Runs shaders and validates modules, in programs with the Vulkan back end (plugin/vulkan).
struct ShaderRunner {
  void (*run)(const ShaderModule& module, const ShaderMap& map, const OpDescriptor& op, const Call& call,
              Device& device) = nullptr;
  /// Returns the error of spirv-val; empty if the module is valid.
  std::optional<std::string> (*invalid)(const std::vector<std::uint32_t>& words) = nullptr;
};
/// Throws Unavailable if this program has none.
const ShaderRunner& shader_runner();

struct ShaderRunnerRegistration {
  explicit ShaderRunnerRegistration(const ShaderRunner& runner);
};

}  // namespace assay::plugin
