#include "falsify/gate/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "contract/descriptor.hpp"
#include "core/errors.hpp"
#include "falsify/gate/evidence.hpp"
#include "falsify/gate/signature.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

using Lines = std::map<std::string, EvidenceLines::Line>;

/// Returns the lines of evidence of a tree, by kernel; reports invalid lines in `strays`.
Lines carried(const Tree& tree, std::vector<Checked>* strays = nullptr) {
  Lines all;
  for (const std::string& path : tree.below(kEvidenceFolder)) {
    EvidenceLines lines = evidence_lines(*tree.find(path));
    const auto stray = [&](std::string kernel, int line, std::string why) {
      if (strays != nullptr)
        strays->push_back(
            {std::move(kernel), false, fmt::format("{}:{}: {}: remove the line", path, line, why), {}, path, line});
    };
    for (const auto& [line, why] : lines.flaws) stray(fmt::format("{}:{}", path, line), line, why);
    for (auto& [kernel, line] : lines.of_kernel) {
      if (path == evidence_path(kernel)) all[kernel] = std::move(line);
      else stray(kernel, line.number, fmt::format("evidence of this kernel belongs into {}", evidence_path(kernel)));
    }
  }
  return all;
}

const std::string* text_of(const Lines& lines, const std::string& kernel) {
  const auto at = lines.find(kernel);
  return at == lines.end() ? nullptr : &at->second.text;
}

/// Makes the subject of a kernel that this build lacks from its id in the evidence.
std::optional<Subject> by_name(const std::string& kernel) {
  const std::size_t first = kernel.find('/'), second = kernel.find('/', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  const std::string op = kernel.substr(0, first), backend = kernel.substr(first + 1, second - first - 1);
  if (backend != name(Backend::cuda)) return std::nullopt;
  for (const OpDescriptor* known : operations())
    if (known->name == op) return Subject{op, kernel, Backend::cuda, fmt::format("kernels/cuda/{}.cu", op)};
  return std::nullopt;
}

/// Returns the reason why a line is no evidence; empty if it is, with its contents in `figures`.
std::string line_flaw(const std::string& text, const std::string& kernel, const std::filesystem::path& signers,
                      json& figures) {
  if (std::string why = flaw(text, kernel); !why.empty()) return why;
  figures = json::parse(text);
  if (signers.empty()) return "";
  if (!figures.contains("signature")) return "it is not signed";
  return signature_flaw(signed_text(figures), figures["signature"].get<std::string>(), signers);
}

/// The back end in a kernel's id.
std::string backend_in(const std::string& kernel) {
  const std::size_t first = kernel.find('/') + 1;
  return kernel.substr(first, kernel.find('/', first) - first);
}

/// Required check of a kernel's evidence.
enum class Need {
  nothing,
  figures,  ///< not forged: the kernel itself is falsified here
  proof,    ///< valid for the kernel as it is now
};

Need need(Backend backend, bool changed, bool edited, bool had, bool has, const EvidenceRules& rules) {
  if (!changed && !edited) return Need::nothing;
  if (rules.proven_here.contains(backend)) return edited && has ? Need::figures : Need::nothing;
  return had || has || !rules.runs_here.contains(backend) ? Need::proof : Need::nothing;
}

/// `agreement`: the reason for which a stale line is accepted; null: none is.
Checked check(const Subject& subject, Need need, const Fingerprint& fingerprint, const Lines& lines,
              const Environment& lock, const std::filesystem::path& signers, const std::string* agreement) {
  bool missing = false;
  Checked checked{subject.id, false, {}, {}, evidence_path(subject.id)};
  if (const auto at = lines.find(subject.id); at == lines.end()) {
    missing = true;
    checked.reason = fmt::format("there is no evidence: {} has no line of it", checked.path);
  } else {
    checked.line = at->second.number;
    const std::string place = fmt::format("{}:{}", checked.path, checked.line);
    if (const std::string why = line_flaw(at->second.text, subject.id, signers, checked.figures); !why.empty()) {
      checked.reason = fmt::format("{}: {}", place, why);
    } else if (const std::string old = need == Need::proof ? staleness(checked.figures, subject, fingerprint) : "";
               !old.empty()) {
      if (agreement != nullptr)
        checked.warning = fmt::format("sources that have changed since, as agreed: {}", *agreement);
      else checked.reason = fmt::format("{} is stale: {}", place, old);
    }
  }
  checked.accepted = checked.reason.empty();
  if (checked.accepted && checked.warning.empty())
    checked.warning = other_environment(checked.figures, subject.backend, lock);
  if (!checked.accepted)
    checked.reason += fmt::format("; {} it with `assay attest --kernel {}{}`", missing ? "make" : "renew", subject.id,
                                  signers.empty() ? "" : " --key KEY");
  return checked;
}

bool same_sources(const Tree& one, const Tree& other) {
  const auto next = [](auto at, const Tree& tree) {
    while (at != tree.files.end() && at->first.starts_with(kEvidenceFolder)) ++at;
    return at;
  };
  auto a = next(one.files.begin(), one), b = next(other.files.begin(), other);
  for (; a != one.files.end() && b != other.files.end(); a = next(++a, one), b = next(++b, other))
    if (*a != *b) return false;
  return a == one.files.end() && b == other.files.end();
}

}  // namespace

std::vector<ChangedKernel> touched(const std::vector<Subject>& all, const Tree& base, const Tree& now,
                                   const Environment& machine) {
  Fingerprints current(now);
  // Even if no source differs, an unresolved include is not proven unchanged.
  std::optional<Fingerprints> other;
  if (!same_sources(base, now)) other.emplace(base);
  Fingerprints& then = other ? *other : current;
  const Environment lock = lock_of(now);
  std::set<std::string> entries;
  for (const auto& names : {changed_entries(lock_of(base), lock), changed_packages(base, now),
                            lock.empty() ? std::vector<std::string>() : differing(lock, machine)})
    entries.insert(names.begin(), names.end());
  std::vector<ChangedKernel> list;
  for (const Subject& subject : all) {
    Fingerprint fingerprint = current.of(subject);
    Difference why = difference(then.of(subject), fingerprint);
    for (const std::string& entry : entries)
      if (touches(entry, subject.backend)) why.environment.push_back(entry);
    if (!why.none()) list.push_back({subject, std::move(fingerprint), std::move(why)});
  }
  return list;
}

Agreements agreements(const std::vector<std::string>& trailers, const std::vector<Subject>& all) {
  Agreements found;
  for (const std::string& text : trailers) {
    const std::size_t colon = text.find(": ");
    const std::string what = text.substr(0, colon);
    const bool known = what == name(Backend::cuda) || what == name(Backend::vulkan) || by_name(what) ||
                       std::ranges::any_of(all, [&](const Subject& s) { return s.id == what; });
    if (colon == std::string::npos || !known)
      throw InputError(fmt::format("Gate-agree: {}", text),
                       "names no kernel and no back end with evidence, or gives no reason",
                       "write 'Gate-agree: WHAT: REASON' with WHAT a kernel's id, cuda or vulkan");
    found[what] = text.substr(colon + 2);
  }
  return found;
}

const std::string* agreed(const Agreements& agreements, const std::string& kernel) {
  auto at = agreements.find(kernel);
  if (at == agreements.end()) at = agreements.find(backend_in(kernel));
  return at == agreements.end() ? nullptr : &at->second;
}

std::vector<Checked> check_evidence(const std::vector<Subject>& all, const std::vector<ChangedKernel>& touched,
                                    const Tree& base, const Tree& now, const EvidenceRules& rules) {
  std::vector<Checked> list;
  const Lines before = carried(base), after = carried(now, &list);
  const Environment lock = lock_of(now);
  std::set<std::string> known, changed;
  for (const Subject& s : all)
    if (needs_evidence(s.backend)) known.insert(s.id);
  for (const ChangedKernel& t : touched) changed.insert(t.subject.id);
  Fingerprints fingerprints(now), then(base);
  std::vector<Subject> subjects = all;
  for (const auto& [kernel, line] : after) {
    if (known.contains(kernel)) continue;
    if (auto subject = by_name(kernel)) {
      if (!difference(then.of(*subject), fingerprints.of(*subject)).none()) changed.insert(kernel);
      subjects.push_back(std::move(*subject));
    } else {
      const std::string path = evidence_path(kernel);
      list.push_back({kernel,
                      false,
                      fmt::format("{}:{} is for a kernel that does not exist, or that CI runs itself: remove the line",
                                  path, line.number),
                      {},
                      path,
                      line.number});
    }
  }
  for (const Subject& s : subjects) {
    if (!needs_evidence(s.backend)) continue;
    const std::string* was = text_of(before, s.id);
    const std::string* is = text_of(after, s.id);
    const bool edited = was == nullptr || is == nullptr ? was != is : *was != *is;
    const Need needed = need(s.backend, changed.contains(s.id), edited, was != nullptr, is != nullptr, rules);
    // Only what the base holds may be stale: evidence made for this change is evidence of its sources.
    const std::string* agreement = edited ? nullptr : agreed(rules.agreements, s.id);
    if (needed != Need::nothing)
      list.push_back(check(s, needed, fingerprints.of(s), after, lock, rules.signers, agreement));
  }
  return list;
}

std::map<std::string, json> recorded(const Tree& tree) {
  std::map<std::string, json> all;
  for (const auto& [kernel, line] : carried(tree)) {
    json e = json::parse(line.text, nullptr, false);
    if (e.is_object() && e.value("obligations", json()).is_array()) all[kernel] = std::move(e);
  }
  return all;
}

json refused_entry(const Checked& c) {
  const std::size_t first = c.kernel.find('/'), second = c.kernel.find('/', first + 1);
  return {{"op", c.kernel.substr(0, first)},
          {"kernel", c.kernel},
          {"backend", c.kernel.substr(first + 1, second - first - 1)},
          {"device", ""},
          {"source", c.path},
          {"line", c.line},
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
