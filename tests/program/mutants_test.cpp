// Every automatic mutant of a differentiated block dies in double, or is the program in fifty digits.
#include "falsify/program/mutants.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "falsify/engine/random.hpp"
#include "feed_forward.hpp"
#include "program/differentiate.hpp"

namespace assay::program::mutants_test {
namespace {

using falsify::Execution;
using falsify::ProgramMutant;

constexpr int kRuns = 2;

struct Judge {
  Differentiated d;
  std::vector<Value> outputs;  ///< looked at after each run; gradients at the end

  /// Outputs of each run, and gradients, of a mutant or of the program itself.
  template <class T>
  std::vector<T> results(const ProgramMutant& m, const T& poison) const {
    Execution<T> execution(m.program, m.plan, poison);
    std::vector<T> all;
    const auto look = [&](Value v) {
      const View<T> view = execution[v];
      all.insert(all.end(), view.data(), view.data() + view.size());
    };
    falsify::run_mutant<T>(m, execution, kRuns, [&](int run, Execution<T>& memory) {
      if (run > 0)
        for (const Value v : outputs) look(v);
      for (std::size_t i = 0; i < d.program.values.size(); ++i) {
        const Value v{static_cast<std::int32_t>(i)};
        const Kind kind = d.program.storage_of(v).kind;
        if (d.program.base_of(v) != v || (kind != Kind::input && kind != Kind::parameter)) continue;
        falsify::Random random(
            falsify::derive(kind == Kind::input ? static_cast<std::uint64_t>(run) : 99, d.program[v].name));
        const View<T> view = memory[v];
        for (Index e = 0; e < view.size(); ++e)
          view.data()[e] = T(static_cast<float>(random.gaussian() * (kind == Kind::input ? 1 : 0.3)));
      }
    });
    for (const Value v : outputs) look(v);
    for (const Value v : d.gradients) look(v);
    return all;
  }
};

TEST(ProgramMutants, OfAFeedForwardBlockDie) {
  Block block(3, 5, 7);
  std::vector<Value> wanted{block.x};
  for (const Parameter& p : block.builder.program().parameters) wanted.push_back(p.value);
  const Judge judge{differentiate(block.builder.program(), std::vector{block.y}, wanted), {block.y}};
  const Plan where = plan(judge.d.program);
  const ProgramMutant right{{}, "", judge.d.program, where};
  const std::vector<double> want = judge.results<double>(right, std::nan(""));
  const std::vector<Bounded> bounded = judge.results<Bounded>(right, Bounded(std::nan("")));
  const std::vector<Digits50> digits = judge.results<Digits50>(right, Digits50(std::nan("")));
  // A bound of float32 arithmetic, as small as double's unit is beside float32's: 2^-29.
  std::vector<double> bound;
  for (const Bounded& b : bounded) {
    bound.push_back(0x1p-29 * b.error);
    ASSERT_TRUE(std::isfinite(b.error));
  }
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(std::fabs(want[i] - digits[i].convert_to<double>()), bound[i]) << "the program itself";

  std::map<std::string_view, int> killed, equivalent;
  int survivors = 0;
  for (const ProgramMutant& m : falsify::program_mutants(judge.d.program, where)) {
    const std::vector<double> got = judge.results<double>(m, std::nan(""));
    bool dies = false;
    for (std::size_t i = 0; i < want.size(); ++i) dies = dies || !(std::fabs(got[i] - want[i]) <= bound[i]);
    if (dies) {
      ++killed[falsify::name(m.fault)];
    } else if (judge.results<Digits50>(m, Digits50(std::nan(""))) == digits) {
      ++equivalent[falsify::name(m.fault)];
    } else {
      ++survivors;
      ADD_FAILURE() << "survives: " << m.description;
    }
  }
  int all = survivors;
  for (const auto& [fault, n] : killed) all += n;
  for (const auto& [fault, n] : killed) fmt::print("{}: {} killed, {} equivalent\n", fault, n, equivalent[fault]);
  EXPECT_EQ(killed.size(), 8u) << "a kind of fault that nothing dies of";
  EXPECT_GE(all, 100);
}

}  // namespace
}  // namespace assay::program::mutants_test
