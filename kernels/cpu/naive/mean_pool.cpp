// The mean of the first tokens of each sequence on the CPU, in plain loops.
#include "ops/mean_pool.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_mean_pool {
namespace {

using ops::MeanPoolArgs;

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]
///   x (b,s,h), y (b,h): row-major, of S, any outer strides; lengths (b) from 1 to s; y shares no memory with x.
/// One sum, i ascending, and one division. Error at most lengths[b]·u·sum_i |x[b,i,j]| / lengths[b] + u|y|. Reads no
/// padding.
template <class S>
void naive(const MeanPoolArgs& args, Device&) {
  const View<const S> x = args.x.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index b = 0; b < args.b; ++b)
    for (Index j = 0; j < args.h; ++j) {
      float sum = 0.0F;
      for (Index i = 0; i < args.lengths(b); ++i) sum += widen(x(b, i, j));
      y(b, j) = narrow<S>(sum / static_cast<float>(args.lengths(b)));
    }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id, .storage = storage, .summary = "one sum per column", .run = &run_typed<MeanPoolArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "mean_pool/cpu/naive"),
                                            add<Half>(DType::f16, "mean_pool/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "mean_pool/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_mean_pool
