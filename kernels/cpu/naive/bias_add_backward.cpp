// dx = dy and dbias = sums of the columns of dy on the CPU, in plain loops.
#include "ops/bias_add_backward.hpp"

#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_bias_add_backward {
namespace {

using ops::BiasAddBackwardArgs;

/// dx[i,j] = dy[i,j], dbias[j] = sum_i dy[i,j]
///   dy, dx (m,n): row-major, of S, any leading dimension; dbias (n); they share no memory.
/// One sum a column, i ascending. Error at most m·u·sum_i |dy[i,j]|. Cost 8 m n bytes.
template <class S>
void naive(const BiasAddBackwardArgs& args, Device&) {
  const View<const S> dy = args.dy.as<const S>();
  const View<S> dx = args.dx.as<S>();
  for (Index j = 0; j < args.n; ++j) {
    float sum = 0.0F;
    for (Index i = 0; i < args.m; ++i) {
      sum += widen(dy(i, j));
      dx(i, j) = narrow<S>(widen(dy(i, j)));
    }
    args.dbias(j) = sum;
  }
}

template <class S>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "one sum per column",
                             .run = &run_typed<BiasAddBackwardArgs, &naive<S>>});
}

const KernelRegistration registrations[] = {add<float>(DType::f32, "bias_add_backward/cpu/naive"),
                                            add<Half>(DType::f16, "bias_add_backward/cpu/naive_f16"),
                                            add<BFloat16>(DType::bf16, "bias_add_backward/cpu/naive_bf16")};

}  // namespace
}  // namespace assay::cpu::of_bias_add_backward
