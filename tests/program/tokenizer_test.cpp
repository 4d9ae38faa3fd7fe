// Byte-level BPE against huggingface/tokenizers (tests/golden/tokenizers.py), and what is refused by its name.
#include "program/model/tokenizer.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "refusal.hpp"

namespace assay::program::tokenizer_test {
namespace {

using nlohmann::json;

class TokenizerTest : public testing::Test {
 protected:
  TokenizerTest() {
    std::ifstream file(ASSAY_GOLDEN "/tokenizers.json");
    golden_ = json::parse(file);
  }
  ~TokenizerTest() override { std::filesystem::remove(file_); }

  Tokenizer tokenizer(const json& j) {
    files::write(file_, j.dump());
    return Tokenizer(file_);
  }
  std::string refused(const std::function<void(json&)>& change) {
    json j = golden_["qwen2"]["tokenizer"];
    change(j);
    const std::string all = refusal([&] { tokenizer(j); }), where = file_.string() + ": ";
    return all.starts_with(where) ? all.substr(where.size(), all.find(';') - where.size()) : all;
  }

  json golden_;
  std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) / "assay_tokenizer_test.json";
};

TEST_F(TokenizerTest, GivesTheIdsOfHuggingFaces) {
  for (const char* model : {"qwen2", "llama3"}) {
    const Tokenizer t = tokenizer(golden_[model]["tokenizer"]);
    EXPECT_EQ(t.vocabulary(), 341 + (model == std::string("llama3")));
    EXPECT_GE(golden_[model]["cases"].size(), 150u);
    for (const json& c : golden_[model]["cases"])
      EXPECT_EQ(t.encode(c[0].get<std::string>()), c[1].get<std::vector<std::int32_t>>())
          << model << " " << c[0].dump();
  }
}

TEST_F(TokenizerTest, TakesMergesAsPairs) {
  json j = golden_["qwen2"]["tokenizer"];
  for (json& merge : j["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    merge = {text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)};
  }
  const std::string text = "The quick brown fox";
  EXPECT_EQ(tokenizer(j).encode(text), tokenizer(golden_["qwen2"]["tokenizer"]).encode(text));
}

TEST_F(TokenizerTest, RefusesWhatItWouldNormalize) {
  const Tokenizer qwen2 = tokenizer(golden_["qwen2"]["tokenizer"]);
  EXPECT_EQ(refusal([&] { qwen2.encode("e\u0301"); }),
            "text: has U+0301 where normalization may change it; bring the text into Unicode's form C");
  EXPECT_EQ(refusal([&] { qwen2.encode("\u212b"); }),
            "text: has U+212B where normalization may change it; bring the text into Unicode's form C");
  EXPECT_EQ(refusal([&] { qwen2.encode("\u0e01\u0e48\u0e38"); }),
            "text: has U+0E38 where normalization may change it; bring the text into Unicode's form C");
  EXPECT_NO_THROW(qwen2.encode("\u00e9 \u0e01\u0e38\u0e48 \ud55c"));
  EXPECT_NO_THROW(tokenizer(golden_["llama3"]["tokenizer"]).encode("e\u0301"));
}

TEST_F(TokenizerTest, RefusesOthersByName) {
  EXPECT_EQ(refused([](json& j) { j["model"]["type"] = "Unigram"; }), "has the model Unigram");
  EXPECT_EQ(refused([](json& j) { j["model"]["byte_fallback"] = true; }), "has byte_fallback");
  EXPECT_EQ(refused([](json& j) { j["model"]["unk_token"] = "<unk>"; }), "has unk_token");
  EXPECT_EQ(refused([](json& j) { j["normalizer"] = {{"type", "Lowercase"}}; }), "has the normalizer Lowercase");
  EXPECT_EQ(refused([](json& j) {
              j["pre_tokenizer"] = {{"type", "Whitespace"}};
            }),
            "has the pre-tokenizer Whitespace");
  EXPECT_EQ(refused([](json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\s+"; }),
            "splits by the expression \"\\\\s+\"");
  EXPECT_EQ(refused([](json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
            "splits in another way");
  EXPECT_EQ(refused([](json& j) {
              j["post_processor"] = {{"type", "BertProcessing"}};
            }),
            "has the post-processor BertProcessing");
  EXPECT_EQ(refused([](json& j) { j["added_tokens"][0]["lstrip"] = true; }), "has the added token <|end|> with lstrip");
  EXPECT_EQ(refused([](json& j) { j["model"]["vocab"].erase("a"); }), "has no token for the byte 97");
  EXPECT_EQ(refused([](json& j) { j["model"]["merges"][0] = "q zz"; }),
            "has the merge \"q zz\" of tokens that it has not");
  EXPECT_EQ(refused([](json& j) { j["model"]["vocab"]["a"] = "x"; }).substr(0, 13), "is malformed:");
  files::write(file_, "[]");
  EXPECT_EQ(refusal([&] { Tokenizer t(file_); }),
            file_.string() + ": is no tokenizer.json; take the tokenizer of a Qwen2 or a Llama 3 model");
}

}  // namespace
}  // namespace assay::program::tokenizer_test
