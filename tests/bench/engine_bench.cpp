// Throughput of the engine on one core: engine/differential/<op>.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "falsify/engine/draw.hpp"
#include "falsify/engine/trial.hpp"
#include "paired.hpp"

namespace assay::bench {
namespace {

using namespace falsify;

constexpr Index kLargestDim = 64;
constexpr int kCases = 200;

/// Returns cases as campaigns draw them, without those of larger dims.
std::vector<Case> cases_of(const OpDescriptor& op, const ObligationInfo& info) {
  std::vector<Case> cases;
  for (std::uint64_t number = 0; cases.size() < kCases; ++number) {
    Case c = draw(op, info, 1, number).value();
    if (std::ranges::max(c.dims) <= kLargestDim) cases.push_back(std::move(c));
  }
  return cases;
}

/// Measures drawing, layout, the run in the worker, the oracle with its bounds, and the comparison. Driver and worker
/// alternate, so that one core is busy at a time and wall-clock time is time of one core; the kernel has one thread.
/// Required: at least 200 cases a second.
void differential(benchmark::State& state, const std::string& op_name) {
  const OpDescriptor& op = operation(op_name);
  const Kernel& subject = kernel(op_name + "/cpu/naive");
  const auto all = obligations(op_name);
  const auto obligation = std::ranges::find_if(all, [](const Obligation& o) { return o.info->by == "differential"; });
  const std::vector<Case> cases = cases_of(op, *obligation->info);
  Worker worker(std::chrono::seconds(10));
  std::vector<double> cases_per_second, elements_per_second;
  for (auto _ : state) {
    std::int64_t elements = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (const Case& c : cases) {
      const Outcome outcome = try_obligation(obligation->check, op, subject, c, worker);
      if (outcome.kind != Outcome::Kind::passed) throw std::logic_error("a right kernel does not pass");
      elements += outcome.elements;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.SetIterationTime(seconds);
    cases_per_second.push_back(kCases / seconds);
    elements_per_second.push_back(static_cast<double>(elements) / seconds);
  }
  bar_at_least(state, "cases_per_second_per_core", median(cases_per_second), 200);
  state.counters["elements_per_second_per_core"] = median(elements_per_second);
}

}  // namespace

void register_engine() {
  for (const std::string op : {"matmul", "matmul_nt", "matmul_tn", "gemv", "transpose", "tensor_layout"})
    benchmark::RegisterBenchmark(("engine/differential/" + op).c_str(),
                                 [op](benchmark::State& state) { differential(state, op); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(7);
}

}  // namespace assay::bench
