// Finds the failed call of a check that makes several calls.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "falsify/engine/trial.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify {
namespace {

/// Number of other calls whose difference is reported.
constexpr std::size_t kMaxTold = 3;

/// Returns the bits with a fixed NaN: the payload of a computed NaN is unspecified.
std::uint32_t plain_bits(float x) { return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x); }

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, plain_bits, plain_bits);
}

bool same(const Problem& a, const Problem& b) {
  return a.dims == b.dims && a.params == b.params &&
         std::ranges::equal(a.values, b.values, [](const auto& x, const auto& y) { return same(x, y); });
}

/// Returns p if `other` is `values` times 2^p; 0 if `other` is no such multiple.
int power_between(const std::vector<float>& values, const std::vector<float>& other) {
  const auto one = std::ranges::find_if(values, [](float x) { return x != 0 && std::isfinite(x); });
  if (one == values.end()) return 0;
  const float there = other[static_cast<std::size_t>(one - values.begin())];
  if (there == 0 || !std::isfinite(there)) return 0;
  const int power = std::ilogb(there) - std::ilogb(*one);
  return std::ranges::equal(
             values, other, {}, [power](float x) { return plain_bits(std::ldexp(x, power)); }, plain_bits)
             ? power
             : 0;
}

bool is_reordering(std::vector<float> a, std::vector<float> b) {
  const auto by_bits = [](std::vector<float>& v) { std::ranges::sort(v, {}, plain_bits); };
  by_bits(a), by_bits(b);
  return same(a, b);
}

/// Describes the difference of `other` from `failed`, as "m=0, 2^4 times x"; empty if there is none.
std::string difference(const OpDescriptor& op, const Problem& other, const Problem& failed) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (other.dims[d] != failed.dims[d]) add(fmt::format("{}={}", op.dims[d].name, other.dims[d]));
  for (std::size_t p = 0; p < op.params.size(); ++p)
    if (other.params[p] != failed.params[p]) add(fmt::format("{}={}", op.params[p].name, other.params[p]));
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    const std::vector<float>&there = other.values[t], &here = failed.values[t];
    if (there.size() != here.size() || same(there, here)) continue;  // different sizes were reported with the dims
    const std::string_view name = op.tensors[t].name;
    if (const int power = power_between(here, there); power != 0) add(fmt::format("2^{} times {}", power, name));
    else if (is_reordering(there, here)) add(fmt::format("{} in another order", name));
    else add(fmt::format("other values of {}", name));
  }
  return text;
}

std::size_t position_of(const Shape& shape, const Shape& index) {
  Index at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) at = at * shape[axis] + index[axis];
  return static_cast<std::size_t>(at);
}

bool within(const Shape& index, const Shape& shape) {
  if (index.rank() != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (index[axis] >= shape[axis]) return false;
  return true;
}

/// Returns the index of the output with this name in Run::outputs; the number of outputs if there is none.
std::size_t output_named(const OpDescriptor& op, std::string_view tensor) {
  const std::vector<int> outputs = outputs_of(op);
  const auto named = [&](int t) { return op.tensors[static_cast<std::size_t>(t)].name == tensor; };
  return static_cast<std::size_t>(std::ranges::find_if(outputs, named) - outputs.begin());
}

/// Lists the integers of a problem except bytes, which are packed numbers without meaning to a reader.
std::vector<Integers> integers_of(const Problem& problem) {
  std::vector<Integers> list;
  for (std::size_t t = 0; t < problem.values.size(); ++t) {
    const TensorInfo& info = problem.op->tensors[t];
    if (info.role != Role::in || info.dtype != DType::i32) continue;
    const std::vector<float>& values = problem.values[t];
    const auto first = values.begin(),
               last = first + static_cast<std::ptrdiff_t>(std::min(values.size(), Integers::kMost));
    list.push_back({.tensor = std::string(info.name), .count = values.size(), .values = {first, last}});
  }
  return list;
}

/// True if an unwritten output would show: not if it holds an input or zeros before the call.
bool poisoned(const Kernel& kernel, int output) {
  if (kernel.limits == nullptr) return true;
  const Limits& limits = *kernel.limits;
  return std::ranges::find(limits.zeroed, output) == limits.zeroed.end() && limits.gives(output) &&
         std::ranges::find(limits.starts_as, output, &std::pair<int, int>::first) == limits.starts_as.end();
}

/// True if comparing that call with the oracle gives the same finding.
bool matches_oracle_finding(const Finding& finding, const Outcome& compared) {
  return compared.finding && compared.finding->tensor == finding.tensor && compared.finding->index == finding.index &&
         compared.finding->kind == finding.kind;
}

}  // namespace

std::size_t Trial::find_failed(Finding& finding, bool& alone) const {
  const std::size_t last = calls_.size() - 1;
  const std::size_t output = output_named(op_, finding.tensor);
  // memory, crashes: the last call, during which the failure occurred
  alone = last == 0 || finding.tensor.empty() || !calls_[last].run;
  if (alone || output == outputs_of(op_).size()) return last;
  const auto holds = [&](const MadeCall& made) {
    return within(finding.index, made.problem.shape(outputs_of(op_)[output]));
  };
  const auto gave = [&](const MadeCall& made) {
    if (!made.run || !holds(made)) return false;
    const float x = made.run->outputs[output][position_of(made.problem.shape(outputs_of(op_)[output]), finding.index)];
    return plain_bits(x) == plain_bits(static_cast<float>(finding.got));
  };
  std::optional<std::size_t> wrong;
  std::optional<Finding> own;
  for (std::size_t i = 0; i <= last; ++i) {
    if (!calls_[i].run || (wrong && (gave(calls_[*wrong]) || !gave(calls_[i])))) continue;
    const Outcome outcome = against_oracle(tier(calls_[i].problem), calls_[i].problem, *calls_[i].run);
    if (outcome.finding) wrong = i, own = outcome.finding;
  }
  if (wrong) {
    const bool same_element = own->tensor == finding.tensor && own->index == finding.index && gave(calls_[*wrong]);
    if (!same_element) own->message += fmt::format(" (the check: {})", finding.message);
    finding = *own;
    alone = true;
    return *wrong;
  }
  for (std::size_t i = last + 1; i-- > 0;)
    if (gave(calls_[i])) return i;
  for (std::size_t i = last + 1; i-- > 0;)
    if (calls_[i].run && holds(calls_[i])) return i;
  return last;
}

bool Trial::not_written(MadeCall made, const Finding& finding) {
  const std::size_t output = output_named(op_, finding.tensor);
  if (output == outputs_of(op_).size() || !made.run) return false;
  const int tensor = outputs_of(op_)[output];
  const Shape shape = made.problem.shape(tensor);
  if (op_.tensors[static_cast<std::size_t>(tensor)].role != Role::out || !within(finding.index, shape)) return false;
  if (!poisoned(kernel_, tensor)) return false;
  const std::size_t at = position_of(shape, finding.index);
  const auto held = [&](Poison poison, float now) {
    return std::bit_cast<std::uint32_t>(stage(made.problem, poison).read(tensor)[at]) ==
           std::bit_cast<std::uint32_t>(now);
  };
  if (!held(made.poison, made.run->outputs[output][at])) return false;
  // With 8-bit elements a result may equal the poison by chance: confirm with the other poison.
  const Poison other = made.poison == Poison::nan ? Poison::finite : Poison::nan;
  try {
    const Run again = run(made.problem, other);
    last_.reset();
    return held(other, again.outputs[output][at]);
  } catch (const Interrupted&) {
  } catch (const Unavailable&) {
  } catch (const DeadlineReached&) {}
  return false;
}

void Trial::explain(Finding& finding) {
  for (const MadeCall& made : calls_)
    for (const auto& values : made.run ? made.run->outputs : std::vector<std::vector<float>>{})
      for (const float x : values) finding.outputs = scramble(finding.outputs ^ plain_bits(x));
  if (calls_.empty()) return;
  bool alone = false;
  const std::size_t failed = find_failed(finding, alone), of = calls_.size();
  last_.reset();  // its tensors will be overwritten
  if (not_written(calls_[failed], finding)) {
    finding.kind = Finding::Kind::not_written;
    finding.message = fmt::format("still holds what it held before the call, want {}", finding.want);
  }
  calls_.resize(of);
  const MadeCall& made = calls_[failed];
  finding.integers = integers_of(made.problem);
  if (of == 1 && same(made.problem, problem())) return;
  if (of == 1 && made.run)
    alone = matches_oracle_finding(finding, against_oracle(tier(made.problem), made.problem, *made.run));
  FailedCall& call = finding.call.emplace(FailedCall{.number = static_cast<int>(failed) + 1,
                                                     .of = static_cast<int>(of),
                                                     .call = case_,
                                                     .relation = {},
                                                     .differs = false,
                                                     .alone = alone});
  call.call.dims = made.problem.dims;
  call.call.params = made.problem.params;
  call.call.region = -1;
  std::size_t count = 0;
  for (const auto& values : made.problem.values) count += values.size();
  call.call.values = count > 0 && count <= kMaxValues ? made.problem.values : std::vector<std::vector<float>>{};
  std::vector<std::pair<std::string, std::vector<std::size_t>>> told;  // descriptions, with the calls each applies to
  for (std::size_t i = 0, count = 0; i < of && count < kMaxTold; ++i) {
    if (i == failed) continue;
    ++count;
    const std::string differs = difference(op_, calls_[i].problem, made.problem);
    call.differs = call.differs || !differs.empty();
    const std::string says = !differs.empty()                  ? differs
                             : calls_[i].poison != made.poison ? "the same over other contents of the outputs"
                                                               : "the same";
    const auto same = std::ranges::find(told, says, &decltype(told)::value_type::first);
    if (same != told.end()) same->second.push_back(i + 1);
    else told.push_back({says, {i + 1}});
  }
  for (const auto& [says, calls] : told) {
    const bool several = calls.size() > 1, differs = !says.starts_with("the same");
    call.relation +=
        fmt::format("{}{} {} {} {}", call.relation.empty() ? "" : "; ", several ? "calls" : "call",
                    fmt::join(calls, " and "), several ? (differs ? "have" : "are") : (differs ? "has" : "is"), says);
  }
}

}  // namespace assay::falsify
