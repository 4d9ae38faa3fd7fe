// Checkpoints of campaigns as JSON, without loss: a campaign that is taken up from one gives the report, to the last
// digit, of one that was never interrupted.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "falsify/engine/campaign.hpp"

namespace assay::falsify {

nlohmann::json to_json(const OpDescriptor& op, const Checkpoint& checkpoint);

/// A campaign's checkpoint, whose obligations must be those of `options`. Throws InputError, naming `where`, if it is not one.
Checkpoint checkpoint_from_json(const OpDescriptor& op, const CampaignOptions& options, const nlohmann::json& json, const std::string& where);

}  // namespace assay::falsify
