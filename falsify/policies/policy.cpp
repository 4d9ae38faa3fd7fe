#include "falsify/policies/policy.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace assay::falsify::policies {
namespace {

/// Owned, so that pointers to them stay; in the order of the table.
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

const Rule* Policy::rule(std::string_view op) const {
  if (!rules) return nullptr;
  for (const Rule& rule : rules())
    if (rule.op == op) return &rule;
  return nullptr;
}

}  // namespace assay::falsify::policies
