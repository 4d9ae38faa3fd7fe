#include "falsify/gate/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

std::vector<Worse> grown(const std::string& kernel, const json& before, const json& now) {
  std::vector<Worse> list;
  for (const json& o : now) {
    const json* then = obligation(before, o["id"]);
    if (then == nullptr || o["verdict"] != "passed" || then->value("verdict", "") != "passed") continue;
    for (const char* figure : {"worst", "typical"}) {
      if (!o[figure].is_number() || !then->contains(figure) || !(*then)[figure].is_number()) continue;
      const double was = (*then)[figure].get<double>(), is = o[figure].get<double>();
      // A median needs the cases that evidence must have. One of 0 says that most cases were exact: that fewer are now
      // is no growth, and of an error where there was none the worst speaks.
      if (figure == "typical"sv && (was == 0 || std::min(o.value("cases", 0), then->value("cases", 0)) < kLeastDraws))
        continue;
      if (is > 0 && is >= kWorse * was) list.push_back({kernel, o["id"].get<std::string>(), figure, was, is});
    }
  }
  return list;
}

std::string to_string(const Worse& w) {
  return fmt::format("{}  {}: {} error/bound {:.3g}, was {:.3g}", w.kernel, w.obligation, w.figure, w.now, w.before);
}

}  // namespace assay::falsify
