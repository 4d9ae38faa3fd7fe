// Wrong steps of AdamW.
#include <algorithm>
#include <cmath>

#include "falsify/mutants/cpu/mutant.hpp"
#include "kernels/adamw_constants.hpp"

namespace assay::mutants::adamw_step_mutants {
namespace {

enum class Fault {
  step_plus_one,
  not_corrected,
  v_not_corrected,
  eps_under_root,
  eps_before_correction,
  eps_missing,
  decay_after,
  decay_in_gradient,
  lr_hard_coded,
  beta2_hard_coded,
  lr_scaled,
  one_minus_beta_in_float,
  one_past_the_end,
  moments_not_read,
  m_uncorrected,
  old_moment,
  sign,
  v_of_mean
};

template <Fault F>
void mutant(const ops::AdamwStepArgs& given, Device&) {
  ops::AdamwStepArgs args = given;
  if (F == Fault::step_plus_one) args.step += 1;
  if (F == Fault::lr_hard_coded) args.lr = 1e-3;
  if (F == Fault::beta2_hard_coded) args.beta2 = 0.95;
  if (F == Fault::lr_scaled) args.lr *= 0.5;
  AdamwConstants c = adamw_constants(args);
  const auto lr = static_cast<float>(args.lr);
  if (F == Fault::not_corrected) c.size = lr, c.scale = 1;
  if (F == Fault::v_not_corrected) c.scale = 1;
  if (F == Fault::m_uncorrected) c.size = lr;
  if (F == Fault::one_minus_beta_in_float) {  // 1 - fl(beta^t) in float: the correction loses its digits
    c.size = lr / (1.0F - std::pow(static_cast<float>(args.beta1), static_cast<float>(args.step)));
    c.scale = 1.0F / std::sqrt(1.0F - std::pow(static_cast<float>(args.beta2), static_cast<float>(args.step)));
  }
  const Index n = F == Fault::one_past_the_end && args.n > 0 ? args.n + 1 : args.n;
  for (Index i = 0; i < n; ++i) {
    float g = i < args.n ? args.g(i) : 0.0F, p = args.p(i);
    if (F == Fault::decay_in_gradient) g += static_cast<float>(args.weight_decay) * p;
    const float before = F == Fault::moments_not_read ? 0.0F : args.m(i);
    const float m = c.keep1 * before + c.take1 * g;
    const float squared = F == Fault::v_of_mean ? m * m : g * g;
    const float v = c.keep2 * args.v(i) + c.take2 * squared;
    float root = std::sqrt(v) * c.scale + c.eps;
    if (F == Fault::eps_under_root) root = std::sqrt(v * c.scale * c.scale + c.eps);
    if (F == Fault::eps_before_correction) root = (std::sqrt(v) + c.eps) * c.scale;
    if (F == Fault::eps_missing) root = std::sqrt(v) * c.scale;
    const float update = c.size * ((F == Fault::old_moment ? before : m) / root);
    args.m(i) = m;
    args.v(i) = v;
    args.p(i) = F == Fault::decay_after         ? c.decay * (p - update)
                : F == Fault::decay_in_gradient ? p - update
                : F == Fault::sign              ? c.decay * p + update
                                                : c.decay * p - update;
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::AdamwStepArgs, &mutant<F>>("adamw_step", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::step_plus_one>("mutant/cpu/adamw_step/step_plus_one", "bias corrected for the next step"),
    add<Fault::not_corrected>("mutant/cpu/adamw_step/not_corrected", "no bias correction"),
    add<Fault::v_not_corrected>("mutant/cpu/adamw_step/v_not_corrected", "v is not corrected"),
    add<Fault::m_uncorrected>("mutant/cpu/adamw_step/m_not_corrected", "m is not corrected"),
    add<Fault::eps_under_root>("mutant/cpu/adamw_step/eps_under_the_root", "sqrt(v + eps)"),
    add<Fault::eps_before_correction>("mutant/cpu/adamw_step/eps_before_correction", "eps is corrected with the root"),
    add<Fault::eps_missing>("mutant/cpu/adamw_step/eps_missing", "no eps: 0 / 0 where there is no gradient"),
    add<Fault::decay_after>("mutant/cpu/adamw_step/decay_after_step", "the update decays with p"),
    add<Fault::decay_in_gradient>("mutant/cpu/adamw_step/decay_in_gradient",
                                  "L2 regularization in place of decoupled decay"),
    add<Fault::lr_hard_coded>("mutant/cpu/adamw_step/lr_hard_coded", "lr = 1e-3 whatever is given (bug 65)"),
    add<Fault::beta2_hard_coded>("mutant/cpu/adamw_step/beta2_hard_coded", "beta2 = 0.95 whatever is given (bug 68)"),
    add<Fault::lr_scaled>("mutant/cpu/adamw_step/lr_scaled", "lr times a loss scale (bug 66)"),
    add<Fault::one_minus_beta_in_float>("mutant/cpu/adamw_step/correction_in_float", "1 - beta^step formed in float32"),
    add<Fault::one_past_the_end>("mutant/cpu/adamw_step/one_past_the_end",
                                 "i <= n: the neighbour's first element is updated (bug 2)"),
    add<Fault::moments_not_read>("mutant/cpu/adamw_step/moments_not_read", "m starts from 0 at every step (bug 23)"),
    add<Fault::old_moment>("mutant/cpu/adamw_step/old_moment", "the update uses m from before the step"),
    add<Fault::v_of_mean>("mutant/cpu/adamw_step/v_of_mean", "v averages m^2, not g^2"),
    add<Fault::sign>("mutant/cpu/adamw_step/ascends", "the update is added"),
};

}  // namespace
}  // namespace assay::mutants::adamw_step_mutants
