#include "falsify/engine/depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "falsify/engine/admit.hpp"
#include "falsify/engine/joint.hpp"

namespace assay::falsify {
namespace {

/// Seconds of a call beside what it computes.
constexpr double kCall = 1e-3;
/// Share of the default campaign's elements in the cases that count for missing ones. More than kMinDepth, since a kernel
/// may refuse some.
constexpr double kShareOfRich = 0.6;

/// True for the engine's own checks, which compare with an oracle or evaluate certificates.
bool judges_by_oracle(std::string_view by) {
  constexpr std::string_view kThese[] = {"frame",     "differential", "exact",          "statistical",
                                         "nonfinite", "determinism",  "postconditions", "large"};
  return std::ranges::find(kThese, by) != std::end(kThese);
}

/// Returns the number of output elements.
double elements_of(const OpDescriptor& op, const Case& c) {
  double elements = 0;
  for (const TensorInfo& t : op.tensors)
    if (t.role != Role::in) elements += static_cast<double>(t.shape(c.dims).size());
  return elements;
}

/// Returns "dominant, subnormal": the names of the three lowest set bits.
template <class E>
std::string names_of(std::uint32_t bits) {
  std::string text;
  for (int told = 0; bits != 0 && told < 3; bits &= bits - 1, ++told)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name(static_cast<E>(std::countr_zero(bits))));
  return text + (bits != 0 ? ", ..." : "");
}

}  // namespace

void Coverage::add(const OpDescriptor& op, const Case& c) {
  ++cases;
  strategies |= 1U << static_cast<unsigned>(c.strategy);
  placements |= 1U << static_cast<unsigned>(c.placement);
  if (c.region >= 0) regions |= std::uint64_t{1} << c.region;
  elements += elements_of(op, c);
}

Floor::Floor(const OpDescriptor& op, std::span<const Obligation* const> obligations, std::uint64_t seed,
             const DrawnFor& drawn_for, const Kernel* kernel)
    : op_(op), obligations_(obligations.begin(), obligations.end()), in_blocks_(drawn_for.in_blocks),
      whole_(obligations.size()) {
  std::vector<std::pair<double, double>> cases;  // rate and elements
  double all = 0;
  for (std::size_t o = 0; o < obligations.size(); ++o)
    for (int number = 0; number < kDefaultCases; number += draw_spec(obligations[o]->info->by).every) {
      Case c = draw(op, *obligations[o]->info, seed, static_cast<std::uint64_t>(number), drawn_for).value();
      if (kernel != nullptr) c = admitted(op, *kernel, c, drawn_for.dims);
      whole_[o].add(op, c);
      cases.emplace_back(rate_of(c), elements_of(op, c));
      all += cases.back().second;
    }
  std::ranges::sort(cases, std::greater());
  double rich = 0;
  for (const auto& [rate, elements] : cases) {
    if (rich >= kShareOfRich * all) break;
    least_rate_ = rate;
    rich += elements;
  }
}

double Floor::rate_of(const Case& c) const {
  return elements_of(op_, c) / (kCall + case_cost(op_, c.dims, in_blocks_, OracleUse::whole));
}

int Floor::least_cases(std::size_t obligation) const {
  return std::max(std::popcount(whole_[obligation].strategies), std::popcount(whole_[obligation].placements));
}

double Floor::depth(std::span<const Coverage> covered, const std::vector<bool>& counts) const {
  double there = 0, all = 0;
  for (std::size_t o = 0; o < whole_.size(); ++o)
    if (counts[o]) there += covered[o].elements, all += whole_[o].elements;
  return all > 0 ? there / all : 1;
}

Floor::Shortage Floor::shortage_of(int region, std::span<const Coverage> covered,
                                   const std::vector<bool>& counts) const {
  Shortage lack;
  bool oracle_had = false;
  const auto holds = [region](const Coverage& c) { return (c.regions >> region & 1) != 0; };
  for (std::size_t o = 0; o < whole_.size(); ++o) {
    if (!counts[o]) continue;
    const bool oracle = judges_by_oracle(obligations_[o]->info->by);
    lack.drawn += holds(whole_[o]), lack.had += holds(covered[o]);
    lack.oracle |= oracle && holds(whole_[o]), oracle_had |= oracle && holds(covered[o]);
  }
  lack.oracle &= !oracle_had;
  return lack;
}

bool Floor::adds(std::size_t o, const Case& c, std::span<const Coverage> covered,
                 const std::vector<bool>& counts) const {
  if (!counts[o]) return false;
  Coverage with = covered[o];
  with.add(op_, c);
  const auto grows = [&](auto part) { return (whole_[o].*part & with.*part & ~(covered[o].*part)) != 0; };
  if (grows(&Coverage::strategies) || grows(&Coverage::placements)) return true;
  if (rate_of(c) >= least_rate_ && depth(covered, counts) < kMinDepth) return true;
  if (c.region < 0) return false;
  const Shortage lack = shortage_of(c.region, covered, counts);
  return lack.few() || (lack.oracle && judges_by_oracle(obligations_[o]->info->by));
}

std::string Floor::lacks(std::span<const Coverage> covered, const std::vector<bool>& counts) const {
  for (std::size_t o = 0; o < whole_.size(); ++o) {
    if (!counts[o]) continue;
    const std::string_view id = obligations_[o]->info->id;
    if (const auto missing = whole_[o].strategies & ~covered[o].strategies; missing != 0)
      return fmt::format("{} had no case of {}", id, names_of<Strategy>(missing));
    if (const auto missing = whole_[o].placements & ~covered[o].placements; missing != 0)
      return fmt::format("{} had no case with {}", id, names_of<Placement>(missing));
  }
  for (int region = 0; region < static_cast<int>(op_.shapes.size()); ++region) {
    const Shortage lack = shortage_of(region, covered, counts);
    const std::string_view shapes = op_.shapes[static_cast<std::size_t>(region)].name;
    if (lack.few())
      return fmt::format("{} of {} obligations had a case of the shapes '{}'", lack.had, std::min(lack.drawn, 2),
                         shapes);
    if (lack.oracle) return fmt::format("no obligation with an oracle had a case of the shapes '{}'", shapes);
  }
  if (const double reached = depth(covered, counts); reached < kMinDepth)
    return fmt::format(
        "{:.1f}% of the elements of a default campaign, of which at least a third is required: give --cases 100, the default, or more",
        100 * reached);
  return {};
}

}  // namespace assay::falsify
