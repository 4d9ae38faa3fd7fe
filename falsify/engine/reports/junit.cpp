// JUnit XML that every reader takes (tests/reports/junit.xsd): in the oldest schema of Jenkins `skipped` has no
// attributes, and `testsuites` has none of that name.
#include <fmt/format.h>

#include <algorithm>

#include "falsify/engine/reports/fields.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

std::string xml_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}
std::string escaped(const json& object, const char* key) { return xml_escape(text_of(object, key)); }

bool failed(const json& o) {
  return o["verdict"] == "falsified" || o["verdict"] == "mistrusted" || o["verdict"] == "thin";
}
bool skipped(const json& o) { return !failed(o) && o["verdict"] != "passed"; }

/// Returns details beyond the message.
std::string body(const json& o) {
  std::string text;
  if (o.contains("if_fails")) text = fmt::format("suspect: {}\n", suspect_of(o));
  if (o.contains("counterexample") && !replay_of(o["counterexample"]).empty())
    text += fmt::format("replay: {}\n", replay_of(o["counterexample"]));
  return xml_escape(text);
}

std::string test_case(const json& kernel, const json& o) {
  std::string inside;
  if (failed(o))
    inside = fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", text_of(o, "verdict"),
                         xml_escape(result_text(o)), body(o));
  else if (skipped(o))
    inside = fmt::format("<skipped>{}: {}</skipped>", text_of(o, "verdict"), xml_escape(o.value("reason", "")));
  return fmt::format("    <testcase classname=\"{}\" name=\"{}: {}\" time=\"{:.3f}\">{}</testcase>\n",
                     escaped(kernel, "kernel"), escaped(o, "id"), escaped(o, "claim"), o["seconds"].get<double>(),
                     inside);
}

/// Figures for the attributes of a suite.
struct Counts {
  std::size_t tests = 0;
  std::ptrdiff_t failures = 0, skips = 0;
};

/// Returns a case for the shortfall of a kernel as a whole, although each of its obligations may have passed.
json shortfall(const json& kernel) {
  const bool thin = kernel["status"] == "thin";
  return {{"id", "depth"},
          {"claim", "the campaign was deep enough for a verdict"},
          {"verdict", thin ? "thin" : "refused"},
          {"reason", kernel["reason"]},
          {"seconds", 0.0}};
}

std::string suite(const json& kernel, Counts& all) {
  json list = kernel["obligations"];
  if (kernel.contains("reason")) list.push_back(shortfall(kernel));
  const Counts counts{list.size(), std::ranges::count_if(list, failed), std::ranges::count_if(list, skipped)};
  std::string cases;
  for (const json& o : list) cases += test_case(kernel, o);
  all.tests += counts.tests, all.failures += counts.failures;
  return fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n{}  "
      "</testsuite>\n",
      escaped(kernel, "kernel"), counts.tests, counts.failures, counts.skips, kernel["seconds"].get<double>(), cases);
}

}  // namespace

std::string junit_xml(const json& report) {
  Counts all;
  std::string suites;
  for (const json& kernel : report["kernels"]) suites += suite(kernel, all);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"assay\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{:.3f}\">\n{}</testsuites>\n",
      all.tests, all.failures, report["seconds"].get<double>(), suites);
}

}  // namespace assay::falsify
