// PTX of shipped kernels as compiled by nvcc: printing reproduces it byte for byte, and a sample of its mutants
// assembles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/toolkit.hpp"
#include "falsify/mutation/study/parallel.hpp"

namespace assay::falsify::ptx {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> found;
  if (!std::filesystem::exists(ASSAY_PTX)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_PTX)) {
    std::ifstream file(entry.path());
    found.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  return found;
}

std::vector<Program> programs() {
  std::vector<Program> all;
  for (const std::string& text : files()) {
    const Module module(text);
    for (const Item& item : module.items)
      if (item.entry) all.emplace_back(module, item.name);
  }
  return all;
}

TEST(PtxKernels, ArePrintedBackByteForByte) {
  if (files().empty()) GTEST_SKIP() << "nvcc is not here";
  for (const std::string& text : files()) EXPECT_EQ(Module(text).text(), text);
  EXPECT_GE(programs().size(), 6U);
}

TEST(PtxKernels, LoopsAreLimited) {
  if (files().empty()) GTEST_SKIP() << "nvcc is not here";
  std::size_t limited = 0;
  for (const Program& p : programs()) {
    bool loops = false;
    for (std::size_t i = 0; i < p.code().size(); ++i) loops = loops || p.leads_back(i);
    EXPECT_EQ(p.guarded().find("trap;") != std::string::npos, loops) << p.entry();
    limited += loops;
  }
  EXPECT_GE(limited, 4U);
}

TEST(PtxKernels, ASampleOfTheirMutantsAssembles) {
  if (files().empty()) GTEST_SKIP() << "nvcc is not here";
  const std::vector<Program> all = programs();
  std::vector<std::pair<const Program*, MutantKey>> sample;
  std::set<std::uint16_t> tried;
  for (const Program& p : all) {
    std::map<std::uint16_t, MutantKey> by_family;  // the place with the smallest scrambled key in each family
    for (const MutantKey& place : mutant_keys(p)) {
      const auto found = by_family.try_emplace(place.family, place).first;
      if (scramble(place.key) < scramble(found->second.key)) found->second = place;
    }
    for (const auto& [family, place] : by_family)  // every family, and each in every second program
      if (tried.insert(family).second || (family + (&p - all.data())) % 2 == 0) sample.emplace_back(&p, place);
  }
  ASSERT_GE(sample.size(), 50U);
  std::vector<std::string> wrong(sample.size()), right(all.size());
  try {
    in_parallel(all.size(), [&](std::size_t i) { right[i] = assemble(all[i].guarded(), 90).why; });
    in_parallel(sample.size(), [&](std::size_t i) {
      const auto& [program, place] = sample[i];
      wrong[i] = assemble(program->guarded(mutant(*program, place).edits), 90).why;
    });
  } catch (const Unavailable& e) {
    GTEST_SKIP() << e.what();
  }
  for (const std::string& why : right) EXPECT_EQ(why, "");
  int invalid = 0;
  for (std::size_t i = 0; i < sample.size(); ++i)
    if (!wrong[i].empty())
      fmt::print("{}\n  {}\n", mutant(*sample[i].first, sample[i].second).description, wrong[i]), ++invalid;
  fmt::print("{} of {} mutants do not assemble\n", invalid, sample.size());
  EXPECT_LT(100 * invalid, 15 * static_cast<int>(sample.size()));
}

}  // namespace
}  // namespace assay::falsify::ptx
