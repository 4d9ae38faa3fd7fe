// Export formats of a report. Each is made from the document alone (report.hpp), so that a report read back from its
// file gives the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay::falsify {

/// JUnit XML: one suite per kernel, one case per obligation; skips carry their reason.
std::string junit_xml(const nlohmann::json& report);

/// SARIF 2.1.0: one run; obligations are its rules, falsified or mistrusted ones its results, located at the line of
/// the kernel's file. Kernels that could not run are notifications.
std::string sarif(const nlohmann::json& report);

/// A single HTML page without external files.
std::string html_page(const nlohmann::json& report);

/// Workflow commands of GitHub, one a line: at most ten errors and ten warnings, GitHub's display limit.
std::string annotations(const nlohmann::json& report);

/// Markdown for the summary of a GitHub step.
std::string step_summary(const nlohmann::json& report);

}  // namespace assay::falsify
