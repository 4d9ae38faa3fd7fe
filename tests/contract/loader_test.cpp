// The loader accepts every contract of the repository, and reports every malformed one in one sentence.
#include "contract/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/errors.hpp"

namespace assay::contract::loader_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> yaml_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

class Malformed : public testing::TestWithParam<fs::path> {};

/// The first line of each file holds the expected report: `# expect: line:column: problem; remedy`.
TEST_P(Malformed, GivesOneSentence) {
  std::ifstream in(GetParam());
  std::string expected;
  std::getline(in, expected);
  ASSERT_TRUE(expected.starts_with("# expect: ")) << expected;
  const std::string label = GetParam().filename().string();
  try {
    const std::vector<model::Contract> contracts{load(GetParam().string(), label)};
    cross_check(contracts);
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.what(), label + ":" + expected.substr(std::string("# expect: ").size()));
  }
}
INSTANTIATE_TEST_SUITE_P(Contract, Malformed, testing::ValuesIn(yaml_files(ASSAY_SOURCE "/tests/contract/malformed")),
                         test_name);

TEST(Loader, FileThatDoesNotExist) {
  try {
    load("/nowhere/matmul.yaml", "contracts/matmul.yaml");
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_STREQ(
        e.what(),
        "contracts/matmul.yaml: the file cannot be read: No such file or directory; give the path of a contract");
  }
}

TEST(Loader, FolderInPlaceOfAFile) { EXPECT_THROW(load("/", "contracts"), InputError); }

model::Contract load_contract(const std::string& op) {
  return load(ASSAY_SOURCE "/contracts/" + op + ".yaml", "contracts/" + op + ".yaml");
}

TEST(Loader, ContractsOfTheRepositoryAreValidTogether) {
  std::vector<model::Contract> contracts;
  for (const fs::path& file : yaml_files(ASSAY_SOURCE "/contracts"))
    if (file.stem() != "numerics") contracts.push_back(load_contract(file.stem()));
  EXPECT_GE(contracts.size(), 6u);
  EXPECT_NO_THROW(cross_check(contracts));
}

TEST(Loader, IdsAreUniqueAcrossContracts) {
  std::vector<model::Contract> contracts{load_contract("matmul"), load_contract("matmul_nt"),
                                         load_contract("matmul_tn")};
  contracts[1].clauses[0].id.value = contracts[0].clauses[0].id.value;
  try {
    cross_check(contracts);
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem, "id MM-PRE-006 is already used in contracts/matmul.yaml");
    EXPECT_EQ(e.where.find("contracts/matmul_nt.yaml:"), 0u);
  }
}

TEST(Loader, GradientsCallOperationsThatExist) {
  const std::vector<model::Contract> alone{load_contract("matmul")};
  try {
    cross_check(alone);
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem, "there is no operation 'matmul_nt'");
  }
}

TEST(Loader, GradientsPassAllInputs) {
  std::vector<model::Contract> contracts{load_contract("matmul"), load_contract("matmul_nt"),
                                         load_contract("matmul_tn")};
  contracts[0].gradients[0].by.value = "matmul_nt(dc)";
  try {
    cross_check(contracts);
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem, "'matmul_nt' has 2 inputs but is called with 1");
  }
}

TEST(Loader, ClausesKeepTheirPlace) {
  const model::Contract contract = load_contract("matmul");
  const model::Clause& clause = contract.clauses[1];
  ASSERT_EQ(clause.id.value, "MM-PRE-001");
  std::ifstream in(ASSAY_SOURCE "/contracts/matmul.yaml");
  std::string line;
  for (int i = 0; i < clause.expr.at.line; ++i) std::getline(in, line);
  EXPECT_EQ(line.substr(static_cast<std::size_t>(clause.expr.at.column) - 1), "\"" + clause.expr.value + "\"");
}

/// Returns the keys that the loader suggests in place of `key` in matmul.yaml.
std::vector<std::string> known_keys(const std::string& key) {
  std::ostringstream text;
  text << std::ifstream(ASSAY_SOURCE "/contracts/matmul.yaml").rdbuf();
  std::string contract = text.str();
  contract.replace(contract.find(key), key.size(), "xxxxxxxxxxxxxxxx");
  const fs::path file = fs::path(testing::TempDir()) / "matmul.yaml";
  std::ofstream(file) << contract;
  std::vector<std::string> keys;
  try {
    load(file.string(), "matmul.yaml");
  } catch (const InputError& e) {
    std::istringstream list(e.remedy.substr(std::string("use one of: ").size()));
    for (std::string word; std::getline(list >> std::ws, word, ',');) keys.push_back(word);
  }
  std::ranges::sort(keys);
  return keys;
}

TEST(Schema, KnowsTheKeysOfTheLoader) {
  const auto schema = nlohmann::json::parse(std::ifstream(ASSAY_SOURCE "/contracts/schema.json"));
  const std::map<std::string, nlohmann::json> objects{{"summary", schema},
                                                      {"min: ", schema["$defs"]["dim"]},
                                                      {"role", schema["$defs"]["tensor"]},
                                                      {"violate", schema["$defs"]["requires"]},
                                                      {"certificate", schema["$defs"]["ensures"]},
                                                      {"tested_by", schema["$defs"]["pin"]},
                                                      {"equation: ", schema["$defs"]["gradient"]},
                                                      {"claim", schema["$defs"]["obligation"]}};
  for (const auto& [key, object] : objects) {
    std::vector<std::string> described;
    for (const auto& property : object["properties"].items()) described.push_back(property.key());
    EXPECT_EQ(known_keys(key), described) << key;
  }
}

}  // namespace
}  // namespace assay::contract::loader_test
