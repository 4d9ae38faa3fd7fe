#include "falsify/audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "falsify/audit/fitted.hpp"
#include "falsify/audit/judge.hpp"
#include "falsify/audit/rows.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::audit {
namespace {

using nlohmann::json;

template <class T, class F>
json property(const Property<T>& p, F value) {
  if (!p.value) return {{"not_applicable", p.why_not}};
  json j{{"value", value(*p.value)}};
  if (!p.probe.empty()) j["probe"] = p.probe;
  return j;
}
json property(const Property<bool>& p) {
  return property(p, [](bool x) { return x; });
}
json property(const Property<int>& p) {
  return property(p, [](int x) { return x; });
}
json property(const Property<SeenRounding>& p) {
  return property(p, [](SeenRounding x) { return name(x); });
}

json order(const Property<Tree>& p) {
  if (!p.value) return {{"not_applicable", p.why_not}};
  return {{"value", words(*p.value)},
          {"depth", depth(*p.value)},
          {"widest", widest(*p.value)},
          {"hash", hash(*p.value)},
          {"tree", canonical(*p.value)}};
}

json to_json(const Sum& sum, const Measured& m) {
  return {{"says", sum.says},
          {"terms", sum.count},
          {"dims", sum.dims},
          {"order", order(m.order)},
          {"accumulator_bits", property(m.accumulator_bits)},
          {"rounding", property(m.rounding)},
          {"input_bits", property(m.input_bits)},
          {"input_rounding", property(m.input_rounding)},
          {"fma", property(m.fused)},
          {"flushes",
           {{"inputs", property(m.flushes_inputs)},
            {"products", property(m.flushes_products)},
            {"results", property(m.flushes_results)}}}};
}

/// Returns the dims at which rows are compared: those of the sums, and one set with column counts that no tile divides.
std::vector<std::vector<Index>> row_dims(const OpDescriptor& op, const Kernel& kernel, const Subject& subject) {
  std::vector<std::vector<Index>> list;
  const auto add = [&](std::vector<Index> dims) {
    make_valid(op, dims);
    if (const std::vector<Index> taken = admitted_dims(op, kernel, dims); !taken.empty()) dims = taken;
    if (std::ranges::find(list, dims) == list.end()) list.push_back(std::move(dims));
  };
  if (!subject.dims.empty()) add(subject.dims);
  for (const Sum& sum : subject.sums) add(sum.dims);
  if (list.empty()) add(std::vector<Index>(op.dims.size(), 64));
  if (op.dims.size() <= 3) {
    std::vector<Index> odd = list.front();
    for (std::size_t d = 1; d < odd.size(); ++d)
      odd[d] = std::clamp<Index>(d % 2 == 1 ? 300 : 33, op.dims[d].min, op.dims[d].max);
    add(odd);
  }
  return list;
}

class Audit {
 public:
  Audit(const OpDescriptor& op, const Kernel& kernel, std::chrono::milliseconds limit)
      : op_(op), kernel_(kernel), worker_(limit, std::size_t{1} << 28) {
    report_ = {{"schema", "assay-audit/1"},
               {"kernel", kernel.id},
               {"op", op.name},
               {"backend", name(kernel.backend)},
               {"declared", to_string(kernel.arithmetic)},
               {"sums", json::array()},
               {"disagreements", json::array()},
               {"refused", json::array()}};
  }

  json run() {
    const Subject subject = audit::subject(op_.name);
    if (!subject.no_sums.empty()) report_["no_sums"] = subject.no_sums;
    try {
      for (const Sum& sum : subject.sums) {
        const auto refused = [&](std::string_view why) {
          report_["refused"].push_back(fmt::format("{}: {}", sum.says, why));
        };
        if (is_absent(sum.result.tensor))
          refused(fmt::format("the kernel does not give {}",
                              op_.tensors[static_cast<std::size_t>(sum.result.tensor)].name));
        else if (!at_admitted_dims(sum)) refused("no result shows its terms at the dims that the kernel takes");
      }
      weakest_sum();
      rows(subject);
    } catch (const Unavailable& e) {
      report_["verdict"] = "unavailable";
      report_["reason"] = e.why;
      return report_;
    }
    const bool used = statistical_tier_used(kernel_.arithmetic);
    report_["statistical_tier"] = {{"used", used}, {"justified", justified_}};
    if (failed_) report_["verdict"] = "failed";
    else if (!report_["disagreements"].empty()) report_["verdict"] = "disagrees";
    else if (report_["sums"].empty() && !subject.sums.empty()) report_["verdict"] = "refused";
    else if (report_["sums"].empty() && !measured("batch_invariant") && !measured("deterministic"))
      report_["verdict"] = "not measured";
    else report_["verdict"] = "agrees";
    report_["device"] = worker_.device();
    return report_;
  }

 private:
  bool measured(const char* property) const {
    const auto at = report_.find(property);
    return at != report_.end() && at->contains("value");
  }

  /// Runs f; a refusal is reported, and a failure of the kernel fails the audit.
  template <class F>
  void attempt(F f, std::string_view what) {
    try {
      f();
    } catch (const Interrupted& e) {
      if (e.outcome.kind == Outcome::Kind::refused) {
        report_["refused"].push_back(fmt::format("{}: {}", what, e.outcome.reason));
        return;
      }
      failed_ = true;
      disagree("kernel",
               fmt::format("{}: {}", what, e.outcome.finding ? e.outcome.finding->message : e.outcome.reason));
    }
  }

  /// Returns false if no result shows this sum at the dims that the kernel takes.
  bool at_admitted_dims(const Sum& sum) {
    const std::optional<Sum> taken = fitted(op_, kernel_, sum);
    if (taken) attempt([&] { one_sum(*taken); }, sum.says);
    return taken.has_value();
  }

  /// True if the kernel does not write the tensor, so that the oracle's values stand in (Limits::absent).
  bool is_absent(int tensor) const { return kernel_.limits != nullptr && !kernel_.limits->gives(tensor); }

  void disagree(std::string_view property, std::string_view says) {
    report_["disagreements"].push_back({{"property", property}, {"says", says}});
  }

  void one_sum(const Sum& sum) {
    Prober prober(op_, kernel_, sum, worker_);
    Worker idle(std::chrono::seconds(1), std::size_t{1} << 20);  // runs nothing
    Prober exact(op_, kernel_, sum, oracle_runner(op_, kernel_, idle));
    const Measured m = measure(prober, exact);
    report_["sums"].push_back(to_json(sum, m));
    std::set<std::string> measured;
    if (m.rounding.value && sum.count > 2) measured.insert("rounding");
    if (m.order.value && sum.count > 2) measured.insert("block");
    if (m.accumulator_bits.value) measured.insert("accumulator");
    if (m.input_bits.value && sum.count > 1) measured.insert("inputs");
    for (const Disagreement& d : compare(kernel_, sum, m)) {
      measured.erase(d.property);
      if (d.holds_more) holds_more_.push_back(d);
      else disagree(d.property, d.says);
    }
    as_declared_.merge(measured);
    if (sum.count > 1 && m.rounding.value) justified_ = justified_ && statistical_tier_justified(m);
  }

  void rows(const Subject& subject) {
    Property<bool> batch, runs;
    batch.why_not = subject.no_rows;
    for (const std::vector<Index>& dims : row_dims(op_, kernel_, subject)) {
      if (batch.value != false && subject.no_rows.empty())
        attempt([&] { batch = batch_invariant(op_, kernel_, dims, worker_); }, "rows alone and within a batch");
      if (runs.value != false)
        attempt([&] { runs = deterministic(op_, kernel_, dims, worker_); }, "the same call again");
    }
    clear_if_refused(batch), clear_if_refused(runs);
    report_["batch_invariant"] = property(batch);
    report_["deterministic"] = property(runs);
    const bool pinned =
        std::ranges::any_of(op_.pins, [](const PinInfo& pin) { return pin.name == "batch_invariance"; });
    if (batch.value == false && (pinned || kernel_.batch_invariant))
      disagree(
          "batch_invariance",
          (pinned ? "the contract pins batch invariance: " : "declares the same bits in every batch: ") + batch.probe);
    if (kernel_.deterministic && runs.value == false)
      disagree("determinism", "declares the same bits in every run: " + runs.probe);
  }

  /// Reports a property as a disagreement if every sum holds more of it than declared.
  void weakest_sum() {
    for (const Disagreement& d : holds_more_)
      if (!as_declared_.contains(d.property)) disagree(d.property, d.says);
  }

  static void clear_if_refused(Property<bool>& p) {
    if (!p.value && p.why_not.empty()) p.why_not = "the kernel refused the call";
  }

  const OpDescriptor& op_;
  const Kernel& kernel_;
  Worker worker_;
  json report_;
  std::vector<Disagreement> holds_more_;
  std::set<std::string> as_declared_;  ///< properties that some sum has exactly as declared
  bool failed_ = false, justified_ = true;
};

std::string cell(const json& property, std::string_view yes = "yes", std::string_view no = "no") {
  if (!property.contains("value")) return "-";
  const json& value = property["value"];
  return value.is_boolean()  ? std::string(value.get<bool>() ? yes : no)
         : value.is_string() ? value.get<std::string>()
                             : value.dump();
}

/// Lists the flushed ones among inputs, products and results.
std::string flushed(const json& flushes) {
  std::string text;
  bool known = false;
  for (const auto& [what, property] : flushes.items()) {
    known = known || property.contains("value");
    if (property.contains("value") && property["value"].get<bool>()) text += (text.empty() ? "" : ", ") + what;
  }
  return text.empty() ? (known ? "kept" : "-") : text + " flushed";
}

void print(std::string& text, const json& kernel) {
  text += fmt::format("{}  {}\n", kernel["kernel"].get<std::string>(),
                      kernel["verdict"] == "unavailable" ? "unavailable: " + kernel["reason"].get<std::string>()
                                                         : kernel["verdict"].get<std::string>());
  if (kernel["verdict"] == "unavailable") return;
  if (kernel.contains("no_sums")) text += fmt::format("  no sums: {}\n", kernel["no_sums"].get<std::string>());
  for (const json& sum : kernel["sums"]) {
    const json& order = sum["order"];
    const std::string tree = order.contains("hash")
                                 ? fmt::format("{}; depth {}, tree {}", order["value"].get<std::string>(),
                                               order["depth"].get<int>(), order["hash"].get<std::string>())
                                 : "no order: " + order["not_applicable"].get<std::string>();
    text += fmt::format("  {}, {} term{}: {}\n", sum["says"].get<std::string>(), sum["terms"].get<int>(),
                        sum["terms"] == 1 ? "" : "s", tree);
    text += fmt::format("    accumulator {} bits, rounding {}; inputs {} bits{}; products {}; subnormals {}\n",
                        cell(sum["accumulator_bits"]), cell(sum["rounding"]), cell(sum["input_bits"]),
                        sum["input_rounding"].contains("value") ? " (" + cell(sum["input_rounding"]) + ")" : "",
                        cell(sum["fma"], "fused", "rounded"), flushed(sum["flushes"]));
  }
  for (const json& refused : kernel["refused"]) text += fmt::format("  refused  {}\n", refused.get<std::string>());
  const json& batch = kernel["batch_invariant"];
  text +=
      fmt::format("  batch invariant: {}{}; same bits in every run: {}; statistical bound: {}\n", cell(batch),
                  batch.contains("probe")            ? " (" + batch["probe"].get<std::string>() + ")"
                  : batch.contains("not_applicable") ? " (" + batch["not_applicable"].get<std::string>() + ")"
                                                     : "",
                  cell(kernel["deterministic"]), kernel["statistical_tier"]["used"].get<bool>() ? "used" : "not used");
  for (const json& d : kernel["disagreements"])
    text += fmt::format("  DISAGREES  {}: {}\n", d["property"].get<std::string>(), d["says"].get<std::string>());
}

}  // namespace

json audit(const OpDescriptor& op, const Kernel& kernel, std::chrono::milliseconds limit) {
  return Audit(op, kernel, limit).run();
}

std::string table(const json& report) {
  std::string text;
  for (const json& kernel : report["kernels"]) print(text, kernel);
  const json& totals = report["totals"];
  text += fmt::format("\n{} kernels: {} agree, {} disagree, {} failed, {} refused, {} not measured, {} unavailable\n",
                      report["kernels"].size(), totals["agrees"].dump(), totals["disagrees"].dump(),
                      totals["failed"].dump(), totals["refused"].dump(), totals["not measured"].dump(),
                      totals["unavailable"].dump());
  return text;
}

}  // namespace assay::falsify::audit
