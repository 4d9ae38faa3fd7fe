// The gate: determines the kernels that a change touches, the action for each, and the validity of their evidence. Runs
// nothing.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "falsify/gate/environment.hpp"
#include "falsify/gate/fingerprint.hpp"

namespace assay::falsify {

/// Cases that the gate draws for each obligation, if time permits: ten times the depth of `assay falsify`.
inline constexpr int kGateDraws = 1000;

/// A kernel whose fingerprint differs between the two trees.
struct ChangedKernel {
  Subject subject;
  Fingerprint fingerprint;  ///< current
  Difference why;
};

/// Returns the kernels of `now` that differ from `base` in their sources or in the environment of ci/environment.lock
/// and ci/setup, or that run on a machine that differs from the lock. For a kernel that `base` lacks, every part
/// differs.
std::vector<ChangedKernel> touched(const std::vector<Subject>& all, const Tree& base, const Tree& now,
                                   const Environment& machine);

/// Result of checking the evidence of one kernel.
struct Checked {
  std::string kernel;
  bool accepted = false;
  std::string reason;      ///< if not accepted
  nlohmann::json figures;  ///< the evidence, if accepted
  std::string path{};      ///< of the file, and the line in it
  int line = 1;
  std::string warning{};  ///< for accepted evidence: differences from CI's environment
};

/// Reasons for which reviewers accept that evidence is stale or that a kernel refuses more, by kernel or back end.
using Agreements = std::map<std::string, std::string>;

/// Agreements from trailers of commits ("Gate-agree: WHAT: REASON"; WHAT is a kernel or a back end). Throws InputError
/// where one names neither or gives no reason.
Agreements agreements(const std::vector<std::string>& trailers, const std::vector<Subject>& all);

/// The reason agreed to for a kernel or its back end; null: none.
const std::string* agreed(const Agreements& agreements, const std::string& kernel);

struct EvidenceRules {
  std::set<Backend> proven_here;  ///< back ends whose campaigns on this machine prove as much as evidence
  std::set<Backend> runs_here;    ///< back ends that run here at all
  std::filesystem::path signers;  ///< file of allowed signers; empty: signatures are not checked
  Agreements agreements{};        ///< accept stale lines of evidence that the base holds unchanged
};

/// Checks the evidence of kernels that are touched or whose evidence differs from that of `base`:
/// - required for touched kernels that cannot run here, and for those with evidence that run here on a stand-in (Vulkan
///   on the processor);
/// - for kernels that are proven here, checked only against forgery: its figures feed the ledger.
/// Refuses evidence for kernels that do not exist or that CI runs itself, and lines that are no evidence.
std::vector<Checked> check_evidence(const std::vector<Subject>& all, const std::vector<ChangedKernel>& touched,
                                    const Tree& base, const Tree& now, const EvidenceRules& rules);

/// Returns the readable evidence of a tree, by kernel.
std::map<std::string, nlohmann::json> recorded(const Tree& tree);

/// Makes a report entry (report.hpp) for refused evidence, so that it is counted and shown like any failure.
nlohmann::json refused_entry(const Checked& checked);

}  // namespace assay::falsify
