// A Vulkan compute shader of others: a SPIR-V file, and a map that says how it takes a call of a contract.
//
//     bindings: {x: 0, weight: 1, y: 2}          # tensor: its binding in set 0
//     push: [rows, n, {param: eps, as: float}]   # push constants, 4 bytes each, in the shader's order
//     groups: [(rows + 63) / 64, 1, 1]           # workgroups: whole numbers (expression.hpp)
//     specialization: [64]                       # constants with the ids 0, 1, ...
//     requires: [dense rows, "n % 4 == 0"]       # what it takes, as in a shim
//
// Push constants are written like the arguments of a shim (shim.hpp): dims, params, strides, numbers and constants,
// int32 or float. Each buffer begins at its tensor's first element and holds its strides; every tensor has one, and
// f16, bf16 and u8 lie in it as they are. The entry point is `main`.
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

/// What a module says of its interface.
struct ShaderModule {
  std::vector<std::uint32_t> words;
  bool has_main = false;                                                    ///< a compute entry point of this name
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> places;  ///< of variables: set and binding
  std::uint32_t push_bytes = 0;                                             ///< that its push constants take

  /// Throws InputError where the file cannot be read or is no SPIR-V.
  static ShaderModule read(const std::string& path);
};

struct ShaderMap {
  std::vector<int> tensors;  ///< by binding
  Shim push;                 ///< its arguments and what it requires
  std::vector<Expression> groups;
  std::vector<std::uint32_t> specialization;

  /// Reads a map for this operation; messages call its file `label`. Throws InputError with file:line:column.
  static ShaderMap read(const OpDescriptor& op, const std::string& text, const std::string& label);

  /// Throws InputError where the module has other bindings or more push constants than the map names.
  void expect(const OpDescriptor& op, const ShaderModule& module, const std::string& file,
              const std::string& label) const;

  /// Why the shader cannot take the call.
  std::optional<std::string> refuse(const OpDescriptor& op, const Call& call) const;
};

/// What runs shaders and tells valid modules, in programs that have the Vulkan back end (plugin/vulkan).
struct ShaderRunner {
  void (*run)(const ShaderModule& module, const ShaderMap& map, const OpDescriptor& op, const Call& call,
              Device& device) = nullptr;
  /// What spirv-val has against it; nothing if it is valid.
  std::optional<std::string> (*invalid)(const std::vector<std::uint32_t>& words) = nullptr;
};
/// Throws Unavailable where this program has none.
const ShaderRunner& shader_runner();

struct ShaderRunnerRegistration {
  explicit ShaderRunnerRegistration(const ShaderRunner& runner);
};

}  // namespace assay::plugin
