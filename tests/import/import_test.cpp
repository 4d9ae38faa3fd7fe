// `assay import`: every value of a published contract is carried over or listed, carried values are at their stated
// places, and the skeleton is no contract.
#include "import/import.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "contract/loader.hpp"
#include "core/errors.hpp"

namespace assay::import {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::vector<fs::path> published() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(ASSAY_PUBLISHED)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// Collects the key paths of all values by a walk independent of the format.
void paths(const YAML::Node& node, const std::string& path, std::vector<std::string>& found) {
  if (node.IsMap() && node.size() > 0) {
    for (const auto& entry : node)
      paths(entry.second, path.empty() ? entry.first.Scalar() : path + "." + entry.first.Scalar(), found);
  } else if (node.IsSequence() && node.size() > 0) {
    for (std::size_t i = 0; i < node.size(); ++i) paths(node[i], fmt::format("{}[{}]", path, i), found);
  } else {
    found.push_back(path);
  }
}

/// Returns the scalar at "falsify[3].claim". Names of equations may hold dots and brackets.
std::string value_at(YAML::Node node, const std::string& path) {
  constexpr std::string_view kEquations = "equations.";
  if (path.starts_with(kEquations)) return node["equations"][path.substr(kEquations.size())].Scalar();
  std::istringstream keys(path);
  for (std::string key; std::getline(keys, key, '.');) {
    const std::size_t bracket = key.find('[');
    node.reset(node[key.substr(0, bracket)]);
    if (bracket != std::string::npos) node.reset(node[std::stoul(key.substr(bracket + 1))]);
  }
  return node.IsScalar() ? node.Scalar() : "(none)";
}

void expect_all_accounted(const std::string& text) {
  std::vector<std::string> expected, got;
  paths(YAML::Load(text), "", expected);
  const Imported imported = import_published(text, "x.yaml", "x");
  const YAML::Node skeleton = YAML::Load(imported.skeleton.text());
  for (const Fate& fate : imported.fates) {
    got.push_back(fate.clause.path());
    EXPECT_GT(fate.clause.at.line, 0);
    EXPECT_FALSE(fate.note.empty()) << got.back();
    // Domains become tensors and dims, and the id of a listed equation becomes its key.
    if (!fate.carried || fate.note == "tensors" ||
        (fate.clause.keys[0] == "equations" && fate.clause.keys.back() == "id"))
      continue;
    EXPECT_EQ(value_at(skeleton, fate.note), fate.clause.text) << got.back() << " is said to be at " << fate.note;
  }
  std::ranges::sort(expected);
  std::ranges::sort(got);
  EXPECT_EQ(got, expected) << text;
}

/// Returns the loader's error on a skeleton.
std::string refusal(const Skeleton& skeleton) {
  const fs::path file = fs::path(testing::TempDir()) / (skeleton.op + ".yaml");
  std::ofstream(file) << skeleton.text();
  try {
    contract::load(file.string(), skeleton.op + ".yaml");
    return "accepted";
  } catch (const InputError& e) {
    return e.what();
  }
}

TEST(Import, EveryValueIsCarriedOrListed) {
  ASSERT_GE(published().size(), 3u);
  for (const fs::path& file : published()) expect_all_accounted(read(file));
}

TEST(Import, NoSkeletonIsAContract) {
  for (const fs::path& file : published()) {
    const Skeleton skeleton = import_published(read(file), "x.yaml", op_from(file.stem().string())).skeleton;
    EXPECT_NE(refusal(skeleton).find("is still TODO; fill in every TODO"), std::string::npos) << refusal(skeleton);
  }
}

/// Renaming a key loses nothing below it.
TEST(Import, KeysThatNobodyKnowsLoseNothing) {
  for (const fs::path& file : published()) {
    std::istringstream lines(read(file));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    int renamed = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t begin = all[i].find_first_not_of(" -"), colon = all[i].find(':');
      if (begin == std::string::npos || all[i][begin] == '#' || colon == std::string::npos) continue;
      std::string text;
      for (std::size_t j = 0; j < all.size(); ++j)
        text += (i == j ? all[j].substr(0, begin) + "renamed" + all[j].substr(colon) : all[j]) + "\n";
      try {
        YAML::Load(text);
      } catch (const YAML::Exception&) {
        continue;  // not a key but text with a colon
      }
      expect_all_accounted(text);
      ++renamed;
    }
    EXPECT_GT(renamed, 5) << file;
  }
}

/// A document of random shape, with mostly known keys.
class RandomDocument {
 public:
  explicit RandomDocument(unsigned seed) : random_(seed) {}
  std::string text() { return "{equations: " + value(0) + ", " + map(0).substr(1); }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string key() {
    static const char* const kKeys[] = {
        "metadata",   "proof_obligations", "falsification_tests", "requires",   "ensures", "formula",  "domain",
        "codomain",   "invariants",        "preconditions",       "id",         "rule",    "property", "formal",
        "prediction", "if_fails",          "description",         "references", "other",   "<<",       "1",
        "[0]"};
    return kKeys[below(std::size(kKeys))];
  }
  std::string value(int depth) {
    const std::size_t kind = below(depth > 4 ? 4 : 8);
    if (kind == 0) return "~";
    if (kind == 1) return "\"x ∈ ℝ^{n×m}\"";
    if (kind == 2) return fmt::format("{}.5e{}", below(100), below(9));
    if (kind == 3) return "\"text: with \\\"quotes\\\" \\n and lines\"";
    return kind < 6 ? map(depth + 1) : list(depth + 1);
  }
  std::string map(int depth) {
    std::vector<std::string> keys;
    std::string text = "{";
    for (std::size_t n = below(5); n > 0; --n) {
      const std::string name = key();
      if (std::ranges::find(keys, name) != keys.end() || (depth == 0 && name == "equations")) continue;
      keys.push_back(name);
      text += fmt::format("{}\"{}\": {}", keys.size() > 1 ? ", " : "", name, value(depth));
    }
    return text + "}";
  }
  std::string list(int depth) {
    std::string text = "[";
    for (std::size_t n = below(4); n > 0; --n) text += value(depth) + (n > 1 ? ", " : "");
    return text + "]";
  }

  std::mt19937 random_;
};

TEST(Import, DocumentsOfAnyShapeLoseNothing) {
  for (unsigned seed = 0; seed < 2000; ++seed) expect_all_accounted(RandomDocument(seed).text());
}

TEST(Import, DomainsBecomeTensors) {
  const Skeleton skeleton = import_published(read(ASSAY_PUBLISHED "/odd-v2.1.yaml"), "x.yaml", "odd").skeleton;
  const YAML::Node tensors = YAML::Load(skeleton.text())["tensors"];
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors["a"]["shape"][1].Scalar(), "k");
  EXPECT_EQ(tensors["c"]["role"].Scalar(), "out");
  EXPECT_EQ(tensors["c"]["shape"][0].Scalar(), "m");
}

TEST(Import, PartsOfADomainThatAreNotUnderstoodAreNamed) {
  Declared declared;
  EXPECT_EQ(declared.add("x in R^d, eps > 0, d >= 1, W ∈ ℝ^{d×f(d)}", false),
            (std::vector<std::string>{"eps > 0", "W ∈ ℝ^{d×f(d)}"}));
  EXPECT_EQ(declared.dims.at(0).min, "1");
  EXPECT_EQ(declared.add("x in R^k", false).size(), 1u);  // another shape than before
  EXPECT_EQ(declared.add("d in R^3", false).size(), 1u);  // already a dim
}

TEST(Import, PublishedNotationIsUnderstood) {
  for (const char* domain : {"Q ∈ ℝ^{n×d_k}, K ∈ ℝ^{m×d_k}, V ∈ ℝ^{m×d_v}", "x ∈ ℝ^n, n ≥ 1",
                             "x in R^d, gamma in R^d, d >= 1", "A in R^{M x K}, B in R^{K*N}", "W ∈ ℝ^{16×n}"}) {
    Declared declared;
    EXPECT_TRUE(declared.add(domain, false).empty()) << domain;
  }
}

TEST(Import, IdsAreKeptOrGivenOnce) {
  const Skeleton skeleton = import_published(read(ASSAY_PUBLISHED "/odd-v2.1.yaml"), "x.yaml", "odd").skeleton;
  std::vector<std::string> ids;
  for (const auto& entry : YAML::Load(skeleton.text())["falsify"]) ids.push_back(entry["id"].Scalar());
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
  EXPECT_NE(std::ranges::find(ids, "FALSIFY-ODD-002"), ids.end());
}

TEST(Import, NamesOfFilesBecomeNamesOfOperations) {
  EXPECT_EQ(op_from("softmax-kernel-v1"), "softmax");
  EXPECT_EQ(op_from("bias-add-v2.1"), "bias_add");
  EXPECT_EQ(op_from("4d-things"), "");
}

std::string complaint(const std::string& text) {
  try {
    import_published(text, "x.yaml", "x");
    return "accepted";
  } catch (const InputError& e) {
    return e.what();
  }
}

TEST(Import, WhatIsNoPublishedContractGetsOneSentence) {
  EXPECT_EQ(complaint("- a\n"), "x.yaml:1:1: 'the file' must be a map; write 'key: value' lines, at least one");
  EXPECT_EQ(complaint("metadata: {version: 1}\n"),
            "x.yaml:1:1: this is no published contract: it has neither equations, proof_obligations nor "
            "falsification_tests; give "
            "a YAML file in the format of provable-contracts");
  EXPECT_EQ(complaint("equations:\n  a: 1\n  a: 2\n"),
            "x.yaml:3:3: key 'a' is given twice; remove one (the first is on line 2)");
  EXPECT_EQ(complaint("equations: {a: 1}\n---\nmore: 1\n"),
            "x.yaml:3:1: this begins another of 2 documents; keep one in each file");
  EXPECT_EQ(complaint("equations: &a [1, *a]\n"),
            "x.yaml:1:16: this nests deeper than 32 levels; remove aliases that contain themselves");
  EXPECT_TRUE(complaint("equations: {a: \"open}\n").starts_with("x.yaml:")) << complaint("equations: {a: \"open}\n");
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i)
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  EXPECT_NE(complaint(bomb + "equations: {}\n").find("more than 100000 values"), std::string::npos);
}

}  // namespace
}  // namespace assay::import
