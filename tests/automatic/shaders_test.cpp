// Shipped shaders: parsing and writing reproduces the words, and their mutants are valid or known to be invalid.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/errors.hpp"
#include "falsify/mutation/spirv/mutant.hpp"

namespace assay::falsify::spirv {
namespace {

Words read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Words words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), 4 * words.size());
  return words;
}

TEST(Shaders, ParsingAndWritingChangesNothing) {
  int shaders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_SHADERS)) {
    if (entry.path().extension() != ".spv") continue;
    const Words words = read(entry.path());
    EXPECT_EQ(Module(words).encode(), words) << entry.path();
    ++shaders;
  }
  EXPECT_GT(shaders, 70);
}

TEST(Shaders, EveryMutantOfOneIsAnotherValidModule) {
  const Words words = read(std::filesystem::path(ASSAY_SHADERS) / "softmax_rows.spv");
  const Module module(words);
  const Mutants all = mutants(Analysis(module));
  EXPECT_GT(all.size(), 500U);
  std::set<Words> different{words};
  std::set<std::string_view> families;
  for (const Mutant& mutant : all) {
    const Words mutated = apply(module, mutant);
    EXPECT_EQ(invalid(mutated), std::nullopt) << mutant.description;
    EXPECT_TRUE(different.insert(mutated).second) << "twice: " << mutant.description;
    families.insert(mutant.family);
    EXPECT_FALSE(mutant.description.empty());
  }
  EXPECT_GE(families.size(), 12U);
}

TEST(Shaders, TheSameMutantsEveryTime) {
  const Module module(read(std::filesystem::path(ASSAY_SHADERS) / "gemv_naive.spv"));
  const Mutants first = mutants(Analysis(module)), second = mutants(Analysis(module));
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].key(), second[i].key());
}

TEST(Shaders, WhatIsInvalidIsSaidToBe) {
  Words words = read(std::filesystem::path(ASSAY_SHADERS) / "gemv_naive.spv");
  const Module module(words);
  Mutant broken;  // a type is missing
  for (std::size_t i = 0; i < module.code.size(); ++i)
    if (module.code[i].op == spv::Op::OpTypeVoid) broken.edits.push_back({i, {}});
  broken.bound = module.header[3];
  EXPECT_NE(invalid(apply(module, broken)), std::nullopt);
  words[5] |= 0x7fff0000u;  // the first instruction is longer than the module
  EXPECT_THROW(Module{words}, InputError);
}

}  // namespace
}  // namespace assay::falsify::spirv
