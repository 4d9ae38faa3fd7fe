#include "falsify/engine/checkpoint.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "falsify/engine/reports/fields.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

json numbers(const std::vector<double>& list) {
  json array = json::array();
  for (const double x : list) array.push_back(number(x));
  return array;
}

std::vector<double> numbers_from(const json& array) {
  std::vector<double> list;
  for (const json& x : array) list.push_back(number_from(x));
  return list;
}

json errors_json(const ErrorMap& map) {
  return {{"tensor", map.tensor},           {"rows", map.rows},
          {"columns", map.columns},         {"row_step", map.row_step},
          {"column_step", map.column_step}, {"relative", map.relative},
          {"cells", numbers(map.cells)}};
}

ErrorMap errors_from(const json& j) {
  return {.tensor = j.at("tensor"),
          .rows = j.at("rows"),
          .columns = j.at("columns"),
          .row_step = j.at("row_step"),
          .column_step = j.at("column_step"),
          .relative = j.at("relative"),
          .cells = numbers_from(j.at("cells"))};
}

json finding_json(const OpDescriptor& op, const Finding& f) {
  json index = json::array();
  for (int axis = 0; axis < f.index.rank(); ++axis) index.push_back(f.index[axis]);
  json j{{"kind", name(f.kind)}, {"message", f.message},   {"tensor", f.tensor},       {"index", index},
         {"got", number(f.got)}, {"want", number(f.want)}, {"bound", number(f.bound)}, {"outputs", f.outputs}};
  for (const Integers& i : f.integers) j["integers"].push_back({i.tensor, i.count, i.values});
  if (f.errors) j["errors"] = errors_json(*f.errors);
  if (f.call)
    j["call"] = {{"number", f.call->number},     {"of", f.call->of},           {"case", to_json(op, f.call->call)},
                 {"relation", f.call->relation}, {"differs", f.call->differs}, {"alone", f.call->alone}};
  return j;
}

Finding finding_from(const OpDescriptor& op, const json& j, const std::string& where) {
  Finding f{kind_from(j.at("kind").get<std::string>(), where),
            j.at("message"),
            j.at("tensor"),
            {},
            number_from(j.at("got")),
            number_from(j.at("want")),
            number_from(j.at("bound"))};
  for (const json& extent : j.at("index")) f.index.push_back(extent.get<Index>());
  f.outputs = j.at("outputs");
  for (const json& i : j.value("integers", json::array()))
    f.integers.push_back({.tensor = i.at(0), .count = i.at(1), .values = i.at(2)});
  if (j.contains("errors")) f.errors = errors_from(j["errors"]);
  if (j.contains("call")) {
    const json& call = j["call"];
    f.call = FailedCall{.number = call.at("number"),
                        .of = call.at("of"),
                        .call = case_from_json(op, call.at("case"), where),
                        .relation = call.at("relation"),
                        .differs = call.at("differs"),
                        .alone = call.at("alone")};
  }
  return f;
}

json counterexample_json(const OpDescriptor& op, const Counterexample& x) {
  json j{{"first", to_json(op, x.first)},
         {"smallest", to_json(op, x.smallest)},
         {"finding", finding_json(op, x.finding)},
         {"reproduction", x.reproduction},
         {"number", x.number},
         {"shrink_tried", x.shrink_tried},
         {"shrink_seconds", x.shrink_seconds},
         {"shrink_complete", x.shrink_complete},
         {"fails_again", x.fails_again}};
  if (x.first_errors) j["first_errors"] = errors_json(*x.first_errors);
  return j;
}

Counterexample counterexample_from(const OpDescriptor& op, const json& j, const std::string& where) {
  Counterexample x{.first = case_from_json(op, j.at("first"), where),
                   .smallest = case_from_json(op, j.at("smallest"), where),
                   .finding = finding_from(op, j.at("finding"), where),
                   .reproduction = j.at("reproduction"),
                   .number = j.at("number"),
                   .shrink_tried = j.at("shrink_tried"),
                   .shrink_seconds = j.at("shrink_seconds"),
                   .shrink_complete = j.at("shrink_complete"),
                   .fails_again = j.at("fails_again")};
  if (j.contains("first_errors")) x.first_errors = errors_from(j["first_errors"]);
  return x;
}

json coverage_json(const Coverage& c) { return {c.strategies, c.placements, c.regions, c.elements, c.cases}; }
Coverage coverage_from(const json& j) {
  return {.strategies = j.at(0), .placements = j.at(1), .regions = j.at(2), .elements = j.at(3), .cases = j.at(4)};
}

json record_json(const OpDescriptor& op, const ObligationResult& o, const std::vector<double>& ratios) {
  json j{{"id", o.info->id},
         {"verdict", name(o.verdict)},
         {"reason", o.reason},
         {"inapplicable", o.inapplicable},
         {"cases", o.cases},
         {"refused", o.refused},
         {"elements", o.elements},
         {"nonzero", o.nonzero},
         {"evidence", o.evidence},
         {"compared", o.compared},
         {"worst", number(o.worst)},
         {"seconds", o.seconds},
         {"ratios", numbers(ratios)},
         {"tried", coverage_json(o.tried)},
         {"accepted", coverage_json(o.accepted)}};
  if (o.counterexample) j["counterexample"] = counterexample_json(op, *o.counterexample);
  return j;
}

Verdict verdict_from(const std::string& text, const std::string& where) {
  for (const Verdict v : {Verdict::passed, Verdict::falsified, Verdict::mistrusted, Verdict::not_applicable,
                          Verdict::refused, Verdict::unavailable})
    if (name(v) == text) return v;
  throw InputError(where, fmt::format("'{}' is no verdict", text), "delete that line: what it holds is run again");
}

ObligationResult record_from(const OpDescriptor& op, const ObligationInfo& info, const json& j,
                             const std::string& where) {
  ObligationResult o{.info = &info,
                     .verdict = verdict_from(j.at("verdict"), where),
                     .reason = j.at("reason"),
                     .inapplicable = j.at("inapplicable"),
                     .cases = j.at("cases"),
                     .refused = j.at("refused"),
                     .elements = j.at("elements"),
                     .nonzero = j.at("nonzero"),
                     .evidence = j.at("evidence"),
                     .compared = j.at("compared"),
                     .worst = number_from(j.at("worst")),
                     .seconds = j.at("seconds"),
                     .tried = coverage_from(j.at("tried")),
                     .accepted = coverage_from(j.at("accepted")),
                     .counterexample = {}};
  if (j.contains("counterexample")) o.counterexample = counterexample_from(op, j["counterexample"], where);
  return o;
}

Checkpoint parse(const OpDescriptor& op, const CampaignOptions& options, const json& j, const std::string& where) {
  Checkpoint c{.rounds = j.at("rounds"),
               .after = j.at("after"),
               .total = j.at("total"),
               .hangs = j.at("hangs"),
               .so_far = {},
               .ratios = {}};
  c.so_far.device = j.at("device");
  c.so_far.seconds = j.at("seconds");
  c.so_far.floor_seconds = j.at("floor_seconds");
  for (const json& count : j.at("clauses")) c.so_far.clause_counts.push_back(count.get<std::uint64_t>());
  const json& records = j.at("obligations");
  for (const Obligation& obligation : obligations(op.name)) {
    if (!options.only.empty() && obligation.info->id != options.only) continue;
    const json& record = records.at(c.ratios.size());
    if (record.at("id") != obligation.info->id) throw std::out_of_range("an obligation is not the contract's");
    c.so_far.obligations.push_back(record_from(op, *obligation.info, record, where));
    c.ratios.push_back(numbers_from(record.at("ratios")));
  }
  return c;
}

}  // namespace

json to_json(const OpDescriptor& op, const Checkpoint& c) {
  json j{{"rounds", c.rounds},
         {"after", c.after},
         {"total", c.total},
         {"hangs", c.hangs},
         {"device", c.so_far.device},
         {"seconds", c.so_far.seconds},
         {"floor_seconds", c.so_far.floor_seconds},
         {"clauses", c.so_far.clause_counts},
         {"obligations", json::array()}};
  for (std::size_t o = 0; o < c.so_far.obligations.size(); ++o)
    j["obligations"].push_back(record_json(op, c.so_far.obligations[o], c.ratios[o]));
  return j;
}

Checkpoint checkpoint_from_json(const OpDescriptor& op, const CampaignOptions& options, const json& j,
                                const std::string& where) {
  const auto fail = [&](const char* what) -> InputError {
    return {where, fmt::format("holds no checkpoint of {}: {}", op.name, what),
            "delete that line: what it holds is run again"};
  };
  try {
    return parse(op, options, j, where);
  } catch (const json::exception& e) {
    throw fail(e.what());
  } catch (const std::out_of_range& e) {
    throw fail(e.what());
  }
}

}  // namespace assay::falsify
