// Evidence: the result of a campaign against a kernel on a machine with its device. Each back end that CI lacks has a
// file, with one line of JSON for each kernel in order. The gate accepts a line instead of running a campaign, for
// exactly the sources that the line was made from.
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

/// True if kernels of a back end need evidence; CI runs the campaigns of the others itself.
bool needs_evidence(Backend backend);

/// Returns "ci/evidence/cuda.jsonl" for "softmax/cuda/online".
std::string evidence_path(std::string_view kernel);
/// Returns "cuda.jsonl".
std::string evidence_file(std::string_view kernel);

/// A parsed file of evidence.
struct EvidenceLines {
  struct Line {
    std::string text;
    int number = 1;
  };
  std::map<std::string, Line> of_kernel;
  std::vector<std::pair<int, std::string>> flaws;  ///< line number and error: not JSON with a kernel, or out of order
};
EvidenceLines evidence_lines(const std::string& text);

/// Minimum number of cases drawn for each obligation of a campaign that is evidence: the depth of `assay falsify`.
inline constexpr int kMinDraws = 100;

/// True if a build ("Release, GNU 12.2.0") has the shipped kind: optimized, without sanitizers.
bool is_shipped(std::string_view build);

/// Facts that are not in the result of a campaign.
struct RunConditions {
  std::uint64_t seed = 1;
  int draws = 0;              ///< cases drawn for each obligation
  bool on_processor = false;  ///< the device runs on the host's processor
  std::string driver;         ///< the system's description of the device's driver; empty: the device's own
  std::string build;          ///< build of this program: "Release, GNU 12.2.0"
  std::string made;           ///< date in UTC: "2026-01-31"
  Environment environment;    ///< of the machine
};

/// Splits a device's description "NAME (DRIVER)"; either part may contain parentheses.
std::pair<std::string, std::string> name_and_driver(const std::string& description);

/// Makes evidence, including its digest, from the result of a passed campaign (report.hpp, to_json).
nlohmann::json make_evidence(const nlohmann::json& result, const Fingerprint& fingerprint,
                             const RunConditions& circumstances);

/// Returns the canonical text of evidence: its line, with keys in order.
std::string evidence_text(const nlohmann::json& evidence);

/// Returns the text covered by the signature under the key "signature": the line without the signature.
std::string signed_text(nlohmann::json evidence);

/// Returns the digest of everything but the digest itself and the signature. The digest detects edits by mistake; a
/// deliberate edit can recompute it. Only a signature shows who vouches for the figures.
std::string evidence_digest(const nlohmann::json& evidence);

/// Returns the reason why the text is no evidence at all: not as written by `assay attest`, a wrong digest,
/// inconsistent figures, too few cases, not passed, an error above its bound. Empty if it is evidence.
std::string flaw(const std::string& text, std::string_view kernel);

/// Returns the reason why valid evidence does not apply to the current kernel: other hashes, obligations, device. Empty
/// if it applies.
std::string staleness(const nlohmann::json& evidence, const Subject& subject, const Fingerprint& fingerprint);

/// Returns "compiler GNU 13.2.0, in ci/environment.lock GNU 12.2.0": differences from CI's environment that can affect
/// the kernel, except the driver, which the evidence names itself. Empty if there are none.
std::string other_environment(const nlohmann::json& evidence, Backend backend, const Environment& lock);

}  // namespace assay::falsify
