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

/// The least extent that `by: large` draws on purpose.
inline constexpr Index kLeastLarge = 513;

/// Whose turn it is: each obligation goes through the dims, or the regions, in another order than the others.
struct FarTurn {
  std::uint64_t round = 0, obligation = 0;
};

/// What cases are drawn for, beside their obligation.
struct DrawnFor {
  Index largest = 0;       ///< as CampaignOptions has it
  bool in_blocks = false;  ///< the kernel runs as a grid of blocks (BackendTraits::blocks): an average case costs more there, and shapes come oftener
  std::vector<Index> dims{};  ///< as CampaignOptions has them: an extent for each dim or kDrawnSmall; empty: any
};

/// In every so many rounds, the one at this place.
struct Turn {
  std::uint64_t every = 0, at = 0;
};

/// What an obligation wants drawn: by default, what a check of one operation's own does.
struct DrawSpec {
  std::vector<Strategy> strategies{Strategy::exact_integers, Strategy::gaussian, Strategy::graded};  ///< in order of preference for shrinking
  Index volume = 1 << 18;            ///< largest product of the dims in most cases
  bool directed = false;             ///< the operation's own inputs too, where it makes some
  bool long_reductions = false;      ///< favour one dim of several hundred (statistical tier)
  bool large = false;                ///< dims of the outputs, or any two: 513 to 1025; others as `volume` allows
  bool any_two = false;              ///< of large cases: any two dims, whether of the outputs or not
  std::uint64_t far_every = 12;      ///< rounds from one far dim to the next
  std::optional<Strategy> far_strategy{};  ///< of cases with a far dim; else any
  bool often_shapes_of_heads = false;      ///< shapes of operations with heads come in every eighth round, as where kernels run in blocks
  std::optional<Turn> fills{};             ///< when several dims are as large as a case affords
  Index largest = 0;                 ///< of large cases, if not 0: every dim is between half of this and this
  int every = 1;                     ///< one case in so many rounds of a campaign
  std::optional<std::uint64_t> turn{};  ///< of the strategies: the one with this number, modulo how many there are; else drawn
  std::optional<FarTurn> far{};         ///< one dim is beyond 1024
  std::optional<FarTurn> joint{};       ///< the dims are a shape of the contract
  std::optional<FarTurn> extent{};      ///< one dim is anything up to its maximum
  std::optional<FarTurn> filled{};      ///< several dims are as large as a case affords
  bool in_blocks = false;               ///< as DrawnFor has it
  std::vector<Index> dims{};            ///< likewise
  OracleUse oracle_use = OracleUse::whole;       ///< how the check compares large shapes with the oracle
  bool far_rows = false;             ///< Layout::far_rows
};

/// What the check that contracts name so wants drawn. It stands beside the check's function.
struct CheckDraws {
  CheckDraws(std::string_view by, DrawSpec spec);
};
const DrawSpec& draw_spec(std::string_view by);

/// Parameters: typical ones, those where kernels have branches of their own, or any within their limits.
std::vector<double> draw_params(const OpDescriptor& op, Random& random);

/// Cases of an operation. Dims favour 0 where allowed, 1, 2, odd sizes, tile sizes and their neighbours.
rc::Gen<Case> case_gen(const OpDescriptor& op, const DrawSpec& spec);

/// The case number `number` of a campaign with this seed.
rc::Shrinkable<Case> draw(const OpDescriptor& op, const ObligationInfo& obligation, std::uint64_t seed,
                          std::uint64_t number, const DrawnFor& drawn_for = {});

/// Gives the case dims of the contract's region whose turn it is, or of the next one that has a shape a case can afford.
void make_joint(const OpDescriptor& op, const DrawSpec& spec, const FarTurn& turn, Case& c);

/// Simpler cases than this one, simplest first. Explicit values shrink toward 0, 1 and small integers with
/// the dims fixed; otherwise dims, strategy and layout shrink.
std::vector<Case> simpler(const OpDescriptor& op, const DrawSpec& spec, const Case& c);

}  // namespace assay::falsify
