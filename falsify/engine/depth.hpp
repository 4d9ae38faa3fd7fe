// How deep a campaign went: what it ran, beside what a campaign of the default length draws.
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

/// Of each obligation, by default.
inline constexpr int kDefaultCases = 100;
/// Part of the default campaign's elements without which a verdict is thin.
inline constexpr double kLeastDepth = 1.0 / 3;

/// What some cases of one obligation have covered, as a pure function of what was drawn: no kernel and no check has a part in it.
struct Coverage {
  std::uint32_t strategies = 0, placements = 0;  ///< a bit each
  std::uint64_t regions = 0;                     ///< joint shapes: a bit for each region of the contract
  double elements = 0;                           ///< of the outputs in the dims of the cases
  int cases = 0;

  void add(const OpDescriptor& op, const Case& c);
};

/// The least that a campaign must cover for its verdict to stand for a campaign of the default length. The default campaign with the
/// same seed reaches it, since it is computed from that campaign's draws: of each obligation every strategy and placement; every joint
/// region under two obligations, one of which compares with an oracle or a certificate; and a third of all elements.
class Floor {
 public:
  /// Of a kernel, if given, nothing is asked that its limits exclude: its cases are the admitted ones (admit.hpp).
  Floor(const OpDescriptor& op, std::span<const Obligation* const> obligations, std::uint64_t seed, const DrawnFor& drawn_for = {},
        const Kernel* kernel = nullptr);

  /// What is missing, in a few words; empty: nothing. `counts` leaves out obligations that are not applicable.
  std::string lacks(std::span<const Coverage> covered, const std::vector<bool>& counts) const;
  /// The case covers something that is missing.
  bool adds(std::size_t obligation, const Case& c, std::span<const Coverage> covered, const std::vector<bool>& counts) const;
  /// Cases of an obligation that it takes at least to cover every strategy and placement.
  int least_cases(std::size_t obligation) const;
  /// Elements covered as a part of those of the default campaign.
  double depth(std::span<const Coverage> covered, const std::vector<bool>& counts) const;

 private:
  /// What a region lacks: obligations, or one of them that has an oracle.
  struct Lack {
    int drawn = 0, had = 0;  ///< obligations that had a case of it: of the default campaign, and of this one
    bool oracle = false;

    bool few() const { return had < std::min(drawn, 2); }
  };
  Lack lack_of(int region, std::span<const Coverage> covered, const std::vector<bool>& counts) const;

  const OpDescriptor& op_;
  std::vector<const Obligation*> obligations_;
  std::vector<Coverage> whole_;
};

}  // namespace assay::falsify
