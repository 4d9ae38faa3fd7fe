#include "falsify/gate/gate.hpp"

#include <fmt/format.h>

#include <optional>

#include "contract/descriptor.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/signature.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr std::string_view kSuffix = ".json";

/// The kernels that evidence in a tree is for, by the names of its files.
std::set<std::string> carried(const Tree& tree) {
  std::set<std::string> kernels;
  for (const std::string& path : tree.below(kEvidenceFolder))
    if (path.ends_with(kSuffix))
      kernels.insert(path.substr(kEvidenceFolder.size(), path.size() - kEvidenceFolder.size() - kSuffix.size()));
  return kernels;
}

bool same_file(const Tree& one, const Tree& other, const std::string& path) {
  const std::string* a = one.find(path);
  const std::string* b = other.find(path);
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

/// Kernels of a back end that this build lacks are known by their evidence alone.
std::optional<Subject> by_name(const std::string& kernel) {
  const std::size_t first = kernel.find('/'), second = kernel.find('/', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  const std::string op = kernel.substr(0, first), backend = kernel.substr(first + 1, second - first - 1);
  if (backend != name(Backend::cuda)) return std::nullopt;
  for (const OpDescriptor* known : operations())
    if (known->name == op) return Subject{op, kernel, Backend::cuda, fmt::format("kernels/cuda/{}.cu", op)};
  return std::nullopt;
}

/// Why the file is no evidence; empty: it is, and `figures` is what it holds.
std::string file_flaw(const Tree& now, const std::string& kernel, const std::filesystem::path& signers, json& figures) {
  const std::string path = evidence_path(kernel);
  const std::string* text = now.find(path);
  if (text == nullptr) return fmt::format("there is no evidence: {} is missing", path);
  if (const std::string why = flaw(*text, kernel); !why.empty()) return fmt::format("{}: {}", path, why);
  if (!signers.empty()) {
    const std::string* signature = now.find(path + ".sig");
    if (signature == nullptr) return fmt::format("{} is not signed: {}.sig is missing", path, path);
    if (const std::string why = signature_flaw(*text, *signature, signers); !why.empty())
      return fmt::format("{}: {}", path, why);
  }
  figures = json::parse(*text);
  return "";
}

/// What evidence of a kernel is looked at for.
enum class Need {
  nothing,
  figures,  ///< to be no forgery: the kernel itself is falsified here
  proof,    ///< to hold for the kernel as it is
};

Need need(Backend backend, bool changed, bool edited, bool had, bool has, const EvidenceRules& rules) {
  if (!changed && !edited) return Need::nothing;
  if (rules.proven_here.contains(backend)) return edited && has ? Need::figures : Need::nothing;
  return had || has || !rules.runs_here.contains(backend) ? Need::proof : Need::nothing;
}

Checked check(const Subject& subject, Need need, const Fingerprint& fingerprint, const Tree& now,
              const std::filesystem::path& signers) {
  Checked checked{subject.id, false, {}, {}};
  checked.reason = file_flaw(now, subject.id, signers, checked.figures);
  if (checked.reason.empty() && need == Need::proof)
    if (const std::string why = staleness(checked.figures, subject, fingerprint); !why.empty())
      checked.reason = fmt::format("{} is stale: {}", evidence_path(subject.id), why);
  checked.accepted = checked.reason.empty();
  if (!checked.accepted)
    checked.reason +=
        fmt::format("; renew it with `assay attest --kernel {}{}`", subject.id, signers.empty() ? "" : " --key KEY");
  return checked;
}

}  // namespace

std::vector<Touched> touched(const std::vector<Subject>& all, const Tree& base, const Tree& now) {
  Fingerprints then(base), current(now);
  std::vector<Touched> list;
  for (const Subject& subject : all) {
    Fingerprint fingerprint = current.of(subject);
    Difference why = difference(then.of(subject), fingerprint);
    if (!why.none()) list.push_back({subject, std::move(fingerprint), std::move(why)});
  }
  return list;
}

std::vector<Checked> check_evidence(const std::vector<Subject>& all, const std::vector<Touched>& touched,
                                    const Tree& base, const Tree& now, const EvidenceRules& rules) {
  const std::set<std::string> before = carried(base), after = carried(now);
  std::set<std::string> known, changed;
  for (const Subject& s : all) known.insert(s.id);
  for (const Touched& t : touched) changed.insert(t.subject.id);
  Fingerprints fingerprints(now), then(base);
  std::vector<Subject> subjects = all;
  std::vector<Checked> list;
  for (const std::string& kernel : after) {
    if (known.contains(kernel)) continue;
    if (auto subject = by_name(kernel)) {
      if (!difference(then.of(*subject), fingerprints.of(*subject)).none()) changed.insert(kernel);
      subjects.push_back(std::move(*subject));
    } else {
      list.push_back({kernel,
                      false,
                      fmt::format("{} is for a kernel that does not exist: remove the file", evidence_path(kernel)),
                      {}});
    }
  }
  for (const Subject& s : subjects) {
    const std::string path = evidence_path(s.id);
    const bool edited = !same_file(base, now, path) || !same_file(base, now, path + ".sig");
    const Need needed =
        need(s.backend, changed.contains(s.id), edited, before.contains(s.id), after.contains(s.id), rules);
    if (needed != Need::nothing) list.push_back(check(s, needed, fingerprints.of(s), now, rules.signers));
  }
  return list;
}

json refused_entry(const Checked& c) {
  const std::size_t first = c.kernel.find('/'), second = c.kernel.find('/', first + 1);
  return {{"op", c.kernel.substr(0, first)},
          {"kernel", c.kernel},
          {"backend", c.kernel.substr(first + 1, second - first - 1)},
          {"device", ""},
          {"source", evidence_path(c.kernel)},
          {"line", 1},
          {"arithmetic", ""},
          {"status", "mistrusted"},
          {"seconds", 0.0},
          {"clauses", json::array()},
          {"obligations",
           {{{"id", "evidence"},
             {"claim", "there is evidence for exactly these sources"},
             {"by", "evidence"},
             {"if_fails", "sources changed after the evidence was made, or the file was edited"},
             {"verdict", "mistrusted"},
             {"cases", 0},
             {"refused", 0},
             {"elements", 0},
             {"nonzero", 0},
             {"worst", 0.0},
             {"typical", 0.0},
             {"seconds", 0.0},
             {"reason", c.reason}}}}};
}

}  // namespace assay::falsify
