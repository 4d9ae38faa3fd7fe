// The cost of the contract: the checked entry of matmul at each level, contract/matmul/<n>.
#include "calls.hpp"
#include "contract/enforce.hpp"
#include "ops/matmul.hpp"
#include "paired.hpp"

namespace assay::bench {
namespace {

using contract::Level;

/// Restores the current level on destruction.
class LevelScope {
 public:
  LevelScope() : previous_(contract::level()) {}
  ~LevelScope() { contract::set_level(previous_); }
  LevelScope(const LevelScope&) = delete;
  LevelScope& operator=(const LevelScope&) = delete;

 private:
  Level previous_;
};

/// Required: `pre` adds at most 150 ns; `full` at most 10% at 512³ and 3% at 2048³.
void overhead(benchmark::State& state, Index n) {
  const LevelScope restored;
  const OwnedCall call = product_call("matmul", n, n, n);
  const ops::MatmulArgs args = ops::MatmulArgs::unpack(call.get());
  const auto side = [&args](const char* name, Level level) {
    return Side{name, [&args] { ops::matmul(args); }, [level] { contract::set_level(level); }};
  };
  const Rounds rounds = measure(state, {side("off", Level::off), side("pre", Level::pre), side("full", Level::full)});
  const auto added = [](double with, double without) { return 1e9 * (with - without); };
  const auto fraction = [](double with, double without) { return with / without - 1; };
  const double pre = median_of(rounds, 1, 0, added);
  const double full = median_of(rounds, 2, 0, fraction);
  // From 128³ on, the product itself varies by more than 150 ns between rounds.
  if (n <= 64) bar_at_most(state, "pre_ns_added", pre, 150);
  else state.counters["pre_ns_added"] = pre;
  if (n == 512 || n == 2048) bar_at_most(state, "full_fraction_added", full, n == 512 ? 0.10 : 0.03);
  else state.counters["full_fraction_added"] = full;
}

}  // namespace

void register_contracts() {
  for (Index n : {8, 16, 32, 64, 128, 256, 512, 1024, 2048}) {
    const double volume = static_cast<double>(n * n * n);
    const std::string name = "contract/matmul/" + std::to_string(n);
    benchmark::RegisterBenchmark(name.c_str(), [n](benchmark::State& state) { overhead(state, n); })
        ->UseManualTime()
        ->Iterations(rounds_for(3 * 2 * volume / 100e9));
  }
}

}  // namespace assay::bench
