// Results as data: one JSON document, from which every other format is made (reports/formats.hpp), replay files, and a
// table for the terminal.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {

inline constexpr std::string_view kReportSchema = "assay-report/1";
inline constexpr std::string_view kReplaySchema = "assay-replay/1";

/// Returns all findings of a campaign against one kernel, as one JSON object. `status` is the kernel's.
nlohmann::json to_json(const OpDescriptor& op, const KernelResult& result);

/// Returns the whole report of a run over several kernels: totals, and clauses that were never evaluated (not judged if
/// settings["obligation"] names one obligation or settings["shard"] a shard). `exit_code` is 0, 1 or 4, until a command
/// overrides it.
nlohmann::json make_report(std::vector<nlohmann::json> kernels, const nlohmann::json& settings, double seconds);

/// Reads a report written by write_report(). Throws InputError naming the file, the error and its place, unless it is
/// valid by falsify/report.schema.json.
nlohmann::json read_report(const std::filesystem::path& file);

/// True if something was falsified or mistrusted, or a clause was never evaluated.
bool report_failed(const nlohmann::json& report);

/// Sets how this program was started, for the commands that reports name; "assay" unless called.
void set_program(std::string program);

/// Formats the report for a terminal: one line per kernel, then each finding with its case and replay command.
std::string table(const nlohmann::json& report);

/// Throws InputError unless files can be written to the folder, which is created if missing: checked before a campaign,
/// not after it.
void expect_writable(const std::filesystem::path& directory);

/// Writes report.json, junit.xml, assay.sarif, report.html and replay/*.json into `directory` and puts each replay
/// file's path into the report. Throws InputError if a file cannot be written.
void write_report(nlohmann::json& report, const std::filesystem::path& directory);
/// Writes replay files only.
void write_replays(nlohmann::json& report, const std::filesystem::path& directory);

}  // namespace assay::falsify
