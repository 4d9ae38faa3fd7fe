// Paired measurement. The sides run in turn within one benchmark, so that other load on the machine affects all alike,
// and figures are medians over the rounds.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace assay::bench {

/// One side of a comparison.
struct Side {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = [] {};  ///< untimed, before each round of this side
};

/// Seconds per call of each side, by round: seconds[side][round].
using Rounds = std::vector<std::vector<double>>;

/// Runs the sides in turn, once per iteration of `state`, in an alternating order, so that no side always follows the
/// same other; first use is not timed. Short calls are repeated within a round until it lasts about 20 µs. Reports the
/// time of the first side, and the time of each as a counter <name>_ns.
Rounds measure(benchmark::State& state, const std::vector<Side>& sides);

double median(std::vector<double> values);
/// Returns the median over the rounds of f(seconds of side x, seconds of side y).
double median_of(const Rounds& rounds, std::size_t x, std::size_t y, double (*f)(double, double));

/// Returns the number of rounds that keeps a benchmark near one second if all sides together take `seconds` a round,
/// and at least enough for a median.
int rounds_for(double seconds);

/// Reports `value` as the counter `name` and its requirement as at_least:<name> or at_most:<name>, which bars.py
/// compares.
void bar_at_least(benchmark::State& state, const std::string& name, double value, double required);
void bar_at_most(benchmark::State& state, const std::string& name, double value, double required);

// One function per source file, which registers its benchmarks with the library.
void register_kernels();
void register_contracts();
void register_certificates();
void register_engine();
void register_mirrors();

}  // namespace assay::bench
