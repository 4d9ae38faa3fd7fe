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

/// Ends of the first call that are wrong use rather than findings. A function with other arguments, called without a
/// shim, crashes, hangs or returns a status that plugin.h does not define: a campaign would add nothing. Under a shim
/// that is wrong it crashes. A function in Python that cannot be called as the contract says fails. A function that
/// exports its declarations, or that fails as plugin.h defines, takes an assay_call: the campaign falsifies it.
enum class Bars { all, crashes, errors };

bool bars(Bars which, falsify::Finding::Kind kind) {
  using enum falsify::Finding::Kind;
  if (kind == crash) return which != Bars::errors;
  return (kind == error && which != Bars::crashes) || (kind == hang && which == Bars::all);
}

/// Calls a foreign function once. Throws InputError if the call ends in a way that is wrong use; all else is left to
/// the campaign.
void expect_return(const std::string& which, const OpDescriptor& op, Kernel kernel, std::chrono::milliseconds limit,
                   Bars barred, const std::string& remedy) {
  kernel.advice = {};
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
    if (finding && bars(barred, finding->kind))
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

/// Returns the axes but the last along which a tensor can have several places in one call of the function. Cases have
/// gaps at any of them, so that each has a stride of its own.
std::vector<int> axes_of_rows(const OpDescriptor& op, const Shim& shim, const TensorInfo& tensor) {
  std::vector<Index> most;
  for (const DimInfo& dim : op.dims) most.push_back(dim.max);
  for (const int dim : shim.loops) most[static_cast<std::size_t>(dim)] = 1;
  const Shape shape = tensor.shape(most);
  std::vector<int> axes;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis)
    if (shape[axis] > 1) axes.push_back(axis);
  return axes;
}

/// Returns whether an argument tells the function this stride. An expression may read it as "stride(x, 0)".
bool tells(const Shim::Argument& a, const TensorInfo& tensor, int index, int axis) {
  if (a.what == Shim::What::stride) return a.index == index && a.axis == axis;
  if (a.what != Shim::What::number || !a.expression.reads_tensors) return false;
  std::string text = a.expression.text;
  std::erase(text, ' ');
  return text.find(fmt::format("stride({},{})", tensor.name, axis)) != std::string::npos;
}

/// Returns the strides between rows, as "[x, 0]", that the function gets neither by an argument nor by a requirement.
std::vector<std::string> unknown_strides(const OpDescriptor& op, const Shim& shim) {
  std::vector<std::string> unknown;
  for (std::size_t t = 0; !shim.dense && t < op.tensors.size(); ++t) {
    const TensorInfo& tensor = op.tensors[t];
    const auto index = static_cast<int>(t);
    if (std::ranges::find(shim.absent, index) != shim.absent.end()) continue;
    if (std::ranges::none_of(shim.arguments,
                             [&](const Shim::Argument& a) { return a.what == Shim::What::tensor && a.index == index; }))
      continue;
    for (const int axis : axes_of_rows(op, shim, tensor))
      if (std::ranges::none_of(shim.arguments, [&](const auto& a) { return tells(a, tensor, index, axis); }))
        unknown.push_back(fmt::format("[{}, {}]", tensor.name, axis));
  }
  return unknown;
}

/// Advises before falsification: cases have padded rows, and a function without strides cannot handle them.
void advise(const OpDescriptor& op, const plugin::Source& source) {
  const auto strides = unknown_strides(op, Shim::read(op, source.shim, source.shim_name));
  if (strides.empty()) return;
  fmt::print(
      stderr,
      "{}: no argument tells the function the strides {}; where it takes rows as dense, add `requires: [dense rows]`, else pass `{{stride: {}}}`\n",
      source.shim_name, fmt::join(strides, ", "), strides.front());
}

/// By default a shader is held to the Vulkan specification's requirements on every device.
constexpr std::string_view kShadersPromise = "flush_to_zero=stores,functions=vulkan";

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
                foreign.kernel(), limit, Bars::errors,
                fmt::format("`assay explain {}` lists the tensors, params and dims that a function may take by name, "
                            "and what it returns",
                            foreign.kernel().op));
}

namespace {

/// Decides the back end of a library with the execution model of cuda-host, whose calls take longer than a CPU
/// kernel's and need an order of threads. Throws InputError if another one is declared.
void take_as_cuda_host(plugin::Declaration& declaration, const std::string& library, std::string_view declared) {
  const bool says = declared.find("backend=") != std::string_view::npos;
  if (says && declaration.backend != Backend::cuda_host)
    throw InputError(
        "--lib " + library,
        fmt::format("is built with the CUDA host model, and backend={} is declared", name(declaration.backend)),
        "leave `backend` out, or build it for that back end");
  if (!says) fmt::print(stderr, "{}: built with the CUDA host model, so backend=cuda-host\n", library);
  declaration.backend = Backend::cuda_host;
}

}  // namespace

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
  const falsify::Probed probed = falsify::probe(source, limit);
  plugin::declare(declaration, probed.declares.value_or(""), o.lib + ": " + source.symbol + "_declares");
  plugin::declare(declaration, checked.declared_by_shim(), o.shim);
  plugin::declare(declaration, o.declare, "--declare");  // the command line takes precedence
  if (probed.of_cuda_host)
    take_as_cuda_host(declaration, o.lib,
                      fmt::format("{},{},{}", probed.declares.value_or(""), checked.declared_by_shim(), o.declare));
  source.declared = plugin::to_text(declaration);
  auto foreign = std::make_unique<plugin::ForeignKernel>(op, source);
  expect_bounds(op, foreign->kernel());
  const auto returns = [&](Bars bars, const std::string& remedy) {
    expect_return(which, op, foreign->kernel(), limit, bars, remedy);
  };
  if (!source.shim_name.empty()) {
    advise(op, source);
    returns(Bars::crashes, fmt::format("either {} does not say what {} takes, or the function is wrong in every call: "
                                       "compare `args` and `returns` with its prototype",
                                       source.shim_name, source.symbol));
  } else if (!probed.declares) {
    returns(Bars::all, fmt::format("{}; if it does take an assay_call, export {}_declares, which may return \"\"",
                                   foreign->kernel().advice, o.symbol));
  }
  return foreign;
}

}  // namespace assay::cli
