// Evidence: what a campaign against a kernel came to on the machine that has its device, as a file of the repository.
// The gate accepts it in place of a campaign of its own, for exactly the sources that it was made from.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "falsify/gate/fingerprint.hpp"

namespace assay::falsify {

inline constexpr std::string_view kEvidenceSchema = "assay-evidence/1";
inline constexpr std::string_view kEvidenceFolder = "ci/evidence/";

/// "ci/evidence/softmax/cuda/online.json"; its signature has ".sig" behind that.
std::string evidence_path(std::string_view kernel);

/// Cases drawn for each obligation, below which a campaign is no evidence: the depth of `assay falsify`.
inline constexpr int kLeastDraws = 100;

/// Whether a build ("Release, GNU 12.2.0") is one whose verdict holds for what is shipped: optimized, without
/// sanitizers.
bool is_shipped(std::string_view build);

/// What is not in the result of a campaign.
struct Circumstances {
  std::uint64_t seed = 1;
  int draws = 0;              ///< cases drawn for each obligation
  bool on_processor = false;  ///< the device runs on the host's processor
  std::string driver;         ///< what the system says of the device's driver; empty: what the device says
  std::string build;          ///< how this program was built: "Release, GNU 12.2.0"
  std::string made;           ///< the day, in UTC: "2026-01-31"
};

/// Evidence from the result of a passed campaign (report.hpp, to_json). Has a digest.
nlohmann::json make_evidence(const nlohmann::json& result, const Fingerprint& fingerprint,
                             const Circumstances& circumstances);

/// The one text of evidence: keys in order, an obligation a line.
std::string evidence_text(const nlohmann::json& evidence);

/// Over everything but the digest itself. It shows edits that forgot it; whoever edits can also compute it anew. Only a
/// signature shows who vouches for the figures.
std::string evidence_digest(const nlohmann::json& evidence);

/// Why the text is no evidence at all: not as written by `assay attest`, a wrong digest, figures that contradict each
/// other, too few cases, not passed, an error above its bound. Empty: it is some.
std::string flaw(const std::string& text, std::string_view kernel);

/// Why evidence without a flaw does not hold for the kernel as it is now: other hashes, obligations, device. Empty: it
/// does.
std::string staleness(const nlohmann::json& evidence, const Subject& subject, const Fingerprint& fingerprint);

}  // namespace assay::falsify
