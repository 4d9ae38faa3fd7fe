// Paired measurement. What is compared runs in turn within one benchmark, so that another load on the machine hits all
// sides alike, and figures are medians over the rounds.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace assay::bench {

/// One of the things compared.
struct Side {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = [] {};  ///< untimed, before each round of this side
};

/// Seconds a call of each side took, round by round: seconds[side][round].
using Rounds = std::vector<std::vector<double>>;

/// Runs the sides in turn, once per iteration of `state`, in an order that alternates, so that none always runs behind
/// the same other; first use is not timed. Short calls are repeated within a round until it lasts about 20 µs. Reports
/// the time of the first side, and that of each as a counter <name>_ns.
Rounds measure(benchmark::State& state, const std::vector<Side>& sides);

double median(std::vector<double> values);
/// Median over the rounds of f(seconds of side x, seconds of side y).
double median_of(const Rounds& rounds, std::size_t x, std::size_t y, double (*f)(double, double));

/// Rounds that keep a benchmark near a second where all its sides together take `seconds` a round, and at least enough
/// for a median.
int rounds_for(double seconds);

/// Reports `value` as the counter `name` and what is required of it, as at_least:<name> or at_most:<name>: bars.py
/// compares the two.
void bar_at_least(benchmark::State& state, const std::string& name, double value, double required);
void bar_at_most(benchmark::State& state, const std::string& name, double value, double required);

// One for each source file: they enter their benchmarks with the library.
void register_kernels();
void register_contracts();
void register_certificates();
void register_engine();
void register_mirrors();

}  // namespace assay::bench
