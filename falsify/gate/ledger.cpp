#include "falsify/gate/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "falsify/gate/evidence.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;
using namespace std::string_view_literals;

const json* obligation(const json& list, const json& id) {
  for (const json& o : list)
    if (o.value("id", json()) == id) return &o;
  return nullptr;
}

/// True if the refusals exceed the recorded share by more than three standard deviations; for a share of 0, any
/// refusal.
bool more_refusals(double cases, double refused, double share) {
  return refused > cases * share + 3 * std::sqrt(cases * share * (1 - share));
}

void compare_refusals(const std::string& kernel, const json& then, const json& now, std::vector<WorseFigure>& list) {
  const double cases = now.value("cases", 0), before = then.value("cases", 0);
  if (cases == 0 || before == 0) return;
  const double share = then.value("refused", 0) / before, refused = now.value("refused", 0);
  if (more_refusals(cases, refused, share))
    list.push_back({kernel, now["id"].get<std::string>(), "refused", share, refused / cases});
}

}  // namespace

std::vector<WorseFigure> grown(const std::string& kernel, const json& before, const json& now) {
  std::vector<WorseFigure> list;
  for (const json& o : now) {
    const json* then = obligation(before, o["id"]);
    if (then == nullptr) continue;
    compare_refusals(kernel, *then, o, list);
    if (o["verdict"] != "passed" || then->value("verdict", "") != "passed") continue;
    for (const char* figure : {"worst", "typical"}) {
      if (!o[figure].is_number() || !then->contains(figure) || !(*then)[figure].is_number()) continue;
      const double was = (*then)[figure].get<double>(), is = o[figure].get<double>();
      // A median needs kMinDraws cases. A median of 0 means that most cases were exact: fewer exact cases are no
      // growth, and the worst error covers a new error.
      if (figure == "typical"sv && (was == 0 || std::min(o.value("cases", 0), then->value("cases", 0)) < kMinDraws))
        continue;
      if (is > 0 && is >= kWorseFactor * was) list.push_back({kernel, o["id"].get<std::string>(), figure, was, is});
    }
  }
  return list;
}

std::string to_string(const WorseFigure& w) {
  if (w.figure == "refused")
    return fmt::format("{}  {}: {:.0f}% of the cases refused, were {:.0f}%: --agree {} agrees to it", w.kernel,
                       w.obligation, 100 * w.now, 100 * w.before, w.kernel);
  return fmt::format("{}  {}: {} error/bound {:.3g}, was {:.3g}", w.kernel, w.obligation, w.figure, w.now, w.before);
}

}  // namespace assay::falsify
