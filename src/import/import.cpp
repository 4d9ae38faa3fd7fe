#include "import/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "contract/expression.hpp"

namespace assay::import {
namespace {

constexpr std::size_t kLongestText = 1000;  // limit of the loader

/// Returns why values under a key of the published format have no counterpart, by the longest path that matches.
std::string reason(const std::vector<Key>& keys) {
  static const std::map<std::string, std::string, std::less<>> reasons{
      {"metadata", "about the file, not the operation: version control keeps it"},
      {"metadata.depends_on", "a contract stands alone; what calls several operations is a composition of them"},
      {"equations", "a contract's equation is its formula alone"},
      {"equations.lean_theorem", "a proof over the reals does not speak of floats; bounds are derived instead"},
      {"proof_obligations.tolerance", "no tolerance is chosen: bounds follow from the reference"},
      {"proof_obligations.type", "`by` says how an obligation is tried"},
      {"proof_obligations.applies_to", "every obligation is tried on every kernel"},
      {"proof_obligations.lean", "a proof over the reals does not speak of floats; bounds are derived instead"},
      {"falsification_tests.test",
       "cases are drawn by the engine; what they lack goes into the function that `by` names"},
      {"requires", "not a sentence: only plain text is carried over"},
      {"ensures", "not a sentence: only plain text is carried over"},
      {"kani_harnesses", "a harness of Rust code; `by` names what checks an obligation here"},
      {"qa_gate", "the gate is the exit code of `assay falsify`"},
      {"verification_summary", "counts of what other tools have checked"},
      {"kernel_structure", "how a kernel computes is not part of its contract"},
      {"simd_dispatch", "kernels register themselves"},
      {"enforcement", "every obligation is enforced"},
  };
  std::string path, found = "no key of contracts here";
  for (const Key& key : keys) {
    if (key == "<<") return "merge keys are not expanded";
    if (key.item || (path == "equations" && keys.size() > 2 && key == keys[1])) continue;
    path += (path.empty() ? "" : ".") + key.name;
    if (const auto entry = reasons.find(path); entry != reasons.end()) found = entry->second;
  }
  return found;
}

class Importer {
 public:
  Importer(std::string op, std::string source, const std::vector<Clause>& all) {
    out_.op = std::move(op);
    out_.source = std::move(source);
    out_.code = code(all);
    name_equations(all);
  }

  Fate place(const Clause& clause) {
    Fate fate{clause, false, reason(clause.keys)};
    if (clause.empty) fate.note = "there is nothing in it";
    else if (const std::string where = carry(clause.keys, clause.text, fate.note); !where.empty()) {
      fate.carried = true;
      fate.note = where;
    }
    return fate;
  }

  Skeleton finish() && { return std::move(out_); }

 private:
  /// Returns the code of the published ids, "SM" in FALSIFY-SM-001, or else the operation's name.
  std::string code(const std::vector<Clause>& all) const {
    static const std::regex id("FALSIFY-([A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*)-[0-9]{3}");
    std::smatch match;
    for (const Clause& clause : all)
      if (clause.keys.front() == "falsification_tests" && clause.keys.back() == "id" &&
          std::regex_match(clause.text, match, id))
        return match[1];
    std::string text = out_.op;
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c == '_' ? '-' : static_cast<char>(std::toupper(c)); });
    return text;
  }

  /// Equations are a map from names, or a list with `id`s. Repeated names get a number appended.
  void name_equations(const std::vector<Clause>& all) {
    const auto id_of = [&](const Key& key) {
      const auto found = std::ranges::find_if(all, [&](const Clause& c) {
        return c.keys.size() == 3 && c.keys[0] == "equations" && c.keys[1] == key && c.keys[2] == "id";
      });
      return found == all.end() ? "" : found->text;
    };
    std::set<std::string> taken;
    for (const Clause& clause : all) {
      if (clause.keys.size() != 3 || clause.keys[0] != "equations" || clause.keys[2] != "formula") continue;
      const Key& key = clause.keys[1];
      const std::string id = key.item ? id_of(key) : key.name;
      const std::string plain = id.empty() ? "equation" : id;
      std::string name = plain;
      for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", plain, i);
      equations_[key] = name;
    }
  }

  /// Puts a value in its place in the skeleton and returns its path there. Returns an empty path if it has no place,
  /// and makes `why` more specific if possible.
  std::string carry(const std::vector<Key>& keys, const std::string& text, std::string& why) {
    if (text.size() > kLongestText) {
      why = fmt::format("it has {} characters, and texts of contracts at most {}", text.size(), kLongestText);
      return {};
    }
    if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; })) {
      why = "it holds control characters";
      return {};
    }
    const Key& top = keys[0];
    const bool listed = keys.size() == 3 && keys[2].item;
    if (top == "metadata" && keys.size() == 2 && keys[1] == "description")
      return set(out_.summary, text, "summary", why);
    if (top == "metadata" && (keys.size() == 2 || listed) && keys[1] == "references")
      return append(out_.sources, text, "sources", "");
    if (top == "equations" && keys.size() >= 3) return of_equation(keys, text, why);
    if ((top == "proof_obligations" || top == "falsification_tests") && (keys.size() == 2 || keys.size() == 3))
      return of_obligation(keys, text, why);
    if (top == "requires" && keys.size() == 2) return append(out_.requirements, text, "requires", ".says");
    if (top == "ensures" && keys.size() == 2) return append(out_.promises, text, "ensures", ".says");
    return {};
  }

  static std::string append(std::vector<std::string>& list, const std::string& text, std::string_view name,
                            std::string_view field) {
    list.push_back(text);
    return fmt::format("{}[{}]{}", name, list.size() - 1, field);
  }

  static std::string set(std::string& field, const std::string& text, const std::string& where, std::string& why) {
    if (!field.empty()) {
      why = where + " is taken by an earlier value";
      return {};
    }
    field = text;
    return where;
  }

  std::string of_equation(const std::vector<Key>& keys, const std::string& text, std::string& why) {
    const Key& field = keys[2];
    if (keys.size() == 3 && field == "formula") {
      out_.equations.emplace_back(equations_.at(keys[1]), text);
      return "equations." + equations_.at(keys[1]);
    }
    if (keys.size() == 3 && field == "id" && keys[1].item && equations_.contains(keys[1]) &&
        equations_.at(keys[1]) == text)
      return "equations." + text;
    if (keys.size() == 3 && (field == "domain" || field == "codomain")) {
      const std::vector<std::string> left = out_.declared.add(text, field == "codomain");
      if (left.empty()) return "tensors";
      why = fmt::format("not understood as tensors and dims: {}", fmt::join(left, ", "));
      return {};
    }
    if (keys.size() != 4 || !keys[3].item) return {};
    if (field == "preconditions") return append(out_.requirements, text, "requires", ".says");
    if (field == "postconditions") return append(out_.promises, text, "ensures", ".says");
    if (field != "invariants") return {};
    out_.obligations.push_back({.id = "", .claim = text, .prediction = "", .if_fails = ""});
    return fmt::format("falsify[{}].claim", out_.obligations.size() - 1);
  }

  std::string of_obligation(const std::vector<Key>& keys, const std::string& text, std::string& why) {
    const bool proof = keys[0] == "proof_obligations";
    const std::string field = keys.size() == 2 ? "" : keys[2].item ? "an item" : keys[2].name;
    std::string Skeleton::Obligation::*target = nullptr;
    if (field.empty() || field == (proof ? "property" : "rule")) target = &Skeleton::Obligation::claim;
    else if (field == (proof ? "formal" : "prediction")) target = &Skeleton::Obligation::prediction;
    else if (!proof && field == "if_fails") target = &Skeleton::Obligation::if_fails;
    else if (!proof && field == "id") target = &Skeleton::Obligation::id;
    if (target == nullptr) return {};
    static const std::regex id("FALSIFY-([A-Z][A-Z0-9]*-)+[0-9]{3}");
    if (field == "id" && (!std::regex_match(text, id) || !ids_.insert(text).second)) {
      why = "not an id like FALSIFY-MM-001 that is used once: it gets a number of its own";
      return {};
    }
    const auto [entry, fresh] = indices_.try_emplace({keys[0], keys[1]}, out_.obligations.size());
    if (fresh) out_.obligations.emplace_back();
    out_.obligations[entry->second].*target = text;
    return fmt::format("falsify[{}].{}", entry->second,
                       field == "id" || field == "if_fails"     ? field
                       : target == &Skeleton::Obligation::claim ? "claim"
                                                                : "prediction");
  }

  Skeleton out_;
  std::map<Key, std::string> equations_;  ///< names, by published key
  std::set<std::string> ids_;
  std::map<std::pair<Key, Key>, std::size_t> indices_;  ///< index of an obligation, by published keys
};

}  // namespace

std::string op_from(const std::string& stem) {
  static const std::regex version("(-kernel)?-v[0-9.]+$");
  const std::string name = lower(std::regex_replace(stem, version, ""));
  return contract::usable_name(name) ? name : "";
}

Imported import_published(const std::string& text, const std::string& label, const std::string& op) {
  const contract::Node document = contract::Node::parse(text, label, "the file");
  const std::vector<Clause> all = clauses(document);
  const auto published = [](const Clause& c) {
    return c.keys[0] == "equations" || c.keys[0] == "proof_obligations" || c.keys[0] == "falsification_tests";
  };
  if (std::ranges::none_of(all, published))
    document.fail("this is no published contract: it has neither equations, proof_obligations nor falsification_tests",
                  "give a YAML file in the format of provable-contracts");
  Importer importer(op, label, all);
  Imported result;
  for (const Clause& clause : all) result.fates.push_back(importer.place(clause));
  result.skeleton = std::move(importer).finish();
  return result;
}

}  // namespace assay::import
