// Kernels that are wrong on purpose: `myassay mutants` must falsify each of them.
#include <cmath>

#include "ops/layer_norm.hpp"
#include "runtime/registry.hpp"

namespace {

using assay::Index;
using assay::ops::LayerNormArgs;

enum class Fault { eps_outside, unbiased, one_pass, last_column };

template <Fault fault>
void wrong(const LayerNormArgs& args, assay::Device&) {
  const float n = static_cast<float>(args.n), eps = static_cast<float>(args.eps);
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0, squares = 0;
    for (Index j = 0; j < args.n; ++j) sum += args.x(i, j);
    const float mean = sum / n, center = fault == Fault::one_pass ? 0 : mean;
    for (Index j = 0; j < args.n; ++j) squares += (args.x(i, j) - center) * (args.x(i, j) - center);
    const float divisor = fault == Fault::unbiased && args.n > 1 ? n - 1 : n;
    const float variance = squares / divisor - (fault == Fault::one_pass ? mean * mean : 0);
    const float rstd =
        fault == Fault::eps_outside ? 1.0F / (std::sqrt(variance) + eps) : 1.0F / std::sqrt(variance + eps);
    for (Index j = 0; j < args.n; ++j) {
      const Index column = fault == Fault::last_column && j + 1 == args.n && j > 0 ? j - 1 : j;
      args.y(i, j) = (args.x(i, j) - mean) * rstd * args.weight(column) + args.bias(j);
    }
  }
}

template <Fault fault>
assay::KernelRegistration add(std::string_view id, std::string_view says) {
  return assay::KernelRegistration(
      {.id = id, .summary = "wrong on purpose", .fault = says, .run = &assay::run_typed<LayerNormArgs, &wrong<fault>>});
}

const assay::KernelRegistration registrations[] = {
    add<Fault::eps_outside>("mutant/cpu/layer_norm/eps_outside", "eps added to the root, not inside it"),
    add<Fault::unbiased>("mutant/cpu/layer_norm/unbiased", "the variance divides by n - 1"),
    add<Fault::one_pass>("mutant/cpu/layer_norm/one_pass", "variance as mean(x²) - m², which cancels"),
    add<Fault::last_column>("mutant/cpu/layer_norm/last_column", "the last column takes its neighbour's weight"),
};

}  // namespace
