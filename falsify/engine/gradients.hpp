// Gradient checks as a chain of links: (1) the backward reference in double against exact derivatives of the forward
// reference, (2) the same against finite differences in double, (3) float32 kernels against the backward reference
// within bounds. Float32 is never differenced. Upstream gradients are random: a plain sum of outputs would hide every
// error orthogonal to (1, ..., 1).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/engine/backward_oracle.hpp"
#include "falsify/engine/inputs.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

/// Comparisons of a gradient. Each tolerance is the bound that Bounded derives for the same evaluation, scaled from
/// float's roundoff to double's: bounds are polynomials in the unit roundoff u without constant term and with
/// coefficients >= 0, so bound(2^-53) <= 2^-29 bound(2^-24).
enum class Link {
  dual,               ///< every element: <w, J e_p> by dual numbers
  complex_step,       ///< every element: <w, J e_p> by complex step
  adjoint,            ///< <J v, w> = <v, J^T w> for random v, w
  finite_difference,  ///< Richardson's R = (4 D(h/2) - D(h)) / 3 of central differences D, within |R - D(h/2)| and
                      ///< roundings
  taylor,             ///< the remainder L(x + h v) - L(x) - h <g, v> falls faster than h^1.5 until roundings hide it
  kernel,             ///< the float32 kernels that the contract composes the gradient of
  accumulation,       ///< two results of these kernels added to a nonzero gradient
};
std::string_view name(Link link);

struct LinkResult {
  Link link;
  double worst = 0;           ///< largest difference over tolerance; NaN counts as infinite
  std::int64_t compared = 0;  ///< numbers compared
  std::string detail;         ///< place and size of the largest; for a kernel link, also the kernel
};

struct GradientReport {
  std::string_view op;
  std::string_view input;  ///< the tensor whose gradient this is
  std::vector<LinkResult> links;

  /// Returns the first link that does not hold, or null. A link that compared nothing does not hold.
  const LinkResult* broken() const;
  bool holds() const { return broken() == nullptr && !links.empty(); }
};

/// Gradient of one input at a random point: inputs, directions and upstream gradients are drawn from the seed.
struct GradientCase {
  const OpDescriptor* op = nullptr;
  int input = 0;  ///< index in contract order
  std::vector<Index> dims;
  std::vector<double> params;
  std::uint64_t seed = 0;
};

/// Draws small dims and any params of the operation.
GradientCase draw_gradient_case(const OpDescriptor& op, int input, std::uint64_t seed);

/// Checks links 1 and 2. Costs (elements of the input + 40) forward references in each of three number types.
GradientReport check_references(const GradientCase& c, const Oracle& oracle, const BackwardOracle& backward);

/// Runs a kernel on a problem and returns its outputs.
using RunKernel = std::function<std::vector<std::vector<float>>(const Kernel& kernel, const Problem& problem)>;
/// Runs the kernel through its contract, in this process: for kernels whose device sees host memory.
std::vector<std::vector<float>> run_here(const Kernel& kernel, const Problem& problem);

/// Checks link 3: every given kernel of the operation that the contract's gradient names ("matmul_nt(dc, b)"). Adds
/// nothing if the contract does not compose the gradient of calls.
void check_kernels(GradientReport& report, const GradientCase& c, const BackwardOracle& backward,
                   std::span<const Kernel* const> kernels, const RunKernel& run);

/// Checks the whole chain with the CPU kernels registered in this process; without params, with the typical ones.
/// Throws InputError for an unknown name.
GradientReport check_gradient(std::string_view op, std::string_view input, std::uint64_t seed, std::vector<Index> dims,
                              std::vector<double> params = {});

}  // namespace assay::falsify
