#include "spirv/module.hpp"

#include <spirv-tools/libspirv.hpp>

#include "core/errors.hpp"

namespace assay::falsify::spirv {
namespace {

constexpr auto kTarget = SPV_ENV_VULKAN_1_2;

spv_result_t take_header(void* user, spv_endianness_t, std::uint32_t magic, std::uint32_t version,
                         std::uint32_t generator, std::uint32_t bound, std::uint32_t schema) {
  static_cast<Module*>(user)->header = {magic, version, generator, bound, schema};
  return SPV_SUCCESS;
}

spv_result_t take_instruction(void* user, const spv_parsed_instruction_t* parsed) {
  Instruction instruction;
  instruction.op = static_cast<spv::Op>(parsed->opcode);
  instruction.words.assign(parsed->words, parsed->words + parsed->num_words);
  instruction.type = parsed->type_id;
  instruction.result = parsed->result_id;
  for (const spv_parsed_operand_t& operand : std::span(parsed->operands, parsed->num_operands))
    if (operand.type == SPV_OPERAND_TYPE_ID) instruction.ids.push_back(operand.offset);
  static_cast<Module*>(user)->code.push_back(std::move(instruction));
  return SPV_SUCCESS;
}

}  // namespace

Words encode(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  Words words{static_cast<std::uint32_t>(operands.size() + 1) << spv::WordCountShift | static_cast<std::uint32_t>(op)};
  words.insert(words.end(), operands);
  return words;
}

Module::Module(std::span<const std::uint32_t> words) {
  const spvtools::Context context(kTarget);
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result =
      spvBinaryParse(context.CContext(), this, words.data(), words.size(), take_header, take_instruction, &diagnostic);
  const std::string why = diagnostic == nullptr ? "" : diagnostic->error;
  spvDiagnosticDestroy(diagnostic);
  if (result != SPV_SUCCESS) throw InputError("SPIR-V module", "cannot be parsed: " + why, "give what glslc wrote");
}

Words Module::encode() const {
  Words words(header.begin(), header.end());
  for (const Instruction& instruction : code)
    words.insert(words.end(), instruction.words.begin(), instruction.words.end());
  return words;
}

std::optional<std::string> invalid(std::span<const std::uint32_t> words) {
  std::string why;
  spvtools::SpirvTools tools(kTarget);
  tools.SetMessageConsumer([&why](spv_message_level_t, const char*, const spv_position_t&, const char* text) {
    if (why.empty()) why = text;
  });
  if (tools.Validate(words.data(), words.size())) return std::nullopt;
  return why.empty() ? "spirv-val gives no reason" : why;
}

std::string name(spv::Op op) { return std::string("Op") + spvOpcodeString(static_cast<std::uint32_t>(op)); }

}  // namespace assay::falsify::spirv
