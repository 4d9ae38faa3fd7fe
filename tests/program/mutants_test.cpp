// Every automatic mutant of differentiated blocks dies in double, or is the program in fifty digits. Every named fault
// of a decoder dies.
#include "falsify/program/mutants.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "blocks.hpp"
#include "falsify/program/block_faults.hpp"
#include "falsify/program/wiring.hpp"

namespace assay::program::mutants_test {
namespace {

using falsify::ProgramMutant;
using falsify::Wiring;

bool dies(const Wiring& wiring, const std::vector<std::vector<double>>& got) {
  for (std::size_t row = 0; row < got.size(); ++row)
    if (falsify::judge(wiring.expected()[row], got[row]).finding) return true;
  return false;
}

class ProgramMutants : public testing::TestWithParam<std::string> {};

TEST_P(ProgramMutants, Die) {
  const Wiring wiring(block_case(GetParam()));
  EXPECT_FALSE(dies(wiring, wiring.run(wiring.right()))) << "the program itself";
  std::map<std::string_view, int> killed, equivalent;
  int all = 0;
  for (const ProgramMutant& m : falsify::program_mutants(wiring.differentiated().program, wiring.where())) {
    ++all;
    if (dies(wiring, wiring.run(m))) ++killed[falsify::name(m.fault)];
    else if (wiring.equivalent(m)) ++equivalent[falsify::name(m.fault)];
    else ADD_FAILURE() << "survives: " << m.description;
  }
  for (const auto& [fault, n] : killed) fmt::print("{}: {} killed, {} equivalent\n", fault, n, equivalent[fault]);
  EXPECT_EQ(killed.size(), 8u) << "a kind of fault that nothing dies of";
  EXPECT_GE(all, 100);
}

INSTANTIATE_TEST_SUITE_P(Of, ProgramMutants,
                         testing::Values("feed_forward", "lora_on_all_attention", "lora_on_all", "tied_loss"),
                         [](const auto& info) { return info.param; });

TEST(BlockFaults, Die) {
  const Wiring wiring(block_case("tied_loss"));
  for (const falsify::BlockFault& fault : falsify::block_faults()) {
    const ProgramMutant m = falsify::plant(fault, wiring.differentiated().program);
    const auto got = wiring.run(m);
    EXPECT_TRUE(dies(wiring, got)) << m.description << (wiring.equivalent(m) ? ": has no effect" : ": survives");
    for (const std::vector<double>& row : got)
      EXPECT_TRUE(std::ranges::all_of(row, [](double g) { return std::isfinite(g); }))
          << m.description << ": dies of memory that nothing has written, not of the fault";
  }
  EXPECT_GE(falsify::block_faults().size(), 60u);
}

}  // namespace
}  // namespace assay::program::mutants_test
