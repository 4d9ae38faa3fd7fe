// Merges the reports of the shards of a run that was split over several machines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// A report and its file, for messages.
struct ShardReport {
  std::string file;
  nlohmann::json report;
};

/// Returns the report of the whole run: verdicts, totals and clauses of all shards together; `seconds` is the longest
/// shard's. Throws InputError naming the files if the reports are not the shards of one run, if a shard is missing or
/// occurs twice, or if a kernel is in no shard or in two.
/// Clauses that were never evaluated are judged here alone: one shard may evaluate what another does not reach.
nlohmann::json merge_reports(const std::vector<ShardReport>& shards);

}  // namespace assay::falsify
