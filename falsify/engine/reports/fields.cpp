#include "falsify/engine/reports/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "falsify/engine/draw.hpp"
#include "falsify/engine/report.hpp"

namespace assay::falsify {

using nlohmann::json;

std::string text_of(const json& object, const char* key) { return object.at(key).get<std::string>(); }

std::vector<Judged> judged(const json& report, std::string_view verdict) {
  std::vector<Judged> found;
  for (const json& k : report["kernels"])
    for (const json& o : k["obligations"])
      if (o["verdict"] == verdict) found.push_back({k, o});
  return found;
}

std::vector<Judged> explained(const json& report) {
  std::vector<Judged> found;
  for (const Judged& j : judged(report, "falsified"))
    if (!j.kernel.contains("explanation") || j.kernel["explanation"]["obligation"] == j.obligation["id"])
      found.push_back(j);
  return found;
}

std::string other_failed_obligations(const json& kernel) {
  std::string text;
  if (kernel.contains("explanation"))
    for (const json& id : kernel["explanation"]["also_fails"])
      text += (text.empty() ? "" : ", ") + id.get<std::string>();
  return text;
}

std::string element_of(const json& finding) {
  if (!finding.contains("tensor")) return {};
  std::string index;
  for (const json& i : finding["index"]) index += (index.empty() ? "" : ", ") + i.dump();
  return fmt::format("{}[{}]", text_of(finding, "tensor"), index);
}

namespace {

/// Returns the failed call, as a case.
const json& called(const json& counterexample) {
  const json& finding = counterexample["finding"];
  return finding.contains("call") ? finding["call"]["case"] : counterexample["case"];
}

std::string list_of(const json& words) {
  std::string text;
  for (const json& x : words) {
    const std::string word = x.get<std::string>();
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        word.starts_with("nan") ? word : fmt::format("{}", std::strtof(word.c_str(), nullptr)));
  }
  return text;
}

}  // namespace

std::string inputs_of(const json& counterexample) {
  std::map<std::string, std::string> lists;
  const json none = json::object(), &c = called(counterexample), &finding = counterexample["finding"];
  for (const auto& [tensor, list] : (c.contains("values") ? c["values"] : none).items()) lists[tensor] = list_of(list);
  for (const auto& [tensor, integers] : (finding.contains("integers") ? finding["integers"] : none).items()) {
    const auto values = integers["values"].get<std::vector<std::int64_t>>();
    lists[tensor] = fmt::format("{}{}", fmt::join(values, ", "), values.size() < integers["count"] ? ", ..." : "");
  }
  for (const auto& [tensor, at] : (finding.contains("at_element") ? finding["at_element"] : none).items()) {
    std::string index, values;
    for (const json& i : at["index"])
      index += fmt::format("{}{}", index.empty() ? "" : ", ", i.is_null() ? ":" : i.dump());
    for (const json& x : at["values"])
      values += fmt::format("{}{}", values.empty() ? "" : ", ", static_cast<float>(number_from(x)));
    const std::string name = index.empty() ? tensor : fmt::format("{}[{}]", tensor, index);
    lists[name] = values + (at["values"].size() < at["count"] ? ", ..." : "");
  }
  std::string text;
  for (const auto& [tensor, list] : lists) text += fmt::format("{}{} = [{}]", text.empty() ? "" : ", ", tensor, list);
  return text;
}

std::string call_of(const json& counterexample) {
  if (!counterexample["finding"].contains("call")) return {};
  const json& call = counterexample["finding"]["call"];
  if (call["of"] == 1) return {};  // the call is the case's
  return fmt::format("{} of {} of the check{}{}", call["number"].dump(), call["of"].dump(),
                     call["relation"] == "" ? "" : "; ", text_of(call, "relation"));
}

namespace {

bool has_gaps(const json& layout) { return layout != "tight" && layout != "offset"; }

/// True if the shrinker also tried the smallest case with dense tensors.
bool passes_when_dense(const json& x) {
  return has_gaps(x["case"].value("layout", json("tight"))) && x["shrink"].value("tried", 0) > 1 &&
         x["shrink"].value("complete", false);
}

}  // namespace

std::string strides_of(const json& kernel, const json& x) {
  std::string text;
  const json none = json::object(), &finding = x["finding"];
  for (const auto& [tensor, strides] : (finding.contains("strides") ? finding["strides"] : none).items())
    text += fmt::format("{}{} [{}]", text.empty() ? "" : ", ", tensor,
                        fmt::join(strides.get<std::vector<std::int64_t>>(), ", "));
  if (text.empty()) return text;
  const bool far = x["case"].value("layout", "") == "far_rows";
  text += " (in elements)";
  if (passes_when_dense(x))
    text += fmt::format("; passes where rows are dense: {} in some path",
                        far ? "an offset is cut to 32 bits, or strides are ignored," : "strides are ignored");
  if (far && kernel.contains("foreign") && kernel["foreign"].contains("shim"))
    text += "; if it takes none so far apart, add `requires: [offsets below 2^31]` to the shim";
  return text;
}

std::string race_of(const json& counterexample) {
  if (!counterexample.contains("race")) return {};
  const json& race = counterexample["race"];
  if (race["order"] == race["other"])
    return fmt::format(
        "the same call gives other results in another run ({}): threads race, or memory is read before it is written",
        text_of(race, "other_gives"));
  return fmt::format("threads race: under order {} it fails so, under order {} {}", text_of(race, "order"),
                     text_of(race, "other"), text_of(race, "other_gives"));
}

namespace {

/// True if the sum is empty and the result is not the expected zero.
bool begins_elsewhere(const json& counterexample) {
  const json &finding = counterexample["finding"], &c = called(counterexample);
  if (!c.contains("dims") || !finding.contains("want") || finding["want"] != 0 || finding["bound"] != 0) return false;
  return std::ranges::any_of(c["dims"], [](const json& extent) { return extent == 0; });
}

/// True if all inputs of the call are known and finite.
bool has_finite_inputs(const json& c) {
  if (!c.contains("values")) return false;
  const auto finite = [](const json& x) { return std::isfinite(std::strtof(x.get<std::string>().c_str(), nullptr)); };
  return std::ranges::all_of(c["values"], [&](const json& list) { return std::ranges::all_of(list, finite); });
}

/// True if an element differs from the oracle's in a check of another claim. With several calls: one of them is wrong
/// by itself. With special inputs: the error does not need special inputs. With a single call: the error is beyond a
/// bound or a class, since other errors may be the subject of the check.
bool differs_from_oracle(const json& obligation) {
  const json &x = obligation["counterexample"], &finding = x["finding"], &by = obligation["by"];
  if (!finding.contains("tensor") || finding["kind"] == "not written" || by == "exact" || by == "differential" ||
      by == "large")
    return false;
  const bool beyond_bound = finding["kind"] == "value" && number_from(finding.value("bound", json(0))) > 0;
  const bool of_any_inputs = beyond_bound || (finding["kind"] == "class" && has_finite_inputs(called(x)));
  if (by == "nonfinite") return of_any_inputs;
  if (!finding.contains("call") || finding["call"]["alone"] == false) return false;
  return finding["call"]["of"] > 1 || (of_any_inputs && by != "statistical");
}

/// Returns a simpler claim if the finding contradicts only a part of the obligation's claim; otherwise empty. `by:
/// frame` also claims that everything is written, `by: large` that large sizes are right.
std::string other_claim(const json& obligation) {
  if (!obligation.contains("counterexample")) return {};
  const json &x = obligation["counterexample"], &finding = x["finding"], &c = called(x);
  const auto large = [](const json& extent) { return extent >= kMinLarge; };
  if (obligation["by"] == "large" && c.contains("dims") && std::ranges::none_of(c["dims"], large))
    return "every element is right, whatever the size";
  if (differs_from_oracle(obligation)) return "every element is right";
  if (obligation["by"] != "frame" || !finding.contains("tensor") || finding["kind"] == "not written") return {};
  return finding.contains("call") && finding["call"]["alone"] == false
             ? "the result does not depend on what the output held"
             : "every element is right";
}

/// True if the kernel produces a NaN instead of propagating one.
bool makes_nan(const json& obligation) {
  const json& finding = obligation["counterexample"]["finding"];
  return obligation["by"] == "nonfinite" && finding["kind"] == "class" && std::isnan(number_from(finding["got"])) &&
         std::isfinite(number_from(finding["want"]));
}

}  // namespace

std::string claim_of(const json& obligation) {
  const std::string other = other_claim(obligation);
  return other.empty() ? text_of(obligation, "claim") : other;
}

namespace {

/// Suspects of calls that failed or crashed, by words of their message; the first that fits.
struct Cause {
  std::string_view words, suspect;
};
constexpr Cause kCauses[] = {
    {"race on shared memory", "a missing barrier between a write to shared memory and another thread's access"},
    {"barrier divergence",
     "a barrier in a branch, or behind an early return, that only some threads of the block reach"},
    {"warp divergence", "a warp operation in a branch, or behind an early return, that only some lanes reach"},
    {"warp mask", "a mask that does not name exactly the lanes that take part, as in a tail or behind an early return"},
    {"misaligned address",
     "a vector load or store in rows that begin at any element: its address must be a multiple of its size"},
    {"inline PTX",
     "nothing that the kernel computes: cuda-host cannot run this, so give it an `#if` or falsify on a device"},
    {"cudaErrorIllegalAddress", "an index, a stride or a size that leads outside the tensors"},
    {"cudaErrorMemoryAllocation", "memory that grows too fast with these dims, or that earlier calls keep"},
    {"VK_ERROR_OUT_OF_", "memory that grows too fast with these dims, or that earlier calls keep"},
    {"GiB of memory that they may add", "memory that calls allocate and never free"},
    {"exited with status", "a call of exit(), or an error that a library answers by ending the process"},
    {"cudaErrorInvalid", "the launch configuration at these dims: its grid, its block, or its shared memory"},
    {"kernel launch failed", "the launch configuration at these dims: its grid, its block, or its shared memory"},
    {"another rounding mode or treatment of subnormals",
     "a rounding mode or flush-to-zero that is set and not restored"},
};

std::string suspect_of_call(const json& counterexample, std::string_view kind) {
  const std::string message = text_of(counterexample["finding"], "message");
  for (const Cause& cause : kCauses)
    if (message.find(cause.words) != std::string::npos) return std::string(cause.suspect);
  if (kind == "crash")
    return "an index, a stride or a size that leads outside the tensors, or a limit of the kernel's own that these dims pass";
  const bool in_python =
      counterexample.contains("foreign") && counterexample["foreign"].value("library", "").ends_with(".py");
  return in_python ? "the function's own error: a shape, a type or a size that it does not expect"
                   : "the function's own error: a check in it, or in a library that it calls, rejects this call";
}

}  // namespace

std::string suspect_of(const json& obligation) {
  if (!obligation.contains("counterexample")) return text_of(obligation, "if_fails");
  const json& x = obligation["counterexample"];
  if (x.contains("race"))
    return "threads that share memory without a lock, a barrier or an atomic, or memory that nothing initialized";
  const std::string kind = text_of(x["finding"], "kind");
  if (kind == "crash" || kind == "error") return suspect_of_call(x, kind);
  if (kind == "hang") return "a loop that does not end at these dims, or threads that wait for each other";
  if (kind == "out of bounds" || kind == "late write")
    return "a tail, a stride or a padded tile that stores past the tensor";
  const std::string again = text_of(x, "reproduction");
  if (again.ends_with("timing or earlier calls decide"))
    return "threads that share memory without order, or state that earlier calls leave behind";
  if (again.starts_with("in a fresh process after a call"))
    return "state that an earlier call leaves behind: a buffer, a flag or a table made for other dims";
  if (begins_elsewhere(x))
    return "a sum that does not begin at zero: an output, an accumulator or a workspace that nothing initializes";
  if (!other_claim(obligation).empty()) return "the formula, an index or the precision";
  return text_of(obligation, "if_fails") +
         (makes_nan(obligation) ? "; or NaN made on the way: inf - inf, 0 * inf, 0 / 0" : "");
}

namespace {
std::string& program() {
  static std::string name = "assay";
  return name;
}
}  // namespace

void set_program(std::string name) { program() = std::move(name); }

std::string replay_of(const json& counterexample) {
  return counterexample.contains("file") ? program() + " replay " + text_of(counterexample, "file") : "";
}

namespace {

/// Removes "... is unavailable": a device reports the refusal of a call in the same words, but the kernel is available.
std::string own_words(const json& kernel, std::string text) {
  const std::string said = kernel.value("kernel", "") + " is unavailable: ";
  if (const std::size_t at = text.find(said); at != std::string::npos) text.erase(at, said.size());
  return text;
}

}  // namespace

std::string refusal_text(const json& kernel) {
  const json* most = nullptr;
  for (const json& o : kernel["obligations"])
    if (o.value("refused", 0) > 0 && !o.value("reason", "").empty() &&
        (most == nullptr || o["refused"] > (*most)["refused"]))
      most = &o;
  std::string text = most == nullptr ? "" : own_words(kernel, text_of(*most, "reason"));
  std::ranges::replace(text, '\n', ' ');
  constexpr std::size_t kShort = 100;
  if (text.size() <= kShort) return text;
  // a continuation byte of UTF-8
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t end = kShort;
  while (end > 0 && continues(text[end])) --end;
  return text.substr(0, end) + "...";
}

namespace {

std::string own_reason(const json& kernel) {
  if (kernel.contains("reason")) return text_of(kernel, "reason");
  for (const json& o : kernel["obligations"])
    if (o["verdict"] == kernel["status"] && !o.value("reason", "").empty()) return text_of(o, "reason");
  return {};
}

}  // namespace

std::string shortfall_text(const json& kernel) {
  const std::string reason = kernel["status"] == "refused" ? own_words(kernel, own_reason(kernel)) : own_reason(kernel);
  const bool shim = kernel.contains("foreign") && kernel["foreign"].contains("shim");
  if (reason.empty() || !shim || kernel["status"] != "refused") return reason;
  return "say in the shim what it takes (`requires: [...]`), and cases are drawn so; " + reason;
}

std::string result_text(const json& obligation) {
  if (!obligation.contains("counterexample")) return obligation.value("reason", "");
  const json& x = obligation["counterexample"];
  return fmt::format("{} ({})", text_of(x["finding"], "message"), text_of(x, "says"));
}

json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double number_from(const json& x) {
  return x.is_string() ? std::strtod(x.get<std::string>().c_str(), nullptr) : x.get<double>();
}

std::string totals_line(const json& report) {
  const json& t = report["totals"];
  return fmt::format(
      "{} kernels: {} passed, {} falsified, {} mistrusted, {} thin, {} refused, {} unavailable; "
      "{} cases, {} output elements in {:.1f} s",
      t["kernels"].dump(), t["passed"].dump(), t["falsified"].dump(), t["mistrusted"].dump(), t["thin"].dump(),
      t["refused"].dump(), t["unavailable"].dump(), t["cases"].dump(), short_count(t["elements"].get<double>()),
      report["seconds"].get<double>());
}

std::string short_count(double n) {
  if (n < 10'000) return fmt::format("{:.0f}", n);
  if (n < 10'000'000) return fmt::format("{:.1f}k", n / 1e3);
  return fmt::format("{:.1f}M", n / 1e6);
}

std::string figure(const json& x) {
  return x.is_number() ? fmt::format("{:.3g}", x.get<double>()) : x.get<std::string>();
}

}  // namespace assay::falsify
