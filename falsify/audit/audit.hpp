// `assay audit`: compares a kernel's arithmetic as measured by probes with its declaration. The document of one kernel
// is its audit.json.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "falsify/engine/worker.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify::audit {

/// {"kernel", "op", "declared", "sums": [{"says", "order", "accumulator", ...}], "batch_invariant", "deterministic",
/// "statistical_tier": {"used", "justified"}, "disagreements": [{"property", "says"}], "verdict"}; verdict is "agrees",
/// "disagrees", "refused", "failed" or "unavailable". A property is {"value", "probe"} or {"not_applicable": why}.
nlohmann::json audit(const OpDescriptor& op, const Kernel& kernel, std::chrono::milliseconds limit);

/// Formats one line a sum for people.
std::string table(const nlohmann::json& report);

}  // namespace assay::falsify::audit
