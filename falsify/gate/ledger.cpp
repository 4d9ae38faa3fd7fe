#include "falsify/gate/ledger.hpp"

#include <fmt/format.h>

namespace assay::falsify {
namespace {

using nlohmann::json;

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
      if (is > 0 && is >= kWorse * was) list.push_back({kernel, o["id"].get<std::string>(), figure, was, is});
    }
  }
  return list;
}

std::string to_string(const Worse& w) {
  return fmt::format("{}  {}: {} error/bound {:.3g}, was {:.3g}", w.kernel, w.obligation, w.figure, w.now, w.before);
}

}  // namespace assay::falsify
