// Wrong rotations.
#include "ops/rope.hpp"

#include <cmath>
#include <numbers>

#include "falsify/mutants/cpu/mutant.hpp"
#include "ops/rope_backward.hpp"

namespace assay::mutants::rope_mutants {
namespace {

enum class Fault {
  layouts_swapped, unrotated, base_hard_coded, base_off_by_one, position_off_by_one, position_ignored, rotated_back,
  float32_angle_always, reduced_in_float, half_of_d, first_head_only, iterated_angle, degrees_of_row,
};

template <Fault F, class Args>
void rotate(const Args& args, Device&) {
  constexpr bool kBack = requires { args.dx; };
  StorageView from, to;
  if constexpr (kBack) from = args.dy, to = args.dx;
  else from = args.x, to = args.y;
  const View<const float> x = from.template as<const float>();
  const View<float> y = to.template as<float>();
  const double theta = F == Fault::base_hard_coded ? 1e6 : F == Fault::base_off_by_one ? args.theta + 1 : args.theta;
  const bool neighbours = (args.interleaved != 0) != (F == Fault::layouts_swapped);
  const bool float32_angle = args.float32_angle != 0 || F == Fault::float32_angle_always;
  for (Index row = 0; row < args.rows; ++row)
    for (Index i = 0; i < args.d / 2; ++i) {
      double position = args.position + static_cast<double>(row);
      if (F == Fault::position_off_by_one) position += 1;
      if (F == Fault::position_ignored) position = static_cast<double>(row);
      if (F == Fault::degrees_of_row) position = args.position;
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(F == Fault::half_of_d ? args.d / 2 : args.d);
      const double frequency = std::pow(theta, exponent);
      double angle = float32_angle ? static_cast<float>(position) * static_cast<float>(frequency) : position * frequency;
      if (F == Fault::iterated_angle) {  // angle *= theta^(-2/d), pair after pair
        auto running = static_cast<float>(position);
        for (Index k = 0; k < i; ++k) running *= static_cast<float>(std::pow(theta, -2.0 / static_cast<double>(args.d)));
        angle = running;
      }
      if (F == Fault::reduced_in_float) {
        const auto turn = 2 * std::numbers::pi_v<float>, all = static_cast<float>(angle);
        angle = all - std::floor(all / turn) * turn;
      }
      if ((F == Fault::rotated_back) != kBack) angle = -angle;
      if (F == Fault::unrotated) angle = 0;
      const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
      const Index first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + args.d / 2;
      for (Index head = 0; head < args.heads; ++head) {
        const bool left = F == Fault::first_head_only && head > 0;
        const float x1 = x(row, head, first), x2 = x(row, head, second);
        y(row, head, first) = left ? x1 : x1 * c - x2 * s;
        y(row, head, second) = left ? x2 : x2 * c + x1 * s;
      }
    }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::RopeArgs, &rotate<F, ops::RopeArgs>>("rope", id, fault);
}
template <Fault F>
KernelRegistration add_back(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::RopeBackwardArgs, &rotate<F, ops::RopeBackwardArgs>>("rope_backward", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::layouts_swapped>("mutant/cpu/rope/layouts_swapped", "pairs of the other layout (bug 36)"),
    add<Fault::unrotated>("mutant/cpu/rope/unrotated", "a fallback that copies (bug 37)"),
    add<Fault::base_hard_coded>("mutant/cpu/rope/base_hard_coded", "theta is 1e6 whatever the caller says (bug 37)"),
    add<Fault::base_off_by_one>("mutant/cpu/rope/base_off_by_one", "theta + 1"),
    add<Fault::position_off_by_one>("mutant/cpu/rope/position_off_by_one", "positions are counted from 1 (bug 37)"),
    add<Fault::position_ignored>("mutant/cpu/rope/position_ignored", "every call starts at position 0 (bug 30)"),
    add<Fault::degrees_of_row>("mutant/cpu/rope/row_ignored", "every row stands at the first one's position"),
    add<Fault::rotated_back>("mutant/cpu/rope/rotated_back", "the sign of the sine"),
    add<Fault::float32_angle_always>("mutant/cpu/rope/float32_angle_always", "the angle is a float where it should be exact"),
    add<Fault::reduced_in_float>("mutant/cpu/rope/reduced_in_float", "whole turns are taken off in float32"),
    add<Fault::half_of_d>("mutant/cpu/rope/half_of_d", "frequencies of a head of half the width"),
    add<Fault::iterated_angle>("mutant/cpu/rope/iterated_angle", "angles by repeated multiplication in float32"),
    add<Fault::first_head_only>("mutant/cpu/rope/first_head_only", "heads beyond the first are copied (bug 31)"),
    add_back<Fault::rotated_back>("mutant/cpu/rope_backward/rotated_forward", "rotates as the forward pass does"),
    add_back<Fault::unrotated>("mutant/cpu/rope_backward/unrotated", "the gradient passes unrotated (bug 35)"),
    add_back<Fault::position_ignored>("mutant/cpu/rope_backward/position_ignored", "every call starts at position 0 (bug 30)"),
    add_back<Fault::layouts_swapped>("mutant/cpu/rope_backward/layouts_swapped", "pairs of the other layout (bug 36)"),
};

}  // namespace
}  // namespace assay::mutants::rope_mutants
