// The report of a run that was split over several machines, put together from those of its shards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

/// A report and where it was read, for messages.
struct ShardReport {
  std::string file;
  nlohmann::json report;
};

/// What the whole run would have reported: verdicts, totals and clauses are those of all shards together, `seconds` is the longest
/// shard's. Throws InputError naming the files where the reports are not the shards of one run, each once and none
/// missing, or where a kernel of the whole is in none of them or in two.
/// Clauses that were never evaluated are judged here alone: one shard may evaluate what another does not reach.
nlohmann::json merge_reports(const std::vector<ShardReport>& shards);

}  // namespace assay::falsify
