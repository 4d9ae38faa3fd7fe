// The cost of verifying a product, as a fraction of OpenBLAS's time for the product: certificate/freivalds/<n>.
#include <stdexcept>

#include "calls.hpp"
#include "contract/certificates.hpp"
#include "ops/matmul.hpp"
#include "paired.hpp"
#include "runtime/registry.hpp"

namespace assay::bench {
namespace {

/// Required: at most 5% at 4096³.
void certificate(benchmark::State& state, Index n) {
  const OwnedCall call = product_call("matmul", n, n, n);
  const ops::MatmulArgs args = ops::MatmulArgs::unpack(call.get());
  const Kernel& openblas = kernel("matmul/cpu/openblas");
  Device& cpu = device(Backend::cpu);
  openblas.run(call.get(), cpu);
  const auto verify = [&args] {
    const contract::Certified certified = contract::freivalds(args.a, args.b, args.c);
    if (!certified.holds) throw std::logic_error("the certificate rejects OpenBLAS: " + certified.values);
  };
  const Rounds rounds = measure(state, {{"certificate", verify}, {"product", [&] { openblas.run(call.get(), cpu); }}});
  const double fraction = median_of(rounds, 0, 1, [](double check, double product) { return check / product; });
  if (n == 4096) bar_at_most(state, "fraction", fraction, 0.05);
  else state.counters["fraction"] = fraction;
}

}  // namespace

void register_certificates() {
  for (Index n : {512, 2048, 4096}) {
    const double volume = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    const std::string name = "certificate/freivalds/" + std::to_string(n);
    benchmark::RegisterBenchmark(name.c_str(), [n](benchmark::State& state) { certificate(state, n); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(rounds_for(2 * volume / 100e9));
  }
}

}  // namespace assay::bench
