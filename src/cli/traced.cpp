#include "cli/traced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "core/half.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/gradient_point.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/trial.hpp"
#include "plugin/declaration.hpp"
#include "program/model/safetensors.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSchema = "assay-trace/1";
constexpr const char* kRemedy = "trace the program anew (assay.trace)";

/// One call of a trace; or, with `gradients`, the gradients of a call, whose outputs were not recorded.
struct TracedCall {
  std::string id, label;
  const OpDescriptor* op = nullptr;
  falsify::Problem problem;
  std::vector<std::vector<float>> outputs;   ///< in contract order; empty for one that was not recorded
  std::vector<int> tensors;                  ///< their indices
  bool gradients = false;                    ///< `outputs` are the gradients of the inputs `tensors`
  std::vector<std::vector<float>> upstream;  ///< gradients of the outputs in contract order; empty for zeros
};

/// The outcome of the calls of one operation.
struct Judged {
  std::size_t calls = 0, wrong = 0;
  std::int64_t elements = 0;
  double worst = 0;
};

class Trace {
 public:
  explicit Trace(const std::string& folder) : folder_(folder), file_((fs::path(folder) / "trace.json").string()) {
    try {
      index_ = json::parse(files::read(file_, kRemedy));
      if (index_.at("schema") != kSchema) fail(fmt::format("does not say \"schema\": \"{}\"", kSchema));
      for (const json& file : index_.at("files")) weights_.emplace_back(fs::path(folder) / file.get<std::string>());
    } catch (const json::exception& e) {
      fail(fmt::format("is no trace: {}", e.what()));
    }
  }

  const json& index() const { return index_; }

  TracedCall call(const json& from) const {
    try {
      TracedCall call;
      call.id = from.at("id"), call.label = from.at("label");
      call.op = &operation_named(from.at("op").get<std::string>());
      call.gradients = from.value("gradients", false);
      const OpDescriptor& op = *call.op;
      call.problem = {&op, {}, {}, {}, storage_named(from.value("storage", "f32"))};
      for (const DimInfo& dim : op.dims) call.problem.dims.push_back(from.at("dims").at(std::string(dim.name)));
      for (const ParamInfo& param : op.params)
        call.problem.params.push_back(from.at("params").at(std::string(param.name)));
      for (std::size_t t = 0; t < op.tensors.size(); ++t) {
        const TensorInfo& tensor = op.tensors[t];
        const auto index = static_cast<int>(t);
        call.problem.values.emplace_back();
        if (tensor.role != Role::out)
          call.problem.values.back() = values(call, fmt::format("{}.in.{}", call.id, tensor.name), index, true);
        if (tensor.role == Role::in) continue;
        if (call.gradients) {
          call.upstream.push_back(values(call, fmt::format("{}.upstream.{}", call.id, tensor.name), index, false));
          continue;
        }
        call.tensors.push_back(index);
        call.outputs.push_back(values(call, fmt::format("{}.out.{}", call.id, tensor.name), index, false));
      }
      if (call.gradients) read_gradients(call);
      return call;
    } catch (const json::exception& e) {
      fail(fmt::format("has a call that cannot be read: {}", e.what()));
    }
  }

  [[noreturn]] void fail(const std::string& problem) const { throw InputError(file_, problem, kRemedy); }

 private:
  DType storage_named(const std::string& text) const {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      if (text == name(dtype)) return dtype;
    fail(text + " is no format of storage");
  }

  void read_gradients(TracedCall& call) const {
    for (const int t : falsify::differentiable(*call.op)) {
      const std::string_view name = call.op->tensors[static_cast<std::size_t>(t)].name;
      call.tensors.push_back(t);
      call.outputs.push_back(values(call, fmt::format("{}.gradient.{}", call.id, name), t, false));
    }
  }

  /// Returns a tensor's elements as floats; none if it is not needed and not there.
  std::vector<float> values(const TracedCall& call, const std::string& name, int tensor, bool needed) const {
    for (const program::Weights& weights : weights_) {
      const auto found = weights.entries().find(name);
      if (found == weights.entries().end()) continue;
      const Shape shape = call.problem.shape(tensor);
      if (found->second.shape != program::extents(shape))
        throw InputError(fmt::format("{}: {}", found->second.file.string(), name),
                         fmt::format("is {} where the dims of the call give {}", json(found->second.shape).dump(),
                                     json(program::extents(shape)).dump()),
                         kRemedy);
      if (found->second.dtype != "I32") return weights.read(name);
      const std::string bytes = weights.bytes(name);
      std::vector<float> integers(bytes.size() / sizeof(std::int32_t));
      for (std::size_t i = 0; i < integers.size(); ++i) {
        std::int32_t one = 0;
        std::memcpy(&one, bytes.data() + i * sizeof one, sizeof one);
        integers[i] = static_cast<float>(one);
      }
      return integers;
    }
    if (needed) fail(fmt::format("names the call {}, and no file has {}", call.id, name));
    return {};
  }

  fs::path folder_;
  std::string file_;
  json index_;
  std::vector<program::Weights> weights_;
};

/// Returns the reason if the contract does not admit the call: nothing follows from its results.
std::optional<std::string> not_admitted(const TracedCall& call) {
  const OpDescriptor& op = *call.op;
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (const Index n = call.problem.dims[d]; n < op.dims[d].min || n > op.dims[d].max)
      return fmt::format("{}={} is outside of the contract", op.dims[d].name, n);
  for (std::size_t p = 0; p < op.params.size(); ++p) {
    const ParamInfo& param = op.params[p];
    const double x = call.problem.params[p];
    const bool taken = param.choices.empty() ? param.min <= x && x <= param.max
                                             : std::ranges::find(param.choices, x) != param.choices.end();
    if (!taken) return fmt::format("{}={} is outside of the contract", param.name, x);
  }
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (op.tensors[t].least != nullptr)
      for (const float x : call.problem.values[t])
        if (!admits_integer(op.tensors[t], call.problem.dims, static_cast<double>(x)))
          return fmt::format("{} holds {}, which is outside of the contract", op.tensors[t].name, x);
  return std::nullopt;
}

falsify::Outcome judge(const TracedCall& call, const Kernel& kernel, falsify::Worker& idle) {
  falsify::Case c;
  c.dims = call.problem.dims, c.params = call.problem.params;
  const falsify::Trial trial(*call.op, kernel, c, idle);
  const std::vector<std::vector<Bounded>> want = trial.oracle(call.problem);
  falsify::Outcome outcome;
  for (std::size_t o = 0; o < want.size(); ++o)
    if (!call.outputs[o].empty())
      outcome &= falsify::compare(trial.strictest(), call.op->tensors[static_cast<std::size_t>(call.tensors[o])].name,
                                  call.problem.shape(call.tensors[o]), call.outputs[o], want[o],
                                  call.problem.dtype(call.tensors[o]));
  return outcome;
}

/// Holds gradients to the bounds of the backward reference. What the forward pass saved is within the forward bounds,
/// and rounded to storage.
falsify::Outcome judge_gradients(const TracedCall& call, const Kernel& kernel) {
  const ArithmeticScope scope(kernel.arithmetic);
  const auto as_inputs = [](const falsify::Values<double>& tensors) {
    falsify::Values<Bounded> lifted;
    for (const auto& tensor : tensors) {
      auto& values = lifted.emplace_back();
      for (const double x : tensor) values.push_back(Bounded::input(static_cast<float>(x)));
    }
    return lifted;
  };
  falsify::Outcome outcome;
  for (std::size_t g = 0; g < call.tensors.size(); ++g) {
    if (call.outputs[g].empty()) continue;
    const falsify::GradientCase one{call.op, call.tensors[g], call.problem.dims, call.problem.params, 0};
    falsify::GradientPoint at(one);
    for (std::size_t i = 0; i < at.inputs.size(); ++i) {
      const auto& values = call.problem.values[static_cast<std::size_t>(at.inputs[i])];
      at.x[i].assign(values.begin(), values.end());
    }
    const std::vector<int> all = falsify::outputs_of(*call.op);
    for (std::size_t o = 0; o < at.outputs.size(); ++o) {
      const auto found = static_cast<std::size_t>(std::ranges::find(all, at.outputs[o]) - all.begin());
      const auto& values = call.upstream[found];
      at.w[o].assign(at.w[o].size(), 0);
      std::ranges::copy(values, at.w[o].begin());
    }
    falsify::Values<Bounded> kept;
    at.forward<Bounded>(falsify::oracle(call.op->name).bounded, as_inputs(at.x), &kept);
    const auto store = [&](int tensor, std::vector<Bounded>& values) {
      const DType dtype = call.problem.dtype(tensor);
      if (dtype != DType::f32)
        for (Bounded& x : values) x = stored(dtype, x);
    };
    for (std::size_t k = 0; k < kept.size(); ++k) store(at.kept[k], kept[k]);
    std::vector<Bounded> want = at.backward<Bounded>(falsify::backward_oracle(call.op->name).bounded, as_inputs(at.x),
                                                     std::move(kept), as_inputs(at.w));
    store(call.tensors[g], want);
    outcome &= falsify::compare(falsify::Tier::worst_case, fmt::format("d{}", at.info(call.tensors[g]).name),
                                at.shape(call.tensors[g]), call.outputs[g], want, call.problem.dtype(call.tensors[g]));
  }
  return outcome;
}

}  // namespace

bool is_trace(const std::string& folder) { return fs::exists(fs::path(folder) / "trace.json"); }

int check_trace(const std::string& folder, bool as_json) {
  const auto begin = std::chrono::steady_clock::now();
  const Trace trace(folder);
  plugin::Declaration declaration;
  plugin::declare(declaration, trace.index().value("declare", ""), "--declare");
  falsify::Worker idle(std::chrono::seconds(1), 4096);  // runs no kernel
  std::map<std::string, Judged> by_op;
  std::map<std::string, std::size_t> skipped;
  const json not_recorded = trace.index().value("skipped", json::object());
  for (const auto& [what, count] : not_recorded.items()) skipped[what] += count.get<std::size_t>();
  json findings = json::array();
  for (const json& from : trace.index().at("calls")) {
    const TracedCall call = trace.call(from);
    const std::string op(call.op->name);
    if (const auto why = not_admitted(call)) {
      ++skipped[fmt::format("{}: {}", op, *why)];
      continue;
    }
    Kernel kernel;
    kernel.op = call.op->name, kernel.id = call.label;
    kernel.arithmetic = declaration.arithmetic, kernel.storage = call.problem.storage;
    const falsify::Outcome outcome = call.gradients ? judge_gradients(call, kernel) : judge(call, kernel, idle);
    Judged& of_op = by_op[op];
    ++of_op.calls;
    of_op.elements += outcome.elements;
    of_op.worst = std::max(of_op.worst, outcome.worst);
    if (!outcome.finding) continue;
    ++of_op.wrong;
    findings.push_back({{"label", call.label},
                        {"op", op},
                        {"dims", from.at("dims")},
                        {"params", from.at("params")},
                        {"tensor", outcome.finding->tensor},
                        {"index", program::extents(outcome.finding->index)},
                        {"message", outcome.finding->message}});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Judged all;
  json ops = json::object();
  for (const auto& [op, judged] : by_op) {
    all.calls += judged.calls, all.wrong += judged.wrong, all.elements += judged.elements;
    ops[op] = {{"calls", judged.calls},
               {"wrong", judged.wrong},
               {"elements", judged.elements},
               {"worst", falsify::number(judged.worst)}};
  }
  if (all.elements == 0) {
    const auto most = std::ranges::max_element(skipped, {}, [](const auto& s) { return s.second; });
    trace.fail("has no call that could be judged" + (most == skipped.end() ? "" : ", such as " + most->first));
  }
  std::string text =
      fmt::format("{:<24}{:>7}{:>7}{:>11}{:>11}\n", "operation", "calls", "wrong", "elements", "err/bound");
  for (const auto& [op, judged] : by_op)
    text += fmt::format("{:<24}{:>7}{:>7}{:>11}{:>11.3g}\n", op, judged.calls, judged.wrong,
                        falsify::short_count(static_cast<double>(judged.elements)), judged.worst);
  for (const json& f : findings) {
    std::string place;
    for (const json& i : f["index"]) place += fmt::format("{}{}", place.empty() ? "" : ", ", i.dump());
    text +=
        fmt::format("\nWRONG {}  {}\n  element  {}[{}]\n  value    {}\n", f["label"].get<std::string>(),
                    f["op"].get<std::string>(), f["tensor"].get<std::string>(), place, f["message"].get<std::string>());
  }
  if (!skipped.empty()) text += "\nnot judged:\n";
  for (const auto& [what, count] : skipped) text += fmt::format("{:>7}  {}\n", count, what);
  text += fmt::format("\n{} calls: {} right, {} wrong; {} elements in {:.1f} s\n", all.calls, all.calls - all.wrong,
                      all.wrong, falsify::short_count(static_cast<double>(all.elements)), seconds.count());
  if (as_json)
    text = json{{"schema", "assay-checked-trace/1"}, {"ops", ops},  {"skipped", skipped}, {"findings", findings},
                {"seconds", seconds.count()},        {"text", text}}
               .dump(1) +
           "\n";
  fmt::print("{}", text);
  return all.wrong != 0 ? kFalsified : kNothingFalsified;
}

}  // namespace assay::cli
