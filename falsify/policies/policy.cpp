#include "falsify/policies/policy.hpp"

#include <algorithm>
#include <memory>

#include "core/errors.hpp"

namespace assay::falsify::policies {
namespace {

/// All policies, in the order of the table.
std::vector<const Policy*>& table() {
  static std::vector<const Policy*> all;
  return all;
}

}  // namespace

PolicyRegistration::PolicyRegistration(Policy policy) {
  static std::vector<std::unique_ptr<Policy>> owned;
  owned.push_back(std::make_unique<Policy>(std::move(policy)));
  table().push_back(owned.back().get());
  std::ranges::sort(table(), {}, &Policy::order);
}

std::span<const Policy* const> policies() { return table(); }

const Policy& policy(std::string_view name) {
  std::string known;
  for (const Policy* p : policies()) {
    if (p->name == name) return *p;
    known += (known.empty() ? "" : ", ") + std::string(p->name);
  }
  throw InputError("policy", "there is none called '" + std::string(name) + "'", "use one of " + known);
}

std::vector<const Rule*> Policy::rules_for(std::string_view op) const {
  std::vector<const Rule*> found;
  if (!rules) return found;
  for (const Rule& rule : rules())
    if (rule.op == op) found.push_back(&rule);
  return found;
}

}  // namespace assay::falsify::policies
