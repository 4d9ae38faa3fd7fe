// The gate: which kernels a change touches, what is to be done about each, and whether their evidence holds. Runs
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

/// Cases that the gate draws for each obligation, if the time allows: ten times the depth of `assay falsify`.
inline constexpr int kGateDraws = 1000;

/// A kernel whose fingerprint differs between the two trees.
struct Touched {
  Subject subject;
  Fingerprint fingerprint;  ///< as it is now
  Difference why;
};

/// Those of `now` that differ from `base`, in their sources or in the environment that ci/environment.lock and ci/setup
/// say, or that run on a machine which is not as the lock says. Of a kernel that `base` lacks, every part differs.
std::vector<Touched> touched(const std::vector<Subject>& all, const Tree& base, const Tree& now,
                             const Environment& machine);

/// What became of the evidence of one kernel.
struct Checked {
  std::string kernel;
  bool accepted = false;
  std::string reason;      ///< why not
  nlohmann::json figures;  ///< the evidence, where it is accepted
  std::string path{};      ///< of the file, and the line in it
  int line = 1;
  std::string warning{};  ///< of accepted evidence: in what it was made otherwise than CI runs
};

/// Reasons for which reviewers accept that evidence is stale or that a kernel refuses more, by kernel or back end.
using Agreements = std::map<std::string, std::string>;

/// Agreements from trailers of commits ("Gate-agree: WHAT: REASON"; WHAT is a kernel or a back end). Throws InputError where one
/// names neither or gives no reason.
Agreements agreements(const std::vector<std::string>& trailers, const std::vector<Subject>& all);

/// The reason agreed to for a kernel or its back end; null: none.
const std::string* agreed(const Agreements& agreements, const std::string& kernel);

struct EvidenceRules {
  std::set<Backend> proven_here;  ///< back ends whose campaigns on this machine are what evidence would show
  std::set<Backend> runs_here;    ///< back ends that run here at all
  std::filesystem::path signers;  ///< file of allowed signers; empty: signatures are not looked at
  Agreements agreements{};        ///< accept stale lines of evidence that the base holds unchanged
};

/// Checks the evidence of kernels that are touched or whose evidence is not that of `base`:
/// - required of touched kernels that cannot run here, and of those that run here on a stand-in (Vulkan on the
///   processor) once they carry some;
/// - of kernels that are proven here only that what they carry is no forgery: its figures are the ledger's.
/// Evidence for kernels that do not exist, or that CI runs itself, is refused, and so is what is no line of evidence.
std::vector<Checked> check_evidence(const std::vector<Subject>& all, const std::vector<Touched>& touched,
                                    const Tree& base, const Tree& now, const EvidenceRules& rules);

/// The evidence that a tree holds, by kernel, as far as it can be read.
std::map<std::string, nlohmann::json> recorded(const Tree& tree);

/// An entry of a report (report.hpp) for evidence that was refused, so that it is counted and shown like any failure.
nlohmann::json refused_entry(const Checked& checked);

}  // namespace assay::falsify
