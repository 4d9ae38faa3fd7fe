// Wrong linear layers: the right composition with one fault, or loops with one.
#include "kernels/linear.hpp"

#include <algorithm>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "kernels/cpu/affine_product.hpp"

namespace assay::mutants::linear_mutants {
namespace {

using ops::LinearArgs;

enum class Fault {
  bias_of_row,
  bias_twice,
  bias_in_bf16,
  tf32_inputs,
  bf16_accumulator,
  zero_skipped,
  width_as_stride,
  last_column_unwritten,
  one_element_at_large,
  bias_clobbered,
  first_bias_kept,
  last_term_dropped,
  saturates,
};

template <Fault F>
void loops(const LinearArgs& args, Device&) {
  const Index ld = F == Fault::width_as_stride ? args.in : args.weight.stride(0);
  const Index columns = F == Fault::last_column_unwritten && args.out > 1 ? args.out - 1 : args.out;
  const Index terms = F == Fault::last_term_dropped && args.in % 4 == 1 ? args.in - 1 : args.in;
  static float first = 0;
  static bool called = false;
  if (F == Fault::first_bias_kept && !called && args.biases * args.out > 0) first = args.bias(0, 0), called = true;
  for (Index i = 0; i < args.s; ++i)
    for (Index o = 0; o < columns; ++o) {
      float sum = 0;
      for (Index p = 0; p < terms; ++p) {
        float x = args.x(i, p), w = args.weight.data()[o * ld + p];
        if (F == Fault::tf32_inputs) x = rounded(x, 11), w = rounded(w, 11);
        if (F == Fault::zero_skipped && x == 0) continue;
        sum += x * w;
        if (F == Fault::bf16_accumulator) sum = rounded(sum, 8);
      }
      if (F == Fault::saturates) sum = std::clamp(sum, -65504.0f, 65504.0f);
      if (F == Fault::one_element_at_large && i == 512 && o == 512) sum += 1;
      if (args.biases > 0) {
        float bias = args.bias(0, F == Fault::bias_of_row ? i % args.out : o);
        if (F == Fault::bias_in_bf16) bias = rounded(bias, 8);
        if (F == Fault::first_bias_kept && o == 0) bias = first;
        sum += F == Fault::bias_twice ? 2 * bias : bias;
      }
      args.y(i, o) = sum;
    }
  if (F == Fault::bias_clobbered && args.biases * args.out > 0) const_cast<float&>(args.bias(0, 0)) = 0;
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<LinearArgs, &loops<F>>("linear", id, fault);
}
template <LinearFault F>
KernelRegistration composed(std::string_view id, std::string_view fault) {
  return cpu_mutant<LinearArgs, &linear_by<&cpu::multiply_tiled, F>>("linear", id, fault);
}

const KernelRegistration registrations[] = {
    composed<LinearFault::weight_as_in_out>("mutant/cpu/linear/weight_as_in_out", "W read as [in, out] (bugs 5, 6)"),
    composed<LinearFault::bias_dropped>("mutant/cpu/linear/bias_dropped", "the bias is not added (bug 42)"),
    composed<LinearFault::stale_output>("mutant/cpu/linear/stale_output",
                                        "without a bias, what y held is added (bugs 23, 29)"),
    composed<LinearFault::first_row_only>("mutant/cpu/linear/first_row_only",
                                          "a kernel of one row run for a batch (bug 43)"),
    add<Fault::bias_of_row>("mutant/cpu/linear/bias_of_row", "the bias is indexed by rows"),
    add<Fault::bias_twice>("mutant/cpu/linear/bias_twice", "the bias is added twice"),
    add<Fault::bias_in_bf16>("mutant/cpu/linear/bias_in_bf16", "the bias rounded to bfloat16 (bug 88)"),
    add<Fault::tf32_inputs>("mutant/cpu/linear/tf32_inputs", "inputs rounded to TF32"),
    add<Fault::bf16_accumulator>("mutant/cpu/linear/bf16_accumulator", "partial sums held in bfloat16"),
    add<Fault::zero_skipped>("mutant/cpu/linear/zero_skipped", "zeros of x skipped: 0 * Inf is lost"),
    add<Fault::width_as_stride>("mutant/cpu/linear/width_as_stride", "width used as leading dimension of W (bug 39)"),
    add<Fault::last_column_unwritten>("mutant/cpu/linear/last_column_unwritten",
                                      "the last column is not written (bug 29)"),
    add<Fault::one_element_at_large>("mutant/cpu/linear/one_element_at_large", "y[512, 512] is 1 too large"),
    add<Fault::bias_clobbered>("mutant/cpu/linear/bias_clobbered", "the bias is written (bug 25)"),
    add<Fault::first_bias_kept>("mutant/cpu/linear/first_bias_kept",
                                "an element of the first call's bias is kept (bug 27)"),
    add<Fault::saturates>("mutant/cpu/linear/saturates", "sums clamped to the range of f16"),
    add<Fault::last_term_dropped>("mutant/cpu/linear/last_term_dropped",
                                  "the last term dropped where in % 4 is 1 (bug 8)"),
};

}  // namespace
}  // namespace assay::mutants::linear_mutants
