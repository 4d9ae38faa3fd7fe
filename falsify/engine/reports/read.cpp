// Reads reports back and validates them against the published schema.
#include <fmt/format.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/embedded.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr const char* kRemedy = "name a report.json that `assay falsify --report` wrote";

const valijson::Schema& schema() {
  static const valijson::Schema* const parsed = [] {
    auto* schema = new valijson::Schema;
    const json document = json::parse(embedded::report_schema);
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document), *schema);
    return schema;
  }();
  return *parsed;
}

/// Describes the first error, innermost first: "kernels.3.line: ..."; empty if there is none.
std::string problem_of(const json& document) {
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema(), valijson::adapters::NlohmannJsonAdapter(document), &results)) return {};
  std::string place, says;
  valijson::ValidationResults::Error error;
  std::size_t deepest = 0;
  while (results.popError(error)) {
    if (error.context.size() <= deepest) continue;
    deepest = error.context.size();
    place.clear();
    for (std::size_t i = 1; i < error.context.size(); ++i) {  // "[kernels]" after "<root>"
      const std::string& step = error.context[i];
      place += fmt::format("{}{}", place.empty() ? "" : ".", step.substr(1, step.size() - 2));
    }
    says = error.description;
  }
  while (!says.empty() && says.back() == '.') says.pop_back();
  return place.empty() ? says : fmt::format("{}: {}", place, says);
}

}  // namespace

json read_report(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& problem, const std::string& remedy = kRemedy) {
    throw InputError(path.string(), problem, remedy);
  };
  const std::string text = files::read(path, kRemedy);
  json report;
  try {
    report = json::parse(text);
  } catch (const json::parse_error& e) {
    fail(fmt::format("is not JSON: {}", e.what()));
  }
  if (report.is_object() && report.contains("schema") && report["schema"].is_string() &&
      report["schema"] != kReportSchema)
    fail(fmt::format("has the schema '{}'", report["schema"].get<std::string>()),
         fmt::format("this version reads {}", kReportSchema));
  if (const std::string problem = problem_of(report); !problem.empty()) fail(problem);
  return report;
}

}  // namespace assay::falsify
