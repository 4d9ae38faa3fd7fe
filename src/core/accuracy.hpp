// Accuracy promised by libraries for elementary functions: contracts/numerics.yaml as a table.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

/// Library that computes exp, log, division and other functions for a kernel: a row of contracts/numerics.yaml.
enum class FunctionLibrary { c_library, highway, cuda, cuda_exp2, vulkan, octant, numpy };
std::string_view name(FunctionLibrary library);

enum class Function { divide, sqrt, reciprocal_sqrt, exp, expm1, log, log1p, sin, cos, tanh, pow };
std::string_view name(Function function);

/// Returns the largest power of two that is at most x, for x >= 0. All numbers of that binade, from 1.01 to 1.99 times
/// the power, have the same unit in the last place, and rounding one of them errs by at most half of it.
inline double binade(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0'0000'0000'0000U);
}

/// |computed f(x) - f(x)| <= (ulp + ulp_per_x |x|) units in the last place of f(x), and `absolute` more where |x| is
/// in [from, to].
struct Accuracy {
  double ulp = 0.5;
  double ulp_per_x = 0;
  double absolute = 0;
  double from = 0;
  double to = 0;
  bool of_value = false;       ///< units are 2^-23 |f(x)|, which is more than one in the last place
  bool exact_at_zero = false;  ///< f(0) has no error

  /// Returns the error of a normal f(x) whose magnitude is at most `reach`. Libraries count floats between their result
  /// and the float nearest to f(x). Floats are twice as far apart in the next binade, so the unit is taken there if the
  /// error itself may reach it.
  double within(double magnitude_of_x, double reach) const {
    const double error = relative(magnitude_of_x);
    return error * (of_value ? reach : binade(reach * (1 + 2 * error)));
  }
  /// Error relative to |f(x)|: a unit in the last place is at most 2^-23 of a normal value.
  double relative(double magnitude_of_x) const { return units(magnitude_of_x) * 0x1p-23; }
  /// Error of a subnormal value, whose unit in the last place is 2^-149.
  double smallest() const { return ulp * 0x1p-149; }
  /// Returns the additional absolute error for arguments with magnitudes in [least, most].
  double beside(double least, double most) const { return most >= from && least <= to ? absolute : 0; }

 private:
  double units(double magnitude_of_x) const { return ulp_per_x == 0 ? ulp : ulp + ulp_per_x * magnitude_of_x; }
};

/// Returns the accuracy of `function`. Throws std::logic_error if the library promises nothing for it: the kernel
/// declares a library that cannot compute its operation.
const Accuracy& accuracy(FunctionLibrary library, Function function);

namespace detail {
/// Returns a row of the generated table, or null if the library promises nothing.
const Accuracy* find_accuracy(FunctionLibrary library, Function function);
}  // namespace detail

}  // namespace assay
