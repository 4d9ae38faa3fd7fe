// assay_bench: Google Benchmark's options apply, except those that set the duration (rounds are fixed).
//   assay_bench --benchmark_filter=matmul/cpu/dispatch --benchmark_out=bench.json --benchmark_repetitions=3
//   tests/bench/bars.py bench.json
#include <unistd.h>

#include <cstdlib>

#include "paired.hpp"

int main(int argc, char** argv) {
  // OpenBLAS reads this variable when it is loaded. By default its idle threads spin for 2^26 cycles after a product,
  // on a core that the next measurement needs.
  if (setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0) == 0 && std::getenv("ASSAY_BENCH_STARTED") == nullptr) {
    setenv("ASSAY_BENCH_STARTED", "1", 1);
    execv("/proc/self/exe", argv);
  }
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
