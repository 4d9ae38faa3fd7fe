// Depth of a campaign: the share of a default campaign's cases and elements that it covered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "falsify/engine/case.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify {

/// Default number of cases per obligation.
inline constexpr int kDefaultCases = 100;
/// Fraction of the default campaign's elements below which a verdict is thin.
inline constexpr double kMinDepth = 1.0 / 3;

/// Coverage of the cases of one obligation: a pure function of the drawn cases, independent of kernels and checks.
struct Coverage {
  std::uint32_t strategies = 0, placements = 0;  ///< one bit each
  std::uint64_t regions = 0;                     ///< joint shapes: one bit for each region of the contract
  double elements = 0;                           ///< output elements at the dims of the cases
  int cases = 0;

  void add(const OpDescriptor& op, const Case& c);
};

/// Minimum coverage for a verdict to be worth that of a default campaign. Computed from the draws of the default
/// campaign with the same seed, which therefore reaches it: every strategy and placement of each obligation; every
/// joint region under two obligations, one of which compares with an oracle or a certificate; and a third of all
/// elements.
class Floor {
 public:
  /// With a kernel, requires nothing that its limits exclude: the cases are the admitted ones (admit.hpp).
  Floor(const OpDescriptor& op, std::span<const Obligation* const> obligations, std::uint64_t seed,
        const DrawnFor& drawn_for = {}, const Kernel* kernel = nullptr);

  /// Returns the missing coverage in a few words; empty if none is missing. `counts` excludes obligations that are not
  /// applicable.
  std::string lacks(std::span<const Coverage> covered, const std::vector<bool>& counts) const;
  /// True if the case covers something that is missing. Of missing elements, the default campaign's cases that compare
  /// most elements a second hold enough; the others do not count.
  bool adds(std::size_t obligation, const Case& c, std::span<const Coverage> covered,
            const std::vector<bool>& counts) const;
  /// Returns the minimum number of cases that cover every strategy and placement of an obligation.
  int least_cases(std::size_t obligation) const;
  /// Returns the covered elements as a fraction of the default campaign's.
  double depth(std::span<const Coverage> covered, const std::vector<bool>& counts) const;

 private:
  /// Missing coverage of a region: obligations, or an obligation with an oracle.
  struct Shortage {
    int drawn = 0, had = 0;  ///< obligations with a case in the region: in the default campaign, and in this one
    bool oracle = false;

    bool few() const { return had < std::min(drawn, 2); }
  };
  Shortage shortage_of(int region, std::span<const Coverage> covered, const std::vector<bool>& counts) const;
  /// Returns the elements that a case compares a second.
  double rate_of(const Case& c) const;

  const OpDescriptor& op_;
  std::vector<const Obligation*> obligations_;
  bool in_blocks_;
  std::vector<Coverage> whole_;
  double least_rate_ = 0;  ///< of cases that count for missing elements
};

}  // namespace assay::falsify
