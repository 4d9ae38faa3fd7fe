#include "paired.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace assay::bench {
namespace {

double seconds_of(const std::function<void()>& run, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Rounds measure(benchmark::State& state, const std::vector<Side>& sides) {
  constexpr double kRound = 20e-6;
  std::vector<int> calls;
  for (const Side& side : sides) {
    side.prepare();
    side.run();  // first use starts threads and maps memory
    const double once = seconds_of(side.run, 1);
    calls.push_back(static_cast<int>(std::clamp(kRound / once, 1.0, 1000.0)));
  }
  Rounds seconds(sides.size());
  bool forward = true;
  for (auto _ : state) {
    for (std::size_t turn = 0; turn < sides.size(); ++turn) {
      const std::size_t i = forward ? turn : sides.size() - 1 - turn;
      sides[i].prepare();
      seconds[i].push_back(seconds_of(sides[i].run, calls[i]) / calls[i]);
    }
    state.SetIterationTime(seconds[0].back());
    forward = !forward;
  }
  for (std::size_t i = 0; i < sides.size(); ++i) state.counters[sides[i].name + "_ns"] = 1e9 * median(seconds[i]);
  return seconds;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_of(const Rounds& rounds, std::size_t x, std::size_t y, double (*f)(double, double)) {
  std::vector<double> values;
  for (std::size_t round = 0; round < rounds[x].size(); ++round)
    values.push_back(f(rounds[x][round], rounds[y][round]));
  return median(std::move(values));
}

int rounds_for(double seconds) { return static_cast<int>(std::clamp(1.0 / std::max(seconds, 40e-6), 7.0, 1001.0)); }

void bar_at_least(benchmark::State& state, const std::string& name, double value, double required) {
  state.counters[name] = value;
  state.counters["at_least:" + name] = required;
}

void bar_at_most(benchmark::State& state, const std::string& name, double value, double required) {
  state.counters[name] = value;
  state.counters["at_most:" + name] = required;
}

}  // namespace assay::bench
