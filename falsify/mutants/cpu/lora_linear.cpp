// Wrong linear layers with adapters, and their gradients: the right composition with one fault, or loops with one.
#include <algorithm>
#include <vector>

#include "falsify/mutants/cpu/mutant.hpp"
#include "falsify/mutants/cpu/rounding.hpp"
#include "kernels/cpu/affine_product.hpp"
#include "kernels/lora.hpp"

namespace assay::mutants::lora_linear_mutants {
namespace {

using ops::LoraLinearArgs;
using ops::LoraLinearBackwardArgs;

enum class Fault {
  // forward
  t_in_bf16,
  tf32_adapter,
  last_rank_dropped,
  rank_of_first_call,
  zero_adapter_skipped,
  one_element_at_large,
  scale_in_bf16,
  width_as_stride,
  weight_clobbered,
  t_saturates,
  // backward
  g_in_bf16,
  da_accumulates,
  db_of_scaled_t,
  last_row_dropped,
  x_clobbered,
  g_of_layer,
  da_one_element_at_large,
  g_saturates,
};

/// y from t by loops.
template <Fault F>
void forward(const LoraLinearArgs& args, Device&) {
  static const Index first_rank = args.r;
  Index r = F == Fault::rank_of_first_call && first_rank < args.r ? first_rank : args.r;
  if (F == Fault::last_rank_dropped && args.r > 8) r = args.r - 1;
  float scale = lora_scale(args.alpha, args.r);
  if (F == Fault::scale_in_bf16) scale = rounded(scale, 8);
  const Index ldb = F == Fault::width_as_stride ? args.r : args.b.stride(0);
  for (Index i = 0; i < args.s; ++i) {
    for (Index q = 0; q < args.r; ++q) {
      float sum = 0;
      for (Index p = 0; p < args.in; ++p) sum += args.x(i, p) * args.a(q, p);
      if (F == Fault::t_saturates) sum = std::clamp(sum, -65504.0f, 65504.0f);
      args.t(i, q) = F == Fault::t_in_bf16 ? rounded(sum, 8) : sum;
    }
    for (Index o = 0; o < args.out; ++o) {
      float layer = 0, adapter = 0;
      bool zero = true;
      for (Index p = 0; p < args.in; ++p) layer += args.x(i, p) * args.weight(o, p);
      if (args.biases > 0) layer += args.bias(0, o);
      for (Index q = 0; q < r; ++q) {
        float t = args.t(i, q), b = args.b.data()[o * ldb + q];
        zero &= b == 0;
        if (F == Fault::tf32_adapter) t = rounded(t, 11), b = rounded(b, 11);
        adapter += t * b;
      }
      if (F == Fault::one_element_at_large && i == 512 && o == 512) layer += 1;
      args.y(i, o) = F == Fault::zero_adapter_skipped && zero ? layer : layer + scale * adapter;
    }
  }
  if (F == Fault::weight_clobbered && args.weight.size() > 0) const_cast<float&>(args.weight(0, 0)) = 0;
}

template <Fault F>
void backward(const LoraLinearBackwardArgs& args, Device&) {
  const float scale = lora_scale(args.alpha, args.r);
  if (F != Fault::da_accumulates)
    for (Index q = 0; q < args.r; ++q)
      for (Index p = 0; p < args.in; ++p) args.da(q, p) = 0;
  const Index rows = F == Fault::last_row_dropped && args.s % 16 == 1 ? args.s - 1 : args.s;
  std::vector<float> g(static_cast<std::size_t>(args.r));
  for (Index i = 0; i < args.s; ++i) {
    for (Index q = 0; q < args.r; ++q) {
      float sum = 0;
      for (Index o = 0; o < args.out; ++o) sum += args.dy(i, o) * args.b(o, q);
      if (F == Fault::g_saturates) sum = std::clamp(sum, -65504.0f, 65504.0f);
      if (F == Fault::g_of_layer && i == 1) continue;  // the row before is kept
      g[static_cast<std::size_t>(q)] = F == Fault::g_in_bf16 ? rounded(scale * sum, 8) : scale * sum;
    }
    for (Index p = 0; p < args.in; ++p) {
      float sum = 0;
      for (Index o = 0; o < args.out; ++o) sum += args.dy(i, o) * args.weight(o, p);
      for (Index q = 0; q < args.r; ++q) {
        sum += g[static_cast<std::size_t>(q)] * args.a(q, p);
        if (i < rows) args.da(q, p) += g[static_cast<std::size_t>(q)] * args.x(i, p);
      }
      args.dx(i, p) = sum;
    }
  }
  for (Index o = 0; o < args.out; ++o)
    for (Index q = 0; q < args.r; ++q) {
      float sum = 0;
      for (Index i = 0; i < rows; ++i)
        sum += args.dy(i, o) * (F == Fault::db_of_scaled_t ? scale * args.t(i, q) : args.t(i, q));
      args.db(o, q) = scale * sum;
    }
  if (F == Fault::da_one_element_at_large && args.r > 0 && args.in > 512) args.da(args.r - 1, 512) += 1;
  if (F == Fault::x_clobbered && args.s * args.in > 0) const_cast<float&>(args.x(args.s - 1, args.in - 1)) = 0;
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraLinearArgs, &forward<F>>("lora_linear", id, fault);
}
template <Fault F>
KernelRegistration add_backward(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraLinearBackwardArgs, &backward<F>>("lora_linear_backward", id, fault);
}
template <LoraFault F>
KernelRegistration composed(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraLinearArgs, &lora_linear_by<&cpu::multiply_tiled, F>>("lora_linear", id, fault);
}
template <LoraFault F>
KernelRegistration composed_backward(std::string_view id, std::string_view fault) {
  return cpu_mutant<LoraLinearBackwardArgs, &lora_linear_backward_by<&cpu::multiply_tiled, F>>("lora_linear_backward",
                                                                                               id, fault);
}

using L = LoraFault;

const KernelRegistration registrations[] = {
    composed<L::scale_is_alpha>("mutant/cpu/lora_linear/scale_is_alpha", "alpha in place of alpha / r (bug 76)"),
    composed<L::scale_by_root>("mutant/cpu/lora_linear/scale_by_root", "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    composed<L::scale_left_out>("mutant/cpu/lora_linear/scale_left_out", "the adapter is not scaled"),
    composed<L::bias_dropped>("mutant/cpu/lora_linear/bias_dropped",
                              "the path with an adapter drops the bias (bug 42)"),
    composed<L::weight_as_in_out>("mutant/cpu/lora_linear/weight_as_in_out", "W read as [in, out] (bugs 5, 6)"),
    composed<L::a_as_in_r>("mutant/cpu/lora_linear/a_as_in_r", "A read as [in, r] (bugs 3, 5)"),
    composed<L::b_as_r_out>("mutant/cpu/lora_linear/b_as_r_out", "B read as [r, out] (bugs 3, 5)"),
    composed<L::layer_overwritten>("mutant/cpu/lora_linear/layer_overwritten",
                                   "the adapter takes the place of the layer"),
    composed<L::adapter_left_out>("mutant/cpu/lora_linear/adapter_left_out", "the adapter is not added (bug 53)"),
    composed<L::scale_saved_in_t>("mutant/cpu/lora_linear/scale_saved_in_t", "t is saved with the scale in it"),
    composed<L::t_of_first_row>("mutant/cpu/lora_linear/t_of_first_row", "t computed for one row of a batch (bug 43)"),
    add<Fault::t_in_bf16>("mutant/cpu/lora_linear/t_in_bf16", "t rounded to bfloat16 (bug 88)"),
    add<Fault::tf32_adapter>("mutant/cpu/lora_linear/tf32_adapter", "t and B rounded to TF32"),
    add<Fault::last_rank_dropped>("mutant/cpu/lora_linear/last_rank_dropped",
                                  "the last rank dropped where r > 8 (bug 8)"),
    add<Fault::rank_of_first_call>("mutant/cpu/lora_linear/rank_of_first_call",
                                   "the first call's rank is kept (bug 27)"),
    add<Fault::zero_adapter_skipped>("mutant/cpu/lora_linear/zero_adapter_skipped",
                                     "rows of B that are zero skipped: 0 * Inf is lost"),
    add<Fault::one_element_at_large>("mutant/cpu/lora_linear/one_element_at_large", "y[512, 512] is 1 too large"),
    add<Fault::weight_clobbered>("mutant/cpu/lora_linear/weight_clobbered", "the frozen weight is written (bug 25)"),
    add<Fault::t_saturates>("mutant/cpu/lora_linear/t_saturates", "t clamped to the range of f16"),
    add<Fault::scale_in_bf16>("mutant/cpu/lora_linear/scale_in_bf16", "alpha / r rounded to bfloat16"),
    add<Fault::width_as_stride>("mutant/cpu/lora_linear/width_as_stride",
                                "width used as leading dimension of B (bug 39)"),
    composed_backward<L::scale_is_alpha>("mutant/cpu/lora_linear_backward/scale_is_alpha",
                                         "alpha in place of alpha / r (bug 76)"),
    composed_backward<L::scale_by_root>("mutant/cpu/lora_linear_backward/scale_by_root",
                                        "alpha / sqrt(r): the scale of rsLoRA (bug 76)"),
    composed_backward<L::scale_left_out>("mutant/cpu/lora_linear_backward/scale_left_out",
                                         "gradients of the adapter are not scaled"),
    composed_backward<L::dx_of_layer_alone>("mutant/cpu/lora_linear_backward/dx_of_layer_alone",
                                            "dx without the adapter's part (bug 53)"),
    composed_backward<L::dx_of_adapter_alone>("mutant/cpu/lora_linear_backward/dx_of_adapter_alone",
                                              "dx without the part of the frozen layer (bug 47)"),
    composed_backward<L::weight_transposed_again>("mutant/cpu/lora_linear_backward/weight_transposed_again",
                                                  "dy · Wᵀ in place of dy · W where W is square (bug 3)"),
    composed_backward<L::da_left_out>("mutant/cpu/lora_linear_backward/da_left_out",
                                      "dA stays zero: it went to a copy (bug 48)"),
    composed_backward<L::db_left_out>("mutant/cpu/lora_linear_backward/db_left_out",
                                      "dB stays zero: it went to a copy (bug 48)"),
    composed_backward<L::da_not_scaled>("mutant/cpu/lora_linear_backward/da_not_scaled", "dA without alpha / r"),
    composed_backward<L::da_scaled_twice>("mutant/cpu/lora_linear_backward/da_scaled_twice", "dA with alpha / r twice"),
    composed_backward<L::db_of_first_row>("mutant/cpu/lora_linear_backward/db_of_first_row",
                                          "dB of the first row alone (bug 43)"),
    composed_backward<L::stale_scratch>("mutant/cpu/lora_linear_backward/stale_scratch",
                                        "dy · B added to what scratch memory held (bugs 23, 24)"),
    add_backward<Fault::g_in_bf16>("mutant/cpu/lora_linear_backward/g_in_bf16", "dy · B held in bfloat16"),
    add_backward<Fault::g_saturates>("mutant/cpu/lora_linear_backward/g_saturates",
                                     "dy · B clamped to the range of f16"),
    add_backward<Fault::da_accumulates>("mutant/cpu/lora_linear_backward/da_accumulates",
                                        "dA added to what it held (bug 25)"),
    add_backward<Fault::db_of_scaled_t>("mutant/cpu/lora_linear_backward/db_of_scaled_t",
                                        "dB of a t that is taken to be unscaled and scaled again"),
    add_backward<Fault::last_row_dropped>("mutant/cpu/lora_linear_backward/last_row_dropped",
                                          "the last row left out of dA and dB where s % 16 is 1 (bug 8)"),
    add_backward<Fault::x_clobbered>("mutant/cpu/lora_linear_backward/x_clobbered", "an input is written (bug 25)"),
    add_backward<Fault::g_of_layer>("mutant/cpu/lora_linear_backward/stale_row_of_g",
                                    "the second row uses dy · B of the first (bug 24)"),
    add_backward<Fault::da_one_element_at_large>("mutant/cpu/lora_linear_backward/one_element_at_large",
                                                 "dA[r - 1, 512] is 1 too large"),
};

}  // namespace
}  // namespace assay::mutants::lora_linear_mutants
