// Measures how far shrunk counterexamples are from minimal. For every CPU mutant of the products: falsify, shrink, then
// search all smaller dims up to 4 x 4 x 4 (every strategy, layout and placement) for a failing case of the same
// obligation. Prints a table; fails below the promised share (20 of 25).
#include <fmt/format.h>

#include <numeric>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace {

constexpr double kPromised = 20.0 / 25.0;

const Obligation& find(std::string_view op, std::string_view id) {
  for (const Obligation& o : obligations(op))
    if (o.info->id == id) return o;
  throw std::logic_error("no such obligation");
}

/// Returns a failing case with no dim larger than these and one smaller, if there is one.
std::optional<Case> smaller_failure(const OpDescriptor& op, const Obligation& o, const Kernel& k, const Case& from) {
  Worker worker(std::chrono::milliseconds(1000));
  const DrawSpec spec = draw_spec(o.info->by);
  for (Index m = 0; m <= 4; ++m)
    for (Index n = 0; n <= 4; ++n)
      for (Index p = 0; p <= 4; ++p) {
        Case c = from;
        c.values.clear();
        c.dims = {m, n, p};
        c.dims.resize(from.dims.size());
        bool no_larger = c.dims != from.dims;
        for (std::size_t d = 0; d < c.dims.size(); ++d) no_larger = no_larger && c.dims[d] <= from.dims[d];
        if (!no_larger || (from.dims.size() < 3 && p > 0)) continue;
        for (Strategy strategy : spec.strategies)
          for (int layout = 0; layout < kNearLayouts; ++layout)
            for (int placement = 0; placement < kPlacements; ++placement) {
              c.strategy = strategy;
              c.layout = static_cast<Layout>(layout);
              c.placement = static_cast<Placement>(placement);
              if (!c.prelude.empty()) worker.restart();
              if (try_obligation(o.check, op, k, c, worker).kind == Outcome::Kind::falsified) return c;
            }
      }
  return std::nullopt;
}

int run() {
  int killed = 0, minimal = 0;
  for (const Kernel& k : kernels()) {
    if (k.role != KernelRole::mutant || k.backend != Backend::cpu || k.op != "matmul" || k.scored) continue;
    const OpDescriptor& op = operation(k.op);
    CampaignOptions options;
    options.cases = 50;
    options.stop_at_first = true;
    options.limit = std::chrono::milliseconds(1000);
    options.shrink_budget = std::chrono::seconds(30);
    const KernelResult result = run_campaign(op, k, options);
    for (const ObligationResult& o : result.obligations) {
      if (!o.counterexample) continue;
      ++killed;
      const auto smaller = smaller_failure(op, find(op.name, o.info->id), k, o.counterexample->smallest);
      minimal += !smaller;
      fmt::print("{:<44} {:<16} {:>4} runs {:>5.1f} s  {}{}\n", k.id, o.info->id, o.counterexample->shrink_tried,
                 o.counterexample->shrink_seconds, describe(op, o.counterexample->smallest),
                 smaller ? "  NOT MINIMAL: " + describe(op, *smaller) : "");
    }
  }
  fmt::print("{} of {} counterexamples are minimal in dims\n", minimal, killed);
  return killed >= 25 && minimal >= kPromised * killed ? 0 : 1;
}

}  // namespace
}  // namespace assay::falsify

int main() { return assay::falsify::run(); }
