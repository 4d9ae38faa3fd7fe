// Wrong transposes and copies.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/tensor_layout.hpp"
#include "ops/transpose.hpp"

namespace assay::mutants::copies_mutants {
namespace {

enum class Fault {
  tail_unwritten, diagonal_blocks_only, width_as_stride, not_transposed, zero_sign_lost, nan_replaced, subnormals_flushed,
  inner_stride_ignored, whole_rows_copied, last_row_missing,
};

template <Fault F>
float moved(float x) {
  if (F == Fault::zero_sign_lost) return x + 0.0f;
  if (F == Fault::nan_replaced) return std::isnan(x) ? 0.0f : x;
  if (F == Fault::subnormals_flushed) return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  return x;
}

template <Fault F>
void transpose(const ops::TransposeArgs& args, Device&) {
  constexpr Index kBlock = 32;
  const Index ld = F == Fault::width_as_stride ? args.m : args.dst.stride(0);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      if (F == Fault::tail_unwritten && args.m >= kBlock && i >= args.m / kBlock * kBlock) continue;
      const bool swap_blocks = F == Fault::diagonal_blocks_only && args.m >= kBlock && args.n >= kBlock &&
                               i / kBlock != j / kBlock && i < args.m / kBlock * kBlock && j < args.n / kBlock * kBlock;
      const float x = swap_blocks ? args.src(i / kBlock * kBlock + j % kBlock, j / kBlock * kBlock + i % kBlock) : args.src(i, j);
      if (F == Fault::not_transposed && args.m == args.n) args.dst.data()[i * ld + j] = x;
      else args.dst.data()[j * ld + i] = moved<F>(x);
    }
}

template <Fault F>
void layout(const ops::TensorLayoutArgs& args, Device&) {
  const Index rows = F == Fault::last_row_missing && args.m > 1 ? args.m - 1 : args.m;
  const Index inner = F == Fault::inner_stride_ignored ? 1 : args.src.stride(1);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < args.n; ++j)
      args.dst(i, j) = moved<F>(args.src.data()[i * args.src.stride(0) + j * inner]);
  // A copy of whole rows also copies what lies between them.
  if (F == Fault::whole_rows_copied && args.m > 1 && args.dst.stride(1) == 1 && args.dst.stride(0) > args.n)
    std::memset(args.dst.data() + args.n, 0, static_cast<std::size_t>(args.dst.stride(0) - args.n) * sizeof(float));
}

template <Fault F>
KernelRegistration add_transpose(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::TransposeArgs, &transpose<F>>("transpose", id, fault);
}
template <Fault F>
KernelRegistration add_layout(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::TensorLayoutArgs, &layout<F>>("tensor_layout", id, fault);
}

const KernelRegistration registrations[] = {
    add_transpose<Fault::tail_unwritten>("mutant/cpu/transpose/tail_unwritten", "rows past the last whole block unwritten"),
    add_transpose<Fault::diagonal_blocks_only>("mutant/cpu/transpose/block_order", "elements of off-diagonal blocks exchanged"),
    add_transpose<Fault::width_as_stride>("mutant/cpu/transpose/width_as_stride", "width used as leading dimension"),
    add_transpose<Fault::not_transposed>("mutant/cpu/transpose/not_transposed", "square matrices copied as they are (bug 5)"),
    add_transpose<Fault::zero_sign_lost>("mutant/cpu/transpose/zero_sign_lost", "-0 becomes +0"),
    add_transpose<Fault::nan_replaced>("mutant/cpu/transpose/nan_replaced", "NaN becomes 0"),
    add_transpose<Fault::subnormals_flushed>("mutant/cpu/transpose/subnormals_flushed", "subnormals become 0"),
    add_layout<Fault::inner_stride_ignored>("mutant/cpu/tensor_layout/inner_stride_ignored", "inner stride taken as 1 (bug 86)"),
    add_layout<Fault::whole_rows_copied>("mutant/cpu/tensor_layout/whole_rows_copied", "the gap between rows is overwritten (bug 20)"),
    add_layout<Fault::last_row_missing>("mutant/cpu/tensor_layout/last_row_missing", "the last row is left out (bug 26)"),
    add_layout<Fault::zero_sign_lost>("mutant/cpu/tensor_layout/zero_sign_lost", "-0 becomes +0"),
};

}  // namespace
}  // namespace assay::mutants::copies_mutants
