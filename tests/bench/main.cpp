// assay_bench: Google Benchmark's options apply, except those that set the duration (rounds are fixed).
//   assay_bench --benchmark_filter=matmul/cpu/dispatch --benchmark_out=bench.json --benchmark_repetitions=3
//   tests/bench/bars.py bench.json
#include "paired.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  assay::bench::register_kernels();
  assay::bench::register_contracts();
  assay::bench::register_certificates();
  assay::bench::register_engine();
  assay::bench::register_mirrors();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
