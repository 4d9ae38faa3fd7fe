// Every automatic mutant of differentiated blocks dies in double, or is the program in fifty digits. Every named fault
// of a decoder dies.
#include "falsify/program/mutants.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "blocks.hpp"
#include "falsify/program/block_faults.hpp"

namespace assay::program::mutants_test {
namespace {

using falsify::Execution;
using falsify::ProgramMutant;

constexpr int kRuns = 2;

/// A differentiated block, its results in double, and the bounds beyond which a mutant dies.
class Judge {
 public:
  explicit Judge(const BlockCase& c) : case_(c), block_(c), d_(block_.differentiated()), plan_(plan(d_.program)) {
    want_ = results<double>(right(), std::nan(""));
    digits_ = results<Digits50>(right(), Digits50(std::nan("")));
    // A bound of float32 arithmetic, as small as double's unit is beside float32's: 2^-29.
    for (const Bounded& b : results<Bounded>(right(), Bounded(std::nan("")))) bound_.push_back(0x1p-29 * b.error);
    for (std::size_t i = 0; i < want_.size(); ++i)
      EXPECT_LE(std::fabs(want_[i] - digits_[i].convert_to<double>()), bound_[i]) << "the program itself";
  }

  const Program& program() const { return d_.program; }
  const Plan& where() const { return plan_; }

  std::vector<double> in_double(const ProgramMutant& m) const { return results<double>(m, std::nan("")); }
  bool dies(const std::vector<double>& got) const {
    for (std::size_t i = 0; i < want_.size(); ++i)
      if (!(std::fabs(got[i] - want_[i]) <= bound_[i])) return true;
    return false;
  }
  bool equivalent(const ProgramMutant& m) const { return results<Digits50>(m, Digits50(std::nan(""))) == digits_; }

 private:
  ProgramMutant right() const { return {{}, "", d_.program, plan_}; }

  /// Outputs of each run, and gradients at the end, of a mutant or of the program itself.
  template <class T>
  std::vector<T> results(const ProgramMutant& m, const T& poison) const {
    Execution<T> execution(m.program, m.plan, poison);
    std::vector<T> all;
    const auto look = [&](Value v) {
      const View<T> view = execution[v];
      all.insert(all.end(), view.data(), view.data() + view.size());
    };
    falsify::run_mutant<T>(m, execution, kRuns, [&](int run, Execution<T>& memory) {
      if (run > 0) look(block_.y);
      set_all(memory, m.program, case_, run);
    });
    look(block_.y);
    for (const Value v : d_.gradients) look(v);
    return all;
  }

  BlockCase case_;
  Block block_;
  Differentiated d_;
  Plan plan_;
  std::vector<double> want_, bound_;
  std::vector<Digits50> digits_;
};

class ProgramMutants : public testing::TestWithParam<std::string> {};

TEST_P(ProgramMutants, Die) {
  const Judge judge(block_case(GetParam()));
  std::map<std::string_view, int> killed, equivalent;
  int all = 0;
  for (const ProgramMutant& m : falsify::program_mutants(judge.program(), judge.where())) {
    ++all;
    if (judge.dies(judge.in_double(m))) ++killed[falsify::name(m.fault)];
    else if (judge.equivalent(m)) ++equivalent[falsify::name(m.fault)];
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
  const Judge judge(block_case("tied_loss"));
  for (const falsify::BlockFault& fault : falsify::block_faults()) {
    const ProgramMutant m = falsify::plant(fault, judge.program());
    const std::vector<double> got = judge.in_double(m);
    EXPECT_TRUE(judge.dies(got)) << m.description << (judge.equivalent(m) ? ": has no effect" : ": survives");
    for (const double g : got)
      if (!std::isfinite(g)) {
        ADD_FAILURE() << m.description << ": dies of memory that nothing has written, not of the fault";
        break;
      }
  }
  EXPECT_GE(falsify::block_faults().size(), 60u);
}

}  // namespace
}  // namespace assay::program::mutants_test
