// Corpora: which lines are samples, which are errors and where; splits and orders that a seed decides.
#include "program/model/corpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/files.hpp"
#include "refusal.hpp"

namespace assay::program::corpus_test {
namespace {

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    options_.classes = {"de", "en", "eo"};
    options_.length = 8;
  }
  ~CorpusTest() override { std::filesystem::remove(file_); }

  Corpus read(const std::string& text) {
    files::write(file_, text);
    return read_corpus(file_, options_);
  }
  /// The refusal of a line behind a right one, without the name of the file.
  std::string refused(const std::string& line) {
    const std::string first = "{\"text\": \"a\", \"label\": \"de\"}\n",
                      all = refusal([&] { read(first + line + "\n"); });
    return all.starts_with(file_.string()) ? all.substr(file_.string().size() + 1) : all;
  }

  CorpusOptions options_;
  std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) / "assay_corpus_test.jsonl";
};

TEST_F(CorpusTest, ReadsBytesIdsAndLabels) {
  const Corpus c = read(
      "{\"text\": \"h\\u00e9\", \"label\": \"en\"}\n{\"tokens\": [0, 255], \"label\": 2}\r\n{\"input\": \"x\", \"label\": \"de\"}");
  ASSERT_EQ(c.samples.size(), 3u);
  EXPECT_EQ(c.samples[0].tokens, (std::vector<std::int32_t>{'h', 0xc3, 0xa9}));
  EXPECT_EQ(c.samples[1].tokens, (std::vector<std::int32_t>{0, 255}));
  EXPECT_EQ(c.samples[0].label, 1);
  EXPECT_EQ(c.samples[1].label, 2);
  EXPECT_EQ(c.samples[2].label, 0);
  EXPECT_EQ(c.lines, (std::vector<Index>{1, 2, 3}));
  EXPECT_EQ(c.cut, 0);
}

TEST_F(CorpusTest, CountsWhatItCuts) {
  const Corpus c = read("{\"text\": \"123456789012\", \"label\": 0}\n{\"text\": \"12345678\", \"label\": 0}\n");
  EXPECT_EQ(c.samples[0].tokens, byte_tokens("12345678"));
  EXPECT_EQ(c.cut, 1);
  EXPECT_EQ(c.tokens_lost, 4);
}

TEST_F(CorpusTest, ReadsSeveralLabels) {
  options_.multi_label = true;
  const Corpus c = read(R"({"text": "a", "labels": ["eo", "de"]}
{"text": "a", "labels": [0, 1, 0]}
{"text": "a", "labels": []}
{"text": "a", "label": "en"}
)");
  const std::vector<std::vector<float>> wanted{{1, 0, 1}, {0, 1, 0}, {0, 0, 0}, {0, 1, 0}};
  ASSERT_EQ(c.samples.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(c.samples[i].labels, wanted[i]) << i;
  EXPECT_EQ(refused(R"({"text": "a", "labels": [0, 1]})"),
            "2: has 2 labels for 3 classes; give a 0 or 1 for each class, or names of classes");
  EXPECT_EQ(refused(R"({"text": "a", "labels": [0, 2, 0]})"),
            "2: has 2 among its labels; give a 0 or 1 for each class, or names of classes");
  EXPECT_EQ(refused(R"({"text": "a", "labels": ["fr"]})"),
            "2: has the label \"fr\"; use one of the 3 classes: de, en, eo");
}

TEST_F(CorpusTest, RefusesBadLinesByNumber) {
  EXPECT_TRUE(refused("{\"text\": ").starts_with("2: is no JSON: ")) << refused("{\"text\": ");
  EXPECT_TRUE(refused("").starts_with("2: is no JSON: "));
  EXPECT_TRUE(refused("{\"text\": \"\xff\", \"label\": 0}").starts_with("2: is no JSON: "));
  EXPECT_TRUE(refused("[1]").starts_with("2: is no JSON object; "));
  EXPECT_EQ(refused(R"({"text": "", "label": 0})"), "2: has no tokens; leave the line out, or give it text");
  EXPECT_EQ(refused(R"({"label": 0})"), "2: has no text; give one of text, input and tokens");
  EXPECT_EQ(refused(R"({"text": "a", "tokens": [1], "label": 0})"),
            "2: has several texts; give one of text, input and tokens");
  EXPECT_EQ(refused(R"({"text": 5, "label": 0})"), "2: has 5 as its text; give a string");
  EXPECT_EQ(refused(R"({"text": "a"})"), "2: has no label; give one of the two");
  EXPECT_EQ(refused(R"({"text": "a", "label": 0, "labels": []})"), "2: has label and labels; give one of the two");
  EXPECT_EQ(refused(R"({"text": "a", "labels": ["de"]})"),
            "2: has several labels; give one label, or say multi_label: true");
  for (const char* label : {"3", "-1", "0.5", "\"fr\"", "null"})
    EXPECT_EQ(refused(std::string(R"({"text": "a", "label": )") + label + "}"),
              std::string("2: has the label ") + label + "; use one of the 3 classes: de, en, eo");
  EXPECT_EQ(refused(R"({"text": "a", "label": 0, "labl": 1})"),
            "2: has the key 'labl'; use text or tokens, and label or labels");
  EXPECT_EQ(refused(R"({"text": "a", "label": 0, "label": 1})"), "2: has the key 'label' twice; keep one");
  EXPECT_EQ(refused(R"({"tokens": [256], "label": 0})"), "2: has the token 256; give ids from 0 to 255");
  EXPECT_EQ(refused(R"({"tokens": [-1], "label": 0})"), "2: has the token -1; give ids from 0 to 255");
  EXPECT_EQ(refusal([&] { read(""); }), file_.string() + ": has no lines; name a corpus in JSON Lines");
}

TEST(Shuffled, IsAPermutationThatSeedAndEpochDecide) {
  const std::vector<std::size_t> one = shuffled(100, 1, 0);
  EXPECT_EQ((std::set<std::size_t>(one.begin(), one.end()).size()), 100u);
  EXPECT_EQ(*std::ranges::max_element(one), 99u);
  EXPECT_EQ(shuffled(100, 1, 0), one);
  EXPECT_NE(shuffled(100, 2, 0), one);
  EXPECT_NE(shuffled(100, 1, 1), one);
  // Every order of three comes equally often: 4 standard deviations of a binomial's count.
  std::map<std::vector<std::size_t>, int> counts;
  constexpr int kDraws = 6000;
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) ++counts[shuffled(3, 9, epoch)];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kDraws / 6, 4 * std::sqrt(kDraws * 5.0 / 36));
}

TEST(Split, HoldsOutAShareOfEverySample) {
  Corpus all;
  for (Index i = 0; i < 20; ++i) all.samples.push_back({{static_cast<std::int32_t>(i)}}), all.lines.push_back(i + 1);
  const auto [train, held_out] = split(all, 0.25, 3);
  EXPECT_EQ(train.samples.size(), 15u);
  EXPECT_EQ(held_out.samples.size(), 5u);
  std::set<std::int32_t> seen;
  for (const Corpus* part : {&train, &held_out})
    for (std::size_t i = 0; i < part->samples.size(); ++i) {
      EXPECT_EQ(part->lines[i], part->samples[i].tokens[0] + 1);
      seen.insert(part->samples[i].tokens[0]);
    }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_NE(split(all, 0.25, 4).second.lines, held_out.lines);
  EXPECT_EQ(refusal([&] { split(all, 1, 3); }),
            "held_out: 1 of 20 samples leaves none to train; hold out fewer, or give more samples");
}

}  // namespace
}  // namespace assay::program::corpus_test
