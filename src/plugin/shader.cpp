#include "plugin/shader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "contract/reader.hpp"
#include "core/errors.hpp"

namespace assay::plugin {
namespace {

// SPIR-V specification, 2.3 and 3: the instructions that define an interface.
constexpr std::uint32_t kMagic = 0x07230203;
enum Op : std::uint32_t { kEntryPoint = 15, kTypePointer = 32, kVariable = 59, kDecorate = 71, kMemberDecorate = 72 };
enum Decoration : std::uint32_t { kBinding = 33, kDescriptorSet = 34, kOffset = 35 };
constexpr std::uint32_t kGLCompute = 5, kPushConstant = 9;

std::string_view text_of(const std::uint32_t* words, std::size_t count) {
  const char* const text = reinterpret_cast<const char*>(words);
  return {text, strnlen(text, count * sizeof *words)};
}

/// ParsedModule collected from the module; references are resolved at the end.
struct ParsedModule {
  std::map<std::uint32_t, std::uint32_t> pointees, struct_bytes;  ///< by id of the pointer type, and of the struct type
  std::uint32_t push_pointer = 0;

  void add(const std::uint32_t* at, std::uint32_t length, ShaderModule& module) {
    const std::uint32_t op = at[0] & 0xffff;
    if (op == kEntryPoint && length > 3 && at[1] == kGLCompute && text_of(at + 3, length - 3) == "main")
      module.has_main = true;
    if (op == kTypePointer && length == 4) pointees[at[1]] = at[3];
    if (op == kVariable && length >= 4 && at[3] == kPushConstant) push_pointer = at[1];
    if (op == kDecorate && length == 4 && at[2] == kDescriptorSet) module.places[at[1]].first = at[3];
    if (op == kDecorate && length == 4 && at[2] == kBinding) module.places[at[1]].second = at[3];
    if (op == kMemberDecorate && length == 5 && at[3] == kOffset)
      struct_bytes[at[1]] = std::max(struct_bytes[at[1]], at[4] + 4);
  }
};

ShaderRunner& registered() {
  static ShaderRunner runner;
  return runner;
}

}  // namespace

ShaderModule ShaderModule::read(const std::string& path) {
  const std::string bytes = contract::read_file(path, path, "a SPIR-V module");
  const auto fail = [&](const std::string& problem) {
    throw InputError(path, problem, "give a module as `glslc --target-env=vulkan1.2 -o FILE.spv` writes it");
  };
  ShaderModule module;
  if (bytes.size() % 4 != 0 || bytes.size() < 5 * 4) fail("this is no SPIR-V module");
  module.words.resize(bytes.size() / 4);
  std::memcpy(module.words.data(), bytes.data(), module.words.size() * 4);
  if (module.words[0] != kMagic) fail("this is no SPIR-V module");
  ParsedModule facts;
  for (std::size_t at = 5; at < module.words.size();) {
    const std::uint32_t length = module.words[at] >> 16;
    if (length == 0 || length > module.words.size() - at)
      fail(fmt::format("its instruction at word {} is cut off", at));
    facts.add(module.words.data() + at, length, module);
    at += length;
  }
  if (facts.push_pointer != 0) module.push_bytes = facts.struct_bytes[facts.pointees[facts.push_pointer]];
  if (!module.has_main) fail("it has no compute entry point 'main'");
  return module;
}

void ShaderMap::expect(const OpDescriptor& op, const ShaderModule& module, const std::string& file,
                       const std::string& label) const {
  std::vector<bool> used(tensors.size(), false);
  for (const auto& [variable, place] : module.places) {
    const auto [set, binding] = place;
    if (set != 0)
      throw InputError(file, fmt::format("it has a binding in set {}", set),
                       "shaders are given set 0 alone: move it there");
    if (binding >= tensors.size())
      throw InputError(file, fmt::format("it has a binding {}, which {} gives no tensor", binding, label),
                       "add the tensor to 'bindings'");
    used[binding] = true;
  }
  for (std::size_t b = 0; b < used.size(); ++b)
    if (!used[b] && op.tensors[static_cast<std::size_t>(tensors[b])].role != Role::in)
      throw InputError(file,
                       fmt::format("it has no binding {}, where {} has the output '{}'", b, label,
                                   op.tensors[static_cast<std::size_t>(tensors[b])].name),
                       "give the tensor the binding that the shader writes it to");
  if (module.push_bytes > 4 * push.arguments.size())
    throw InputError(file,
                     fmt::format("it has {} bytes of push constants, and {} names {}", module.push_bytes, label,
                                 4 * push.arguments.size()),
                     "name each of them under 'push', in the shader's order");
}

std::optional<std::string> ShaderMap::refuse(const OpDescriptor& op, const Call& call) const {
  if (auto why = push.refuse(op, call)) return why;
  for (const Expression& count : groups)
    if (const double n = count.value(scope_of(call)); !(n >= 0 && n <= 65535))
      return fmt::format("its map asks for {} workgroups along one axis; every device runs 0 to 65535", n);
  return std::nullopt;
}

const ShaderRunner& shader_runner() {
  if (registered().run == nullptr) throw Unavailable("--spv", "this program was built without the Vulkan back end");
  return registered();
}

ShaderRunnerRegistration::ShaderRunnerRegistration(const ShaderRunner& runner) { registered() = runner; }

}  // namespace assay::plugin
