#include "cli/publish.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"

namespace assay::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Appends, because commands of other steps may have written to the file.
void append_summary(const std::string& path, const std::string& text) {
  if (std::filesystem::exists(path)) files::expect_regular(path, "leave GITHUB_STEP_SUMMARY as GitHub sets it");
  std::ofstream file(path, std::ios::app);
  file << text;
  if (!file.flush())
    throw InputError("GITHUB_STEP_SUMMARY=" + path, "the file could not be written", "leave it as GitHub sets it");
}

}  // namespace

Exit exit_code(const nlohmann::json& report) {
  if (falsify::report_failed(report)) return kFalsified;
  if (report["totals"]["thin"] != 0) return kThin;
  const bool foreign = std::ranges::any_of(report["kernels"], [](const auto& k) { return k.contains("foreign"); });
  const nlohmann::json& settings = report["settings"];
  const bool named = foreign || !settings.value("backend", "").empty() || !settings.value("kernel", "").empty();
  return named && (report["totals"]["unavailable"] != 0 || report["totals"]["refused"] != 0) ? kUnavailable
                                                                                             : kNothingFalsified;
}

void announce(const nlohmann::json& report) {
  if (environment("GITHUB_ACTIONS") != "true") return;
  fmt::print(stderr, "{}", falsify::annotations(report));
  if (const std::string path = environment("GITHUB_STEP_SUMMARY"); !path.empty())
    append_summary(path, falsify::step_summary(report));
}

void write_replays_here(nlohmann::json& report) {
  try {
    falsify::write_replays(report, "assay-replays");
  } catch (const InputError& e) {
    fmt::print(stderr, "assay: no replay files were written: {}\n", e.what());
  }
}

void publish(nlohmann::json& report, const std::string& directory, bool as_json) {
  std::optional<InputError> trouble;
  // Write every output even if an earlier one fails.
  const auto attempt = [&](const std::function<void()>& write) {
    try {
      write();
    } catch (const InputError& e) {
      if (!trouble) trouble = e;
    }
  };
  if (!directory.empty()) attempt([&] { falsify::write_report(report, directory); });
  else if (report["totals"]["falsified"] != 0) write_replays_here(report);
  fmt::print("{}", as_json ? report.dump(1) + "\n" : falsify::table(report));
  std::fflush(stdout);
  attempt([&] { announce(report); });
  if (trouble) throw *trouble;
}

}  // namespace assay::cli
