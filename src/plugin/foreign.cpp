#include "plugin/foreign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <vector>

#include "assay/plugin.h"
#include "core/errors.hpp"
#include "plugin/dlpack_call.hpp"
#include "plugin/python.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace assay::plugin {
namespace {

constexpr std::string_view kAdvice =
    "without a shim a function is called with one argument, an assay_call (assay/plugin.h): if it has arguments of its "
    "own, say which in a "
    "shim and give it by --shim FILE";

/// Rounding mode and subnormal handling of this thread, which a called function must preserve.
struct Controls {
  int rounding = std::fegetround();
#if defined(__x86_64__)
  unsigned sse = _mm_getcsr() & ~0x3fu;  // without the exception flags
#endif
  friend bool operator==(const Controls&, const Controls&) = default;
};

/// Restores the caller's floating-point environment after a kernel that may change it.
class KeptEnvironment {
 public:
  KeptEnvironment() { std::fegetenv(&environment_); }
  ~KeptEnvironment() { std::fesetenv(&environment_); }
  KeptEnvironment(const KeptEnvironment&) = delete;
  KeptEnvironment& operator=(const KeptEnvironment&) = delete;

  bool changed() const { return Controls{} != controls_; }

 private:
  std::fenv_t environment_;
  Controls controls_;
};

/// Throws unless each name has values that the contract forbids, because only such values can be rejected.
void expect_rejectable(const OpDescriptor& op, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto tensor = std::ranges::find(op.tensors, name, &TensorInfo::name);
    const auto dim = std::ranges::find(op.dims, name, &DimInfo::name);
    if (dim != op.dims.end() && dim->min > 0) continue;
    if (std::ranges::find(op.params, name, &ParamInfo::name) != op.params.end()) continue;
    if (tensor == op.tensors.end() || tensor->least == nullptr)
      throw InputError("rejects",
                       "'" + name + "' is no param of " + std::string(op.name) +
                           ", no dim that cannot be 0, and no tensor whose values its contract limits",
                       "`assay explain " + std::string(op.name) + "` prints them");
  }
}

}  // namespace

std::string id_of(const Source& source) {
  return "foreign/" + std::filesystem::path(source.library).filename().string() + "/" + source.symbol;
}

ForeignKernel::ForeignKernel(const OpDescriptor& op, Source source) : op_(op), source_(std::move(source)) {
  Declaration declaration;
  // NumPy's functions are the least accurate of those that arrays on the host are given to.
  if (is_python(source_.library)) declaration.arithmetic.functions = FunctionLibrary::numpy;
  declare(declaration, source_.declared, "--declare");
  source_.declared = to_text(declaration);
  if (const std::string_view lost = name(declaration.arithmetic.loses);
      declaration.arithmetic.loses != Loss::nothing &&
      std::ranges::find(op.pins, lost, &PinInfo::name) == op.pins.end())
    throw InputError("--declare", fmt::format("{} pins no '{}' that a kernel could lose", op.name, lost),
                     fmt::format("`assay explain {}` lists what is pinned", op.name));
  const bool in_python = is_python(source_.library);
  if (in_python) expect_python();
  if (source_.shader) read_shader();
  else if (!source_.shim_name.empty())
    shim_ = (in_python ? Shim::read_limits : Shim::read)(op, source_.shim, source_.shim_name);
  if (source_.symbol.empty() && shim_) source_.symbol = shim_->symbol;
  if (source_.symbol.empty())
    throw InputError("--lib " + source_.library, "names no function of the library",
                     "add --symbol, or `symbol:` to the shim");
  id_ = id_of(source_);
  kernel_ = {.op = op.name,
             .id = id_,
             .backend = source_.shader ? Backend::vulkan : declaration.backend,
             .arithmetic = declaration.arithmetic,
             .storage = declaration.storage,
             .deterministic = declaration.deterministic,
             .batch_invariant = declaration.batch_invariant,
             .source = source_.library,
             .summary = source_.shader ? "a shader of a SPIR-V file"
                        : in_python    ? "a function in Python"
                                       : "a kernel of a shared library",
             .limits = &limits_};
  if (source_.shader) {
    kernel_.run = [this](const Call& call, Device& device) { shader_runner().run(*module_, *map_, op_, call, device); };
    kernel_.refuse = [this](const Call& call) { return map_->refuse(op_, call); };
    limits_ = map_->push.limits();
    return;
  }
  kernel_.run = [this](const Call& call, Device& device) { run(call, device); };
  if (!shim_) {
    if (!in_python) kernel_.advice = kAdvice;
  } else {
    kernel_.refuse = [this](const Call& call) { return shim_->refuse(op_, call); };
    limits_ = shim_->limits();
  }
  limits_.rejects.insert(limits_.rejects.end(), declaration.rejects.begin(), declaration.rejects.end());
  expect_rejectable(op, limits_.rejects);
}

void ForeignKernel::read_shader() {
  const ShaderRunner& runner = shader_runner();  // first, because nothing else matters without a runner
  source_.symbol = "main";
  map_ = ShaderMap::read(op_, source_.shim, source_.shim_name);
  module_ = ShaderModule::read(source_.library);
  map_->expect(op_, *module_, source_.library, source_.shim_name);
  if (const auto problem = runner.invalid(module_->words))
    throw InputError(source_.library, "spirv-val rejects it: " + problem->substr(0, problem->find('\n')),
                     "compile it again for Vulkan 1.2");
}

void ForeignKernel::run(const Call& call, Device& device) {
  const bool in_python = is_python(source_.library);
  if (function_ == nullptr && !in_python) {
    library_ = std::make_unique<Library>(source_.library);
    function_ = library_->require(source_.symbol);
  }
  char message[1024] = {};
  int status = ASSAY_DONE;
  bool left_changed = false;
  {
    const KeptEnvironment kept;
    if (in_python)
      status = call_python(source_.library, source_.symbol, op_, limits_, call, device, message, sizeof message);
    else if (shim_) status = shim_->call(function_, op_, call, device, message, sizeof message);
    else
      status = call_dlpack([&](const assay_call& handed) { return reinterpret_cast<assay_kernel>(function_)(&handed); },
                           op_, call, device, message, sizeof message);
    left_changed = kept.changed();
  }
  message[sizeof message - 1] = '\0';
  const bool gave_reason = message[0] != '\0';
  const std::string said = gave_reason ? message : "it gave no reason";
  if (status == ASSAY_REFUSED) throw Unavailable(id_, said);
  if (status != ASSAY_DONE) {
    if (in_python && status == kMisused) throw std::runtime_error(said);
    const std::string error = shim_ || in_python ? said : said + " (status " + std::to_string(status) + ")";
    if (gave_reason || status == ASSAY_FAILED) throw ReportedError(error);
    throw std::runtime_error(error);
  }
  if (left_changed)
    throw ReportedError("it returned with another rounding mode or treatment of subnormals than it was called with");
}

}  // namespace assay::plugin
