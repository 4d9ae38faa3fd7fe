#include "falsify/gate/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "falsify/engine/obligation.hpp"
#include "system/sha256.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Totals over the obligations that passed.
struct Totals {
  std::int64_t cases = 0, refused = 0, elements = 0;
  double worst = 0;

  explicit Totals(const json& obligations) {
    for (const json& o : obligations) {
      cases += o["cases"].get<std::int64_t>();
      refused += o["refused"].get<std::int64_t>();
      elements += o["elements"].get<std::int64_t>();
      worst = std::max(worst, o["worst"].get<double>());
    }
  }
};

/// Error of the evidence parser; `says` is its message.
struct Flaw {
  std::string says;
};

enum class Kind { text, count, ratio, truth };

void expect(const json& object, const std::string& where, const std::vector<std::pair<std::string, Kind>>& keys,
            const std::set<std::string>& optional) {
  for (const auto& [key, kind] : keys) {
    if (!object.contains(key)) throw Flaw{fmt::format("the key '{}{}' is missing", where, key)};
    const json& value = object[key];
    const bool right = kind == Kind::text    ? value.is_string()
                       : kind == Kind::count ? value.is_number_integer() && value.get<std::int64_t>() >= 0
                       : kind == Kind::ratio ? value.is_number()
                                             : value.is_boolean();
    if (!right) throw Flaw{fmt::format("the key '{}{}' is not of its type", where, key)};
  }
  for (const auto& [key, value] : object.items())
    if (!optional.contains(key) && std::ranges::none_of(keys, [&](const auto& k) { return k.first == key; }))
      throw Flaw{fmt::format("the key '{}{}' is unknown", where, key)};
}

void expect_obligation(const json& o) {
  if (!o.is_object()) throw Flaw{"an obligation is no object"};
  expect(o, "obligations.",
         {{"id", Kind::text},
          {"verdict", Kind::text},
          {"cases", Kind::count},
          {"refused", Kind::count},
          {"elements", Kind::count},
          {"nonzero", Kind::count},
          {"worst", Kind::ratio},
          {"typical", Kind::ratio}},
         {"reason"});
  const std::string id = o["id"].get<std::string>(), verdict = o["verdict"].get<std::string>();
  const double worst = o["worst"].get<double>(), typical = o["typical"].get<double>();
  const bool passed = verdict == "passed";
  if (!passed && verdict != "not applicable") throw Flaw{fmt::format("{} is '{}', not passed", id, verdict)};
  if (passed && (o["cases"] == 0 || o["elements"] == 0 || o["nonzero"] == 0))
    throw Flaw{fmt::format("{} compared nothing", id)};
  if (passed == (o["cases"] == 0)) throw Flaw{fmt::format("{} is not applicable and has cases", id)};
  if (!passed && o.value("reason", "").empty()) throw Flaw{fmt::format("{} does not say why it is not applicable", id)};
  if (o["nonzero"].get<std::int64_t>() > o["elements"].get<std::int64_t>() ||
      o["refused"].get<std::int64_t>() > o["cases"].get<std::int64_t>())
    throw Flaw{fmt::format("the figures of {} contradict each other", id)};
  if (!(worst >= 0 && worst <= 1)) throw Flaw{fmt::format("{} has an error of {} times its bound", id, worst)};
  if (!(typical >= 0 && typical <= worst)) throw Flaw{fmt::format("the typical error of {} is above its worst", id)};
}

bool is_seed(const std::string& text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_day(const std::string& text) {
  return text.size() == 10 && text[4] == '-' && text[7] == '-' &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

void expect_evidence(const json& e, std::string_view kernel) {
  if (!e.is_object()) throw Flaw{"it is no JSON object"};
  if (e.value("schema", json()) != kEvidenceSchema)
    throw Flaw{
        fmt::format("its schema is {}, and this version reads {}", e.value("schema", json()).dump(), kEvidenceSchema)};
  expect(e, "",
         {{"schema", Kind::text},
          {"kernel", Kind::text},
          {"op", Kind::text},
          {"backend", Kind::text},
          {"device", Kind::text},
          {"driver", Kind::text},
          {"on_processor", Kind::truth},
          {"build", Kind::text},
          {"made", Kind::text},
          {"arithmetic", Kind::text},
          {"verdict", Kind::text},
          {"draws", Kind::count},
          {"cases", Kind::count},
          {"elements", Kind::count},
          {"worst", Kind::ratio},
          {"digest", Kind::text}},
         {"hashes", "seeds", "obligations", "audit", "environment", "signature"});
  if (e["digest"] != evidence_digest(e)) throw Flaw{"it was edited: its digest is that of another text"};
  if (e["kernel"] != kernel) throw Flaw{fmt::format("it is evidence for {}", e["kernel"].get<std::string>())};
  const std::string prefix = fmt::format("{}/{}/", e["op"].get<std::string>(), e["backend"].get<std::string>());
  if (!kernel.starts_with(prefix)) throw Flaw{"its op or backend is another than its kernel's"};
  for (const char* key : {"hashes", "seeds", "obligations"})
    if (!e.contains(key) || e[key].empty()) throw Flaw{fmt::format("the key '{}' is missing or empty", key)};
  if (!e.contains("environment") || !e["environment"].is_object() || e["environment"].empty() ||
      !std::ranges::all_of(e["environment"], [](const json& value) { return value.is_string(); }))
    throw Flaw{"the key 'environment' is missing or not of its type"};
  if (e.contains("signature") && !e["signature"].is_string()) throw Flaw{"the key 'signature' is not of its type"};
  if (e.contains("audit") && !e["audit"].is_object()) throw Flaw{"the key 'audit' is not of its type"};
  if (!e["seeds"].is_array() ||
      !std::ranges::all_of(e["seeds"], [](const json& s) { return s.is_string() && is_seed(s.get<std::string>()); }))
    throw Flaw{"its seeds are no list of seeds"};
  if (!is_day(e["made"].get<std::string>())) throw Flaw{"the key 'made' is no day"};
  if (e["device"].get<std::string>().empty()) throw Flaw{"it names no device"};
  if (!is_shipped(e["build"].get<std::string>()))
    throw Flaw{
        fmt::format("it is of the build '{}', and what is shipped is a Release build", e["build"].get<std::string>())};
  if (e["verdict"] != "passed") throw Flaw{fmt::format("its verdict is '{}'", e["verdict"].get<std::string>())};
  if (e["draws"].get<std::int64_t>() < kMinDraws)
    throw Flaw{fmt::format("{} cases of each obligation are too few: {} are the least", e["draws"].dump(), kMinDraws)};
  if (!e["obligations"].is_array()) throw Flaw{"the key 'obligations' is not of its type"};
  for (const json& o : e["obligations"]) expect_obligation(o);
  const Totals totals(e["obligations"]);
  if (e["cases"] != totals.cases || e["elements"] != totals.elements || e["worst"] != totals.worst)
    throw Flaw{"its totals are not those of its obligations"};
  if (3 * (totals.cases - totals.refused) < totals.cases)
    throw Flaw{
        fmt::format("the kernel refused {} of {} cases: at least a third must be left", totals.refused, totals.cases)};
  if (totals.cases < e["draws"].get<std::int64_t>())
    throw Flaw{"it has fewer cases than it says were drawn for one obligation"};
}

}  // namespace

std::pair<std::string, std::string> name_and_driver(const std::string& description) {
  int depth = 0;
  for (std::size_t at = description.size(); at-- > 0 && description.ends_with(')');) {
    depth += description[at] == ')' ? 1 : description[at] == '(' ? -1 : 0;
    if (depth == 0)
      return {description.substr(0, at == 0 ? 0 : at - 1), description.substr(at + 1, description.size() - at - 2)};
  }
  return {description, ""};
}

bool is_shipped(std::string_view build) {
  return build.starts_with("Release,") && build.find("sanitized") == std::string_view::npos;
}

// The gate runs all other kernels itself. It runs Vulkan kernels too, on lavapipe, which says nothing of a GPU.
bool needs_evidence(Backend backend) { return !traits(backend).host; }

std::string evidence_file(std::string_view kernel) {
  const std::size_t first = kernel.find('/') + 1;
  return fmt::format("{}.jsonl", kernel.substr(first, kernel.find('/', first) - first));
}

std::string evidence_path(std::string_view kernel) {
  return fmt::format("{}{}", kEvidenceFolder, evidence_file(kernel));
}

EvidenceLines evidence_lines(const std::string& text) {
  EvidenceLines lines;
  std::string before;
  int number = 0;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    ++number;
    end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    const json e = json::parse(line, nullptr, false);
    if (!e.is_object() || !e.value("kernel", json()).is_string()) {
      lines.flaws.emplace_back(number, "it is no JSON object with a kernel");
      continue;
    }
    std::string kernel = e["kernel"].get<std::string>();
    if (number > 1 && kernel <= before)
      lines.flaws.emplace_back(number, fmt::format("{} is there twice, or not in order", kernel));
    before = kernel;
    lines.of_kernel[std::move(kernel)] = {std::move(line), number};
  }
  return lines;
}

std::string evidence_digest(const json& evidence) {
  json rest = evidence;
  rest.erase("digest");
  rest.erase("signature");
  return "sha256:" + sha256(rest.dump());
}

std::string evidence_text(const json& evidence) { return evidence.dump(); }

std::string signed_text(json evidence) {
  evidence.erase("signature");
  return evidence_text(evidence);
}

json make_evidence(const json& result, const Fingerprint& fingerprint, const RunConditions& c) {
  const auto [device, driver] = name_and_driver(result["device"].get<std::string>());
  json e{{"schema", kEvidenceSchema},
         {"kernel", result["kernel"]},
         {"op", result["op"]},
         {"backend", result["backend"]},
         {"arithmetic", result["arithmetic"]},
         {"device", device},
         {"driver", c.driver.empty() ? driver : c.driver},
         {"on_processor", c.on_processor},
         {"build", c.build},
         {"made", c.made},
         {"environment", c.environment},
         {"verdict", result["status"]},
         {"seeds", {std::to_string(c.seed)}},
         {"draws", c.draws},
         {"hashes", json::object()},
         {"obligations", json::array()}};
  for (const auto& [part, files] : fingerprint) e["hashes"][std::string(name(part))] = files->hash;
  for (const json& o : result["obligations"]) {
    json kept = json::object();
    for (const char* key : {"id", "verdict", "cases", "refused", "elements", "nonzero", "worst", "typical"})
      kept[key] = o[key];
    if (o["verdict"] != "passed") kept["reason"] = o.value("reason", "");
    e["obligations"].push_back(std::move(kept));
  }
  const Totals totals(e["obligations"]);
  e.update({{"cases", totals.cases}, {"elements", totals.elements}, {"worst", totals.worst}});
  e["digest"] = evidence_digest(e);
  return e;
}

std::string flaw(const std::string& text, std::string_view kernel) {
  const json e = json::parse(text, nullptr, false);
  if (e.is_discarded()) return "it is not JSON";
  try {
    expect_evidence(e, kernel);
  } catch (const Flaw& found) {
    return found.says;
  }
  // The digest covers neither duplicate keys nor another notation of numbers.
  return evidence_text(e) == text ? "" : "it was edited: it is not laid out as it was written";
}

std::string other_environment(const json& e, Backend backend, const Environment& lock) {
  std::string text;
  for (const auto& [name, value] : e["environment"].items()) {
    const auto at = lock.find(name);
    if (at == lock.end() || at->second == value.get<std::string>() || name == "vulkan-driver" ||
        !touches(name, backend))
      continue;
    text += fmt::format("{}{} {}, in {} {}", text.empty() ? "" : "; ", name, value.get<std::string>(), kLockFile,
                        at->second);
  }
  return text;
}

std::string staleness(const json& e, const Subject& subject, const Fingerprint& fingerprint) {
  std::string changed;
  const json& hashes = e["hashes"];
  for (const Part part : kParts) {
    const std::string& hash = fingerprint.at(part)->hash;
    if (hash.empty() || hashes.value(std::string(name(part)), "") != hash)
      changed += fmt::format("{}{}", changed.empty() ? "" : ", ", name(part));
  }
  if (!changed.empty()) return fmt::format("it was made before a change of: {}", changed);
  if (hashes.size() != kParts.size()) return "it has hashes that this version does not know";
  const auto table = obligations(subject.op);
  std::set<std::string> now, then;
  for (const Obligation& o : table) now.insert(std::string(o.info->id));
  for (const json& o : e["obligations"]) then.insert(o["id"].get<std::string>());
  if (now != then || then.size() != e["obligations"].size()) return "its obligations are not those of the contract";
  if (e["on_processor"].get<bool>()) return "it was made on the processor, not on a GPU";
  return "";
}

}  // namespace assay::falsify
