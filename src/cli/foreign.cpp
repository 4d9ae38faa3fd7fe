#include "cli/foreign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/selection.hpp"
#include "cli/values.hpp"
#include "contract/reader.hpp"
#include "falsify/engine/admit.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/foreign/probe.hpp"
#include "plugin/python.hpp"
#include "plugin/shim.hpp"

namespace assay::cli {
namespace {

falsify::Case small_case(const OpDescriptor& op) {
  falsify::Case small;
  small.dims.assign(op.dims.size(), 2);
  falsify::make_valid(op, small.dims);
  for (const ParamInfo& param : op.params) small.params.push_back(param.typical);
  return small;
}

/// Throws if the declared function library lacks functions that the operation needs. Called before any case.
void expect_bounds(const OpDescriptor& op, const Kernel& kernel) {
  const falsify::Case small = small_case(op);
  falsify::Worker worker(std::chrono::seconds(1), std::size_t{1} << 20);  // never used to run a kernel
  falsify::Trial trial(op, kernel, small, worker);
  try {
    trial.oracle(trial.problem());
  } catch (const std::logic_error& e) {
    throw InputError("--declare", e.what(), "declare other `functions`");
  }
}

/// Calls a foreign function once. A function with other arguments, called without a shim, crashes, hangs or returns a
/// status that plugin.h does not define: a campaign would add nothing. A function that exports its declarations, or
/// that fails as plugin.h defines, takes an assay_call: the campaign falsifies it. A function in Python that cannot be
/// called as the contract says is an error; crashes and hangs are left to the campaign.
void expect_return(const std::string& which, const OpDescriptor& op, Kernel kernel, std::chrono::milliseconds limit,
                   const std::string& remedy) {
  const bool in_c = !std::exchange(kernel.advice, {}).empty();
  kernel.run = [run = std::move(kernel.run)](const Call& call, Device& device) {
    try {
      run(call, device);
    } catch (const plugin::ReportedError&) {  // NOLINT(bugprone-empty-catch): left to the campaign
    }
  };
  const falsify::Case small = falsify::admitted(op, kernel, small_case(op), {});
  falsify::Worker worker(limit);
  falsify::Trial trial(op, kernel, small, worker);
  try {
    trial.run(trial.problem());
  } catch (const falsify::Interrupted& interrupted) {
    const auto& finding = interrupted.outcome.finding;
    using enum falsify::Finding::Kind;
    if (finding && (finding->kind == error || (in_c && (finding->kind == hang || finding->kind == crash))))
      throw InputError(which,
                       fmt::format("its first call, of {}, failed: {}",
                                   falsify::describe_extents(op, small.dims, small.params), finding->message),
                       remedy);
  } catch (const Unavailable&) {  // its device is not available: the campaign reports it
  }
}

}  // namespace

std::chrono::milliseconds limit_of(bool in_python, std::chrono::milliseconds limit) {
  return in_python ? std::max<std::chrono::milliseconds>(limit, std::chrono::minutes(1)) : limit;
}

void add_foreign_options(CommandOptions& command, ForeignOptions& o) {
  const auto lib =
      command.option("--lib", o.lib, "A shared library with a kernel of your own (src/plugin/assay/plugin.h)");
  const auto with_lib = [&](const char* name, std::string& value, const std::string& help) {
    command.option(name, value, help).needs(lib);
  };
  with_lib("--symbol", o.symbol, "The function of the library");
  const auto shim = command.option(
      "--shim", o.shim,
      "YAML that says which arguments the function takes, where it does not take an assay_call; --python: `requires`, "
      "`absent`, `in_place` and `zeroed` alone");
  const auto spv =
      command.option("--spv", o.spv, "A SPIR-V compute shader of your own, in place of --lib").excludes(lib);
  command.option("--bindings", o.bindings, "YAML that says how the shader takes tensors, push constants and workgroups")
      .needs(spv);
  const auto python = command.option("--python", o.python, "A function of your own in Python, as FILE.py:FUNCTION");
  python.excludes(lib).excludes(spv);
  shim.excludes(spv);
  command.option("--contract", o.contract, "--lib, --spv, --python: the operation that it computes");
  command.option("--declare", o.declare,
                 "--lib, --spv, --python: what the kernel promises, key=value with commas between: " +
                     std::string(plugin::declaration_help()));
}

namespace {

using plugin::Shim;

/// Returns whether the tensor has at most one row for any dims, so that no stride between rows is needed.
bool has_one_row(const OpDescriptor& op, const TensorInfo& tensor) {
  std::vector<Index> most;
  for (const DimInfo& dim : op.dims) most.push_back(dim.max);
  const Shape shape = tensor.shape(most);
  for (int axis = 0; axis + 1 < shape.rank(); ++axis)
    if (shape[axis] > 1) return false;
  return true;
}

/// Returns the tensors with rows whose stride the function gets neither by an argument nor by a requirement.
std::vector<std::string_view> rows_of_unknown_distance(const OpDescriptor& op, const Shim& shim) {
  std::vector<std::string_view> names;
  const bool told_somehow =
      shim.dense || !shim.loops.empty() || std::ranges::any_of(shim.arguments, [](const Shim::Argument& a) {
        return a.what == Shim::What::number && a.expression.reads_tensors && a.text.find("stride") != std::string::npos;
      });
  for (std::size_t t = 0; !told_somehow && t < op.tensors.size(); ++t) {
    const auto about = [t](Shim::What what) {
      return [t, what](const Shim::Argument& a) { return a.what == what && a.index == static_cast<int>(t); };
    };
    if (has_one_row(op, op.tensors[t]) || std::ranges::none_of(shim.arguments, about(Shim::What::tensor))) continue;
    if (std::ranges::none_of(shim.arguments, about(Shim::What::stride))) names.push_back(op.tensors[t].name);
  }
  return names;
}

/// Advises before falsification: cases have padded rows, and a function without strides cannot handle them.
void advise(const OpDescriptor& op, const plugin::Source& source) {
  const auto names = rows_of_unknown_distance(op, Shim::read(op, source.shim, source.shim_name));
  if (names.empty()) return;
  fmt::print(
      stderr,
      "{}: no argument tells the function the strides of {}; where it takes rows as dense, add `requires: [dense rows]`, else pass `{{stride: [{}, 0]}}`\n",
      source.shim_name, fmt::join(names, ", "), names.front());
}

/// By default a shader is held to the Vulkan specification's requirements on every device.
constexpr std::string_view kShadersPromise = "flush_to_zero=yes,functions=vulkan";

std::unique_ptr<plugin::ForeignKernel> shader(const ForeignOptions& o, const OpDescriptor& op) {
  if (o.bindings.empty())
    throw InputError("--spv " + o.spv, "has no map",
                     "add --bindings MAP.yaml, which says which tensor is which binding");
  plugin::Declaration declaration;
  plugin::declare(declaration, kShadersPromise, "--spv");
  plugin::declare(declaration, o.declare, "--declare");
  auto foreign = std::make_unique<plugin::ForeignKernel>(
      op, plugin::Source{o.spv, "main", o.bindings, contract::read_file(o.bindings, o.bindings, "a map"),
                         plugin::to_text(declaration), true});
  expect_bounds(op, foreign->kernel());
  return foreign;
}

std::unique_ptr<plugin::ForeignKernel> python_kernel(const ForeignOptions& o, const OpDescriptor& op,
                                                     std::chrono::milliseconds limit) {
  const auto colon = o.python.rfind(':');
  const std::string file = o.python.substr(0, colon);
  if (colon == std::string::npos || colon + 1 == o.python.size() || !plugin::is_python(file))
    throw InputError("--python " + o.python, "names no function of a Python file", "write FILE.py:FUNCTION");
  if (access(file.c_str(), R_OK) != 0)
    throw InputError("--python " + file, std::string("cannot be read: ") + std::strerror(errno), "name a Python file");
  plugin::Declaration declaration;
  plugin::declare(declaration, o.declare, "--declare");
  plugin::Source source{file, o.python.substr(colon + 1), o.shim, {}, plugin::to_text(declaration)};
  if (!o.shim.empty()) source.shim = contract::read_file(o.shim, o.shim, "a shim");
  expect_utf8(o.shim, source.shim);
  auto foreign = std::make_unique<plugin::ForeignKernel>(op, std::move(source));
  expect_bounds(op, foreign->kernel());
  expect_callable(*foreign, limit);
  return foreign;
}

}  // namespace

void expect_callable(const plugin::ForeignKernel& foreign, std::chrono::milliseconds limit) {
  const plugin::Source& source = foreign.source();
  expect_return(fmt::format("--python {}:{}", source.library, source.symbol), operation(foreign.kernel().op),
                foreign.kernel(), limit,
                fmt::format("`assay explain {}` lists the tensors, params and dims that a function may take by name, "
                            "and what it returns",
                            foreign.kernel().op));
}

std::unique_ptr<plugin::ForeignKernel> foreign_kernel(const ForeignOptions& o, std::chrono::milliseconds limit) {
  const std::string which = !o.python.empty() ? "--python " + o.python
                            : o.lib.empty()   ? "--spv " + o.spv
                                              : "--lib " + o.lib;
  if (o.lib.empty() && o.spv.empty() && o.python.empty()) {
    if (o.contract.empty() && o.declare.empty() && o.shim.empty()) return nullptr;
    throw InputError(!o.contract.empty()  ? "--contract " + o.contract
                     : !o.declare.empty() ? "--declare"
                                          : "--shim " + o.shim,
                     "names no kernel", "add --lib, --spv or --python");
  }
  if (o.contract.empty()) throw InputError(which, "names no operation", "add --contract OP; `assay list` prints them");
  const OpDescriptor& op = operation_named(o.contract);
  if (!o.python.empty()) return python_kernel(o, op, limit);
  if (o.lib.empty()) return shader(o, op);
  plugin::Source source{o.lib, o.symbol, o.shim, {}, o.declare};
  if (!o.shim.empty()) source.shim = contract::read_file(o.shim, o.shim, "a shim");
  expect_utf8(o.shim, source.shim);
  // Validates everything that does not need the library first.
  const plugin::ForeignKernel checked(op, source);
  source = checked.source();
  plugin::Declaration declaration;
  const std::optional<std::string> declares = falsify::probe(source, limit);
  plugin::declare(declaration, declares.value_or(""), o.lib + ": " + source.symbol + "_declares");
  plugin::declare(declaration, checked.declared_by_shim(), o.shim);
  plugin::declare(declaration, o.declare, "--declare");  // the command line takes precedence
  source.declared = plugin::to_text(declaration);
  auto foreign = std::make_unique<plugin::ForeignKernel>(op, source);
  expect_bounds(op, foreign->kernel());
  if (!source.shim_name.empty()) advise(op, source);
  else if (!declares)
    expect_return(which, op, foreign->kernel(), limit,
                  fmt::format("{}; if it does take an assay_call, export {}_declares, which may return \"\"",
                              foreign->kernel().advice, o.symbol));
  return foreign;
}

}  // namespace assay::cli
