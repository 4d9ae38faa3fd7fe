#include "falsify/gate/false_alarms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <sstream>
#include <set>

#include "core/errors.hpp"
#include "core/files.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr double kLevel = 0.05;

std::pair<std::string, std::string> key(const json& campaign) {
  return {campaign["kernel"].get<std::string>(), campaign["seed"].get<std::string>()};
}

bool is_campaign(const json& c) {
  return c.is_object() && c.contains("kernel") && c["kernel"].is_string() && c.contains("seed") &&
         c["seed"].is_string() && c.contains("cases") && c["cases"].is_number_unsigned() && c.contains("alarm") &&
         c["alarm"].is_boolean() && (!c.contains("fixed") || (c["fixed"].is_string() && c["alarm"] == true));
}

bool is_fixed(const json& campaign) { return campaign.contains("fixed"); }

}  // namespace

std::size_t Record::add(const json& document, const std::string& where) {
  const json& report = document.is_object() && document.contains("report") ? document["report"] : document;
  const bool right = report.is_object() && report.contains("kernels") && report.contains("settings") &&
                     report["settings"].value("seed", json()).is_string();
  if (!right) throw InputError(where, "is no report", "name the report.json of an `assay falsify --report DIR`");
  std::set<std::pair<std::string, std::string>> known;
  for (const json& c : campaigns) known.insert(key(c));
  const std::size_t before = campaigns.size();
  for (const json& k : report["kernels"]) {
    const std::string status = k["status"].get<std::string>();
    std::uint64_t cases = 0;
    for (const json& o : k["obligations"]) cases += o["cases"].get<std::uint64_t>();
    json campaign{{"kernel", k["kernel"]},
                  {"seed", report["settings"]["seed"]},
                  {"cases", cases},
                  {"alarm", status == "falsified" || status == "mistrusted"}};
    if ((cases > 0 || campaign["alarm"] == true) && known.insert(key(campaign)).second)
      campaigns.push_back(std::move(campaign));
  }
  return campaigns.size() - before;
}

Record read_record(const std::filesystem::path& path) {
  std::istringstream file(files::read(path, "make one with `assay false-alarms --add REPORT`"));
  Record record;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    json campaign = json::parse(line, nullptr, false);
    if (!is_campaign(campaign))
      throw InputError(fmt::format("{}:{}", path.string(), number), "is no recorded campaign",
                       "restore the file, or remove the line");
    record.campaigns.push_back(std::move(campaign));
  }
  return record;
}

std::string record_text(const Record& record) {
  std::string text;
  for (const json& c : record.campaigns) text += c.dump() + "\n";
  return text;
}

FalseAlarms false_alarms(const Record& record, double gate_cases) {
  FalseAlarms result;
  std::set<std::string> kernels, seeds;
  std::int64_t unfixed = 0;
  for (const json& c : record.campaigns) {
    const bool alarm = c["alarm"].get<bool>();
    const auto cases = c["cases"].get<std::int64_t>();
    ++result.campaigns;
    result.cases += cases;
    result.alarms += alarm;
    result.fixed += is_fixed(c);
    unfixed += alarm && !is_fixed(c);
    kernels.insert(c["kernel"].get<std::string>());
    seeds.insert(c["seed"].get<std::string>());
    if (is_fixed(c)) {
      result.counted_campaigns = result.counted_cases = 0;
    } else {
      ++result.counted_campaigns;
      result.counted_cases += cases;
    }
  }
  result.counted_alarms = unfixed;
  result.kernels = kernels.size();
  result.seeds = seeds.size();
  if (result.counted_cases == 0) return result;
  const auto trials = static_cast<double>(std::max(result.counted_cases, unfixed));
  result.per_case =
      boost::math::binomial_distribution<>::find_upper_bound_on_p(trials, static_cast<double>(unfixed), kLevel);
  result.per_gate = -std::expm1(gate_cases * std::log1p(-result.per_case));
  return result;
}

}  // namespace assay::falsify
