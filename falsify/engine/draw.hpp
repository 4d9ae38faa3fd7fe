// Cases as RapidCheck generators: drawn from a seed, shrunk toward small dims, simple strategies and plain
// layouts.
#pragma once

#include <rapidcheck/Gen.h>

#include <optional>
#include <string_view>
#include <vector>

#include "falsify/engine/case.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// Least extent that `by: large` draws deliberately.
inline constexpr Index kMinLarge = 513;

/// Turn of an obligation: each obligation goes through the dims, or the regions, in another order.
struct OversizedDim {
  std::uint64_t round = 0, obligation = 0;
};

/// Settings of the draw besides the obligation.
struct DrawnFor {
  Index largest = 0;  ///< as in CampaignOptions
  /// the kernel runs as a grid of blocks (BackendTraits::blocks): cases cost more, and joint shapes come more often
  bool in_blocks = false;
  std::vector<Index> dims{};  ///< as in CampaignOptions: an extent, or kDrawnSmall; empty: all drawn
};

/// The round with this remainder out of every `every` rounds.
struct Turn {
  std::uint64_t every = 0, at = 0;
};

/// Kind of cases that an obligation requests: by default, those of an operation's own check.
struct DrawSpec {
  /// in order of preference for shrinking
  std::vector<Strategy> strategies{Strategy::exact_integers, Strategy::gaussian, Strategy::graded};
  Index volume = 1 << 18;        ///< largest product of the dims in most cases
  bool directed = false;         ///< also the operation's own inputs, if it makes any
  bool long_reductions = false;  ///< favour one dim of several hundred (statistical tier)
  bool large = false;            ///< dims of the outputs, or any two: 513 to 1025; others as far as `volume` allows
  bool any_two = false;          ///< of large cases: any two dims, not only those of the outputs
  std::uint64_t far_every = 12;  ///< rounds from one far dim to the next
  std::optional<Strategy> far_strategy{};  ///< of cases with a far dim; else any
  /// the contract's shapes come in every eighth round, as where kernels run in blocks, and expensive ones too
  bool every_region = false;
  std::optional<Turn> fills{};              ///< when several dims are as large as a case affords
  Index largest = 0;                        ///< of large cases, if not 0: every dim is between half of this and this
  int every = 1;                            ///< one case in this number of rounds of a campaign
  std::optional<std::uint64_t> turn{};      ///< number of the strategy, modulo their count; empty: drawn
  std::optional<OversizedDim> far{};        ///< one dim is beyond 1024
  std::optional<OversizedDim> joint{};      ///< the dims are a shape of the contract
  std::optional<OversizedDim> extent{};     ///< one dim has any extent up to its maximum
  std::optional<OversizedDim> filled{};     ///< several dims are as large as a case affords
  bool in_blocks = false;                   ///< as in DrawnFor
  std::vector<Index> dims{};                ///< as in DrawnFor
  OracleUse oracle_use = OracleUse::whole;  ///< how the check compares large shapes with the oracle
  bool far_rows = false;                    ///< Layout::far_rows
};

/// Registers the draw of a check by its `by` name. Defined next to the check's function.
struct CheckDraws {
  CheckDraws(std::string_view by, DrawSpec spec);
};
/// Returns the draw for an obligation's `by` name.
const DrawSpec& draw_spec(std::string_view by);

/// Draws parameters: typical values, values at which kernels branch, or any within their limits.
std::vector<double> draw_params(const OpDescriptor& op, Random& random);

/// Returns a generator of cases. Dims favour 0 where allowed, 1, 2, odd sizes, tile sizes and their neighbours.
rc::Gen<Case> case_gen(const OpDescriptor& op, const DrawSpec& spec);

/// Draws case number `number` of a campaign with this seed.
rc::Shrinkable<Case> draw(const OpDescriptor& op, const ObligationInfo& obligation, std::uint64_t seed,
                          std::uint64_t number, const DrawnFor& drawn_for = {});

/// Sets the case's dims to a shape of the contract's region whose turn it is, or of the next region with an affordable
/// shape.
void make_joint(const OpDescriptor& op, const DrawSpec& spec, const OversizedDim& turn, Case& c);

/// Returns simpler cases than this one, simplest first. Explicit values shrink toward 0, 1 and small integers with the
/// dims fixed; otherwise dims, strategy and layout shrink.
std::vector<Case> simpler(const OpDescriptor& op, const DrawSpec& spec, const Case& c);

}  // namespace assay::falsify
