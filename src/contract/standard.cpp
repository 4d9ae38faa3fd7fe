#include "contract/standard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "contract/expression.hpp"

namespace assay::contract {
namespace {

using model::Breakage;
using model::Clause;
using model::Obligation;
using model::Text;
using Change = Violation::Kind;

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns "a", "a and b" or "a, b and c".
std::string listed(const std::vector<std::string>& names, std::string_view conjunction = "and") {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), conjunction, names.back());
}

int number_of(const std::string& id) {
  return id.size() < 3 || !is_number(id.substr(id.size() - 3)) ? 0 : std::stoi(id.substr(id.size() - 3));
}

/// Yields unused numbers in ascending order.
class FreeNumbers {
 public:
  void take(const Text& id) { taken_.insert(number_of(id.value)); }
  int next() {
    while (taken_.contains(++last_)) {}
    return last_;
  }

 private:
  std::set<int> taken_;
  int last_ = 0;
};

std::string product(const std::vector<Text>& axes, std::size_t from) {
  std::vector<std::string> factors;
  for (std::size_t axis = from; axis < axes.size(); ++axis) {
    const std::string& text = axes[axis].value;
    factors.push_back(is_number(text) || usable_name(text) ? text : "(" + text + ")");
  }
  return fmt::format("{}", fmt::join(factors, " * "));
}

std::vector<std::string> values(const std::vector<Text>& axes) {
  std::vector<std::string> result;
  for (const Text& axis : axes) result.push_back(axis.value);
  return result;
}

std::string one_more(const std::string& expression) {
  constexpr std::string_view kLess = " - 1";
  if (is_number(expression)) return std::to_string(std::stoll(expression) + 1);
  return expression.ends_with(kLess) ? expression.substr(0, expression.size() - kLess.size()) : expression + " + 1";
}

/// The standard preconditions, each a list of conjuncts with a call that violates it.
class Preconditions {
 public:
  explicit Preconditions(model::Contract& contract) : contract_(contract) {
    for (const Clause& clause : contract.clauses) {
      if (clause.kind != ClauseKind::requires_clause) continue;
      numbers_.take(clause.id);
      for (const std::string& condition : conjuncts(clause.expr.value)) stated_.insert(without_spaces(condition));
    }
  }

  void add() {
    dims();
    multiples();
    shapes();
    layouts();
    overlaps();
    addresses();
    ranges();
  }

 private:
  struct Part {
    std::string condition;
    std::vector<Breakage> broken;
    std::string says;
  };

  static constexpr std::size_t kParts = 4;  ///< dims or shapes in a clause, so that a violation shows few values

  bool is_stated(const std::string& condition) const { return stated_.contains(without_spaces(condition)); }
  Text text(std::string value) const { return {std::move(value), contract_.op.at}; }
  Breakage broken(Change kind, const std::string& target, std::vector<std::string> change) const {
    Breakage breakage{kind, text(target), {}, {}, 0};
    for (std::string& value : change) breakage.value.push_back(text(std::move(value)));
    return breakage;
  }

  /// Adds one clause with all parts that the contract does not state itself; no clause if the contract states all.
  void clause(std::vector<Part> parts, std::string says = {}, std::vector<Text> reads = {}) {
    std::erase_if(parts, [&](const Part& part) { return is_stated(part.condition); });
    if (parts.empty()) return;
    Clause& clause = contract_.clauses.emplace_back();
    clause.id = text(fmt::format("{}-PRE-{:03}", contract_.code.value, numbers_.next()));
    std::vector<std::string> conditions;
    for (Part& part : parts) {
      conditions.push_back(part.condition);
      std::ranges::move(part.broken, std::back_inserter(clause.violate));
    }
    clause.expr = text(fmt::format("{}", fmt::join(conditions, " && ")));
    clause.says = says.empty() ? clause.expr.value : std::move(says);
    clause.reads = std::move(reads);
  }

  /// Splits parts into balanced groups of at most kParts.
  template <class Add>
  static void in_groups(const std::vector<Part>& parts, const Add& add) {
    const std::size_t groups = (parts.size() + kParts - 1) / kParts;
    for (std::size_t g = 0; g < groups; ++g)
      add(std::vector<Part>(parts.begin() + static_cast<std::ptrdiff_t>(parts.size() * g / groups),
                            parts.begin() + static_cast<std::ptrdiff_t>(parts.size() * (g + 1) / groups)));
  }

  void dims() {
    std::vector<Part> parts;
    for (const model::Dim& dim : contract_.dims) {
      const std::string& name = dim.name.value;
      if (is_stated(name + "_min <= " + name) && is_stated(name + " <= " + name + "_max")) continue;
      parts.push_back({fmt::format("{0}_min <= {0} && {0} <= {0}_max", name),
                       {broken(Change::dim, name, {name + "_min - 1"}), broken(Change::dim, name, {name + "_max + 1"})},
                       {}});
    }
    in_groups(parts, [&](std::vector<Part> group) { clause(std::move(group)); });
  }

  void multiples() {
    for (const model::Dim& dim : contract_.dims) {
      const std::string& name = dim.name.value;
      const std::string& of = dim.multiple.value;
      if (!of.empty())
        clause({{fmt::format("{} % {} == 0", name, of), {broken(Change::dim, name, {one_more(of)})}, {}}},
               of == "2" ? name + " is even" : fmt::format("{} is a multiple of {}", name, of));
    }
  }

  void shapes() {
    std::vector<Part> parts;
    for (const model::Tensor& tensor : contract_.tensors) {
      std::vector<std::string> axes = values(tensor.shape), other = axes;
      other.back() = one_more(other.back());
      const std::string shape = fmt::format("{}", fmt::join(axes, ", "));
      parts.push_back({fmt::format("{}.shape() == Shape{{{}}}", tensor.name.value, shape),
                       {broken(Change::shape, tensor.name.value, other)},
                       "[" + shape + "]"});
    }
    std::erase_if(parts, [&](const Part& part) { return is_stated(part.condition); });
    in_groups(parts, [&](std::vector<Part> group) {
      std::vector<std::string> said;
      for (std::size_t i = 0; i < group.size(); ++i) {
        std::vector<std::string> names;
        for (const Part& part : group)
          if (part.says == group[i].says) names.push_back(part.broken.front().target.value);
        if (names.front() == group[i].broken.front().target.value)
          said.push_back(fmt::format("{} {} {}", listed(names), names.size() > 1 ? "are" : "is", group[i].says));
      }
      clause(std::move(group), fmt::format("{}", fmt::join(said, ", ")));
    });
  }

  void layouts() {
    std::vector<Part> parts;
    std::vector<std::string> strided;
    std::size_t most_axes = 0;  // among tensors that are not strided
    for (const model::Tensor& tensor : contract_.tensors) {
      const std::string& name = tensor.name.value;
      const std::vector<Text>& shape = tensor.shape;
      if (std::ranges::all_of(shape, [](const Text& axis) { return axis.value == "1"; }) ||
          is_stated(name + ".stride(0) == 1"))
        continue;
      if (tensor.strided) strided.push_back(name);
      else most_axes = std::max(most_axes, shape.size());
      parts.push_back({fmt::format("{}({})", tensor.strided ? "distinct" : "row_major", name),
                       {broken(Change::strides, name, too_small(tensor))},
                       {}});
    }
    std::vector<std::string> says;
    if (most_axes == 1) says.emplace_back("elements follow each other");
    if (most_axes > 1)
      says.push_back(fmt::format(
          "rows are dense and do not overlap: inner stride 1, {}",
          most_axes == 2 ? "leading dimension at least the width" : "outer strides at least what they hold"));
    if (!strided.empty())
      says.push_back(fmt::format("no two indices of {} reach the same element", fmt::join(strided, " or of ")));
    clause(std::move(parts), fmt::format("{}", fmt::join(says, "; ")));
  }

  /// Returns strides with overlapping rows. For a vector or at most one row, returns an inner stride that is too large,
  /// or 0 if any stride is allowed.
  std::vector<std::string> too_small(const model::Tensor& tensor) const {
    const std::vector<Text>& shape = tensor.shape;
    const std::size_t inner = shape.size() - 1;
    const int rows = inner == 0 ? -1 : model::dim_index(contract_, shape[inner - 1].value);
    const bool one_row = inner == 0 || (rows >= 0 && contract_.dims[static_cast<std::size_t>(rows)].max < 2);
    std::vector<std::string> strides;
    for (std::size_t axis = 0; axis < inner; ++axis) strides.push_back(product(shape, axis + 1));
    if (!one_row) strides.back() = shape[inner].value + " - 1";
    strides.emplace_back(!one_row ? "1" : tensor.strided ? "0" : "2");
    return strides;
  }

  void overlaps() {
    std::vector<Part> parts;
    std::vector<std::string> outputs, others;
    for (const model::Tensor& output : contract_.tensors) {
      if (output.role == Role::in) {
        others.push_back(output.name.value);
        continue;
      }
      for (const model::Tensor& other : contract_.tensors) {
        const bool earlier = std::ranges::find(outputs, other.name.value) != outputs.end();
        if (other.role != Role::in && !earlier) continue;
        Breakage alias{Change::alias, text(output.name.value), text(other.name.value), {}, 0};
        parts.push_back({fmt::format("!overlap({}, {})", output.name.value, other.name.value), {std::move(alias)}, {}});
      }
      outputs.push_back(output.name.value);
    }
    const bool several = outputs.size() > 1;
    if (several) others.emplace_back("each other");
    clause(std::move(parts),
           fmt::format("{} {} no memory with {}", listed(outputs), several ? "share" : "shares", listed(others, "or")));
  }

  void addresses() {
    std::vector<Part> parts;
    for (const model::Tensor& tensor : contract_.tensors)
      parts.push_back(
          {fmt::format("has_address({})", tensor.name.value), {broken(Change::null, tensor.name.value, {})}, {}});
    clause(std::move(parts), "a tensor of at least one element has memory");
  }

  void ranges() {
    constexpr std::string_view kNegative = "0 - ";
    for (const model::Tensor& tensor : contract_.tensors) {
      if (tensor.most.value.empty()) continue;
      const std::string &name = tensor.name.value, &least = tensor.least.value, above = one_more(tensor.most.value);
      clause(
          {{fmt::format("in_range({}, {}, {})", name, least, above),
            {broken(Change::value, name, {above}), broken(Change::value, name, {least + " - 1"})},
            {}}},
          fmt::format("{} are between {} and {}", name,
                      least.starts_with(kNegative) ? "-" + least.substr(kNegative.size()) : least, tensor.most.value),
          {tensor.name});
    }
  }

  model::Contract& contract_;
  FreeNumbers numbers_;
  std::set<std::string> stated_;
};

/// Returns a built-in obligation with the text that the contract does not give.
Obligation built_in(const model::Contract& contract, std::string_view by) {
  std::vector<std::string> outputs;
  for (const model::Tensor& tensor : contract.tensors)
    if (tensor.role != Role::in) outputs.push_back(tensor.name.value);
  const bool bitwise = contract.nonfinite.value == "bitwise";
  const Obligation known[] = {
      {{},
       fmt::format("every element of {} is written, nothing else is", listed(outputs)),
       {},
       {"frame", {}},
       "an edge or all rows but the first left unwritten, or a store out of bounds"},
      {{},
       contract.copies ? "every element has the bits of the reference"
                       : "every element is within its worst-case bound of the oracle",
       {},
       {"differential", {}},
       "an index, a leading dimension, or a term of the formula"},
      {{},
       "on inputs where every order of evaluation is exact, the bits are right",
       {},
       {"exact", {}},
       "inputs or accumulator hold fewer bits than declared, or an index is off"},
      {{},
       "every element is within the statistical bound for round-to-nearest accumulation",
       {},
       {"statistical", {}},
       "computes in less precision than declared"},
      {{},
       bitwise ? "NaN, Inf and signed zeros keep their bits" : "NaN and Inf reach exactly the elements they must",
       {},
       {"nonfinite", {}},
       bitwise ? "values pass through arithmetic on the way" : "a comparison or a skipped term swallows NaN"},
      {{}, "the same call twice gives the same bits", {}, {"determinism", {}}, "a race, or state kept between calls"},
      {{},
       "on return the contract holds: its ensures clauses and certificates",
       {},
       {"postconditions", {}},
       "see the clause"}};
  return *std::ranges::find(known, by, [](const Obligation& o) { return std::string_view(o.by.value); });
}

void add_obligations(model::Contract& contract) {
  std::vector<Obligation>& all = contract.obligations;
  const auto need = [&](const char* by) {
    if (std::ranges::none_of(all, [&](const Obligation& o) { return o.by.value == by; }))
      all.push_back({{}, {}, {}, {by, contract.op.at}, {}});
  };
  const auto ensured = [](const Clause& clause) { return clause.kind != ClauseKind::requires_clause; };
  need("frame"), need("differential"), need("nonfinite");
  if (contract.determinism.value == "bitwise") need("determinism");
  if (std::ranges::any_of(contract.clauses, ensured)) need("postconditions");
  FreeNumbers numbers;
  for (const Obligation& obligation : all) numbers.take(obligation.id);
  for (std::string_view by : model::kBuiltinChecks)
    for (Obligation& obligation : all) {
      if (obligation.by.value != by) continue;
      Obligation standard = built_in(contract, by);
      if (obligation.id.value.empty())
        obligation.id = {fmt::format("FALSIFY-{}-{:03}", contract.code.value, numbers.next()), obligation.by.at};
      if (obligation.claim.empty()) obligation.claim = std::move(standard.claim);
      if (obligation.if_fails.empty()) obligation.if_fails = std::move(standard.if_fails);
    }
  std::ranges::stable_sort(all, {}, [](const Obligation& o) { return number_of(o.id.value); });
}

}  // namespace

void add_standard(model::Contract& contract) {
  Preconditions(contract).add();
  const auto names_tensor = [&](const Clause& clause) {
    return std::ranges::any_of(
        contract.tensors, [&](const model::Tensor& tensor) { return mentions(clause.expr.value, tensor.name.value); });
  };
  const auto ensures = std::ranges::stable_partition(
      contract.clauses, [](const Clause& c) { return c.kind == ClauseKind::requires_clause; });
  std::ranges::stable_sort(contract.clauses.begin(), ensures.begin(), {},
                           [&](const Clause& c) { return std::pair(names_tensor(c), number_of(c.id.value)); });
  add_obligations(contract);
}

}  // namespace assay::contract
