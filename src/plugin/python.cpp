#include "plugin/python.hpp"

#include <fmt/format.h>

#include "plugin/dlpack_call.hpp"

namespace assay::plugin {
namespace {

PythonCall python = nullptr;

}  // namespace

void set_python(PythonCall call) { python = call; }

bool is_python(const std::string& file) { return file.ends_with(".py"); }

void expect_python() {
  if (python == nullptr) throw NeedsPython("a kernel in Python needs an interpreter: run `python3 -m assay`");
}

std::string signature_of(const OpDescriptor& op, const Limits& limits) {
  std::string lines;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    const Role role = op.tensors[t].role;
    const auto* const word = !limits.gives(static_cast<int>(t)) ? "absent"
                             : role == Role::in                 ? "in"
                             : role == Role::out                ? "out"
                                                                : "inout";
    lines += fmt::format("{} {}\n", op.tensors[t].name, word);
  }
  for (const DimInfo& dim : op.dims) lines += fmt::format("{} int\n", dim.name);
  for (const ParamInfo& param : op.params)
    lines += fmt::format("{} {}\n", param.name, param.integer || !param.choices.empty() ? "int" : "float");
  return lines;
}

int call_python(const std::string& file, const std::string& function, const OpDescriptor& op, const Limits& limits,
                const Call& call, Device& device, char* message, std::size_t message_bytes) {
  expect_python();
  const std::string signature = signature_of(op, limits);
  return call_dlpack(
      [&](const assay_call& handed) { return python(file.c_str(), function.c_str(), signature.c_str(), &handed); }, op,
      call, device, message, message_bytes);
}

}  // namespace assay::plugin
