// Checks that need more than one contract.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "contract/validate.hpp"
#include "contract/expression.hpp"
#include "contract/loader.hpp"
#include "contract/reader.hpp"

namespace assay::contract {

GradientCall gradient_call(const model::Contract& contract, const model::Gradient& gradient) {
  const std::string& text = gradient.by.value;
  const std::size_t open = text.find('(');
  GradientCall call;
  bool well_formed = open != std::string::npos && text.back() == ')';
  if (well_formed) {
    call = {text.substr(0, open), separated(text.substr(open + 1, text.size() - open - 2))};
    well_formed = usable_name(call.op) && std::ranges::all_of(call.arguments, usable_name);
  }
  if (!well_formed)
    fail_at(contract.file, gradient.by.at, fmt::format("'{}' is not a call of an operation", text),
            "write for example matmul_nt(dc, b)");
  return call;
}

void cross_check(std::span<const model::Contract> contracts) {
  std::map<std::string, std::string> ids;
  const auto unique = [&](const model::Contract& contract, const model::Text& id) {
    const auto [earlier, fresh] = ids.try_emplace(id.value, contract.file);
    if (!fresh)
      fail_at(contract.file, id.at, fmt::format("id {} is already used in {}", id.value, earlier->second),
              "give it a prefix of its own");
  };
  for (const model::Contract& contract : contracts) {
    for (const model::Clause& clause : contract.clauses) unique(contract, clause.id);
    for (const model::Obligation& obligation : contract.obligations) unique(contract, obligation.id);
    for (const model::Gradient& gradient : contract.gradients) {
      unique(contract, gradient.id);
      if (gradient.by.value.empty()) continue;
      const GradientCall call = gradient_call(contract, gradient);
      const auto called = std::ranges::find(contracts, call.op, [](const auto& c) { return c.op.value; });
      if (called == contracts.end())
        fail_at(contract.file, gradient.by.at, fmt::format("there is no operation '{}'", call.op),
                "call an operation that has a contract");
      const auto outputs = std::ranges::count(called->tensors, Role::out, &model::Tensor::role);
      if (outputs != 1 && model::tensor_index(*called, "d" + gradient.input.value) < 0)
        fail_at(contract.file, gradient.by.at,
                fmt::format("'{}' has {} outputs and none is named d{}", call.op, outputs, gradient.input.value),
                "name the output that holds this gradient after it");
      const auto inputs = std::ranges::count(called->tensors, Role::in, &model::Tensor::role);
      if (static_cast<std::size_t>(inputs) != call.arguments.size())
        fail_at(contract.file, gradient.by.at,
                fmt::format("'{}' has {} inputs but is called with {}", call.op, inputs, call.arguments.size()),
                "pass its inputs in contract order");
    }
  }
}

}  // namespace assay::contract
