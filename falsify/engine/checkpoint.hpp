// Lossless JSON checkpoints of campaigns: a campaign resumed from a checkpoint gives the same report, to the last
// digit, as an uninterrupted one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {

nlohmann::json to_json(const OpDescriptor& op, const Checkpoint& checkpoint);

/// Parses a campaign's checkpoint, whose obligations must be those of `options`. Throws InputError, naming `where`, if
/// the document is no such checkpoint.
Checkpoint checkpoint_from_json(const OpDescriptor& op, const CampaignOptions& options, const nlohmann::json& json,
                                const std::string& where);

}  // namespace assay::falsify
