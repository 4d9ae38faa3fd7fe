// Evidence: what a campaign against a kernel came to on the machine that has its device. Each back end that CI lacks
// has a file, with a line of JSON for each kernel in order. The gate accepts a line in place of a campaign of its own,
// for exactly the sources that it was made from.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "falsify/gate/environment.hpp"
#include "falsify/gate/fingerprint.hpp"

namespace assay::falsify {

inline constexpr std::string_view kEvidenceSchema = "assay-evidence/2";
inline constexpr std::string_view kEvidenceFolder = "ci/evidence/";

/// Whether kernels of a back end need evidence: CI runs those of the others itself.
bool needs_evidence(Backend backend);

/// "ci/evidence/cuda.jsonl", for "softmax/cuda/online".
std::string evidence_path(std::string_view kernel);
/// "cuda.jsonl"
std::string evidence_file(std::string_view kernel);

/// A file of evidence, taken apart.
struct EvidenceLines {
  struct Line {
    std::string text;
    int number = 1;
  };
  std::map<std::string, Line> of_kernel;
  std::vector<std::pair<int, std::string>>
      flaws;  ///< number of a line, and why it is none: no JSON with a kernel, or not in order
};
EvidenceLines evidence_lines(const std::string& text);

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
  Environment environment;    ///< of that machine
};

/// A device's description is "NAME (DRIVER)", with parentheses inside either.
std::pair<std::string, std::string> name_and_driver(const std::string& description);

/// Evidence from the result of a passed campaign (report.hpp, to_json). Has a digest.
nlohmann::json make_evidence(const nlohmann::json& result, const Fingerprint& fingerprint,
                             const Circumstances& circumstances);

/// The one text of evidence: its line, with keys in order.
std::string evidence_text(const nlohmann::json& evidence);

/// What a signature, under the key "signature", is of: the line without it.
std::string signed_text(nlohmann::json evidence);

/// Over everything but the digest itself and the signature. It shows edits that forgot it; whoever edits can also
/// compute it anew. Only a signature shows who vouches for the figures.
std::string evidence_digest(const nlohmann::json& evidence);

/// Why the text is no evidence at all: not as written by `assay attest`, a wrong digest, figures that contradict each
/// other, too few cases, not passed, an error above its bound. Empty: it is some.
std::string flaw(const std::string& text, std::string_view kernel);

/// Why evidence without a flaw does not hold for the kernel as it is now: other hashes, obligations, device. Empty: it
/// does.
std::string staleness(const nlohmann::json& evidence, const Subject& subject, const Fingerprint& fingerprint);

/// "compiler GNU 13.2.0, in ci/environment.lock GNU 12.2.0": in what evidence was made otherwise than CI runs, of what
/// can change the kernel. Its driver it names itself. Empty: in nothing.
std::string other_environment(const nlohmann::json& evidence, Backend backend, const Environment& lock);

}  // namespace assay::falsify
