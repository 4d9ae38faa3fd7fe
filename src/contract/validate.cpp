#include "contract/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "contract/expression.hpp"
#include "contract/reader.hpp"

namespace assay::contract {
namespace {

using model::Text;

bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// Returns whether the text is words of capitals and digits, joined by '-': "MM-NT".
bool is_code(std::string_view text) {
  bool word_begins = true;
  for (char c : text) {
    if (word_begins ? !upper(c) : !upper(c) && !digit(c) && c != '-') return false;
    word_begins = c == '-';
  }
  return !word_begins;
}

/// Returns whether the id is `beginning` and three digits: "MM-PRE-001".
bool numbered(std::string_view id, const std::string& beginning) {
  return id.size() == beginning.size() + 3 && id.starts_with(beginning) &&
         std::ranges::all_of(id.substr(beginning.size()), digit);
}

class Checker {
 public:
  explicit Checker(const model::Contract& contract) : contract_(contract) {}

  void run() const {
    names();
    shapes();
    check_shapes(contract_);
    if (!contract_.terms.value.empty()) over_dims(contract_.terms, false);
    independent();
    ids();
    for (const model::Clause& clause : contract_.clauses) this->clause(clause);
    obligations();
    for (const model::Pin& pin : contract_.pins) this->pin(pin);
    for (const model::Gradient& gradient : contract_.gradients) this->gradient(gradient);
    every_gradient();
  }

 private:
  [[noreturn]] void fail(const Text& at, const std::string& problem, const std::string& remedy) const {
    fail_at(contract_.file, at.at, problem, remedy);
  }

  void names() const {
    std::vector<const Text*> all{&contract_.op};
    for (const model::Dim& dim : contract_.dims) all.push_back(&dim.name);
    for (const model::Param& param : contract_.params) all.push_back(&param.name);
    for (const model::Tensor& tensor : contract_.tensors) all.push_back(&tensor.name);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& name = all[i]->value;
      if (!usable_name(name) || name.ends_with("_min") || name.ends_with("_max"))
        fail(*all[i], fmt::format("'{}' cannot be a name here", name),
             "use lower-case letters, digits and single underscores, no C++ keyword, no ending in _min or _max");
      for (std::size_t earlier = 1; earlier < i; ++earlier)
        if (all[earlier]->value == name)
          fail(*all[i], fmt::format("'{}' already names something on line {}", name, all[earlier]->at.line),
               "give each dim, parameter and tensor a name of its own");
    }
  }

  /// Checks that the multiple is a number or an earlier dim.
  void multiple(std::size_t dim) const {
    const Text& text = contract_.dims[dim].multiple;
    if (text.value.empty()) return;
    const bool number = std::ranges::all_of(text.value, digit) && text.value.size() < 7 && text.value.front() != '0';
    const int named = model::dim_index(contract_, text.value);
    if (!number && (named < 0 || static_cast<std::size_t>(named) >= dim))
      fail(text, fmt::format("'{}' is neither a positive number nor an earlier dim", text.value),
           "write 'multiple: 256' or the name of a dim above this one");
  }

  void over_dims(const Text& expression, bool limits) const {
    if (const auto fault = malformed(expression.value))
      fail(expression, fmt::format("'{}' is not an expression: {}", expression.value, *fault), "correct it");
    std::vector<std::string_view> known;
    for (const model::Dim& dim : contract_.dims) known.push_back(dim.name.value);
    for (const std::string& name : identifiers(expression.value)) {
      const bool limit = limits && (name.ends_with("_min") || name.ends_with("_max"));
      if (model::dim_index(contract_, limit ? name.substr(0, name.size() - 4) : name) < 0)
        fail(expression, fmt::format("'{}' is not a dim of this contract", name), suggestion(name, known));
    }
  }

  void shapes() const {
    std::vector<std::string> used;
    for (std::size_t d = 0; d < contract_.dims.size(); ++d) multiple(d);
    for (const model::Tensor& tensor : contract_.tensors)
      for (const Text* limit : {&tensor.least, &tensor.most})
        if (!limit->value.empty() && !std::ranges::all_of(limit->value, digit)) over_dims(*limit, false);
    for (const model::Tensor& tensor : contract_.tensors)
      for (const Text& axis : tensor.shape) {
        over_dims(axis, false);
        std::ranges::copy(identifiers(axis.value), std::back_inserter(used));
      }
    for (const model::Dim& dim : contract_.dims)
      if (std::ranges::find(used, dim.name.value) == used.end())
        fail(dim.name, fmt::format("no tensor has the dim '{}' in its shape", dim.name.value), "use it or remove it");
    if (std::ranges::all_of(contract_.tensors, [](const auto& tensor) { return tensor.role == Role::in; }))
      fail(contract_.tensors.front().name, "the operation has no output", "give one tensor the role out");
  }

  /// Checks that axes of an independent dim are its bare name, because only such axes identify its positions.
  void independent() const {
    for (const model::Dim& dim : contract_.dims) {
      if (dim.counts.value == "batch" && !dim.independent)
        fail(dim.counts,
             fmt::format("'{}' counts a batch, whose problems stand alone, and is not independent", dim.name.value),
             "add 'independent: true'");
      if (dim.counts.value == "heads" && model::dim_index(contract_, dim.multiple.value) < 0)
        fail(dim.counts, fmt::format("'{}' counts heads and is a multiple of no dim", dim.name.value),
             "add 'multiple:' with the dim of their groups");
      if (!dim.independent) continue;
      const auto uses = [&](const Text& axis) {
        const std::vector<std::string> names = identifiers(axis.value);
        return std::ranges::find(names, dim.name.value) != names.end();
      };
      for (const model::Tensor& tensor : contract_.tensors)
        for (const Text& axis : tensor.shape)
          if (axis.value != dim.name.value && uses(axis))
            fail(axis, fmt::format("'{}' is independent but part of the axis '{}'", dim.name.value, axis.value),
                 "remove 'independent: true'");
    }
  }

  void id(const Text& text, const std::string& beginning, std::map<std::string, int>& seen) const {
    if (!numbered(text.value, beginning))
      fail(text, fmt::format("'{}' is not an id of this kind", text.value),
           fmt::format("write it like {}001", beginning));
    const auto [earlier, fresh] = seen.try_emplace(text.value, text.at.line);
    if (!fresh)
      fail(text, fmt::format("id {} is already used on line {}", text.value, earlier->second),
           "give it another number");
  }

  void ids() const {
    std::map<std::string, int> seen;
    for (const model::Clause& clause : contract_.clauses)
      id(clause.id, contract_.code.value + (clause.kind == ClauseKind::requires_clause ? "-PRE-" : "-POST-"), seen);
    for (const model::Gradient& gradient : contract_.gradients) id(gradient.id, contract_.code.value + "-GRAD-", seen);
    for (const model::Obligation& obligation : contract_.obligations)
      id(obligation.id, "FALSIFY-" + contract_.code.value + "-", seen);
  }

  void tensor(const Text& name) const {
    std::vector<std::string_view> known;
    for (const model::Tensor& tensor : contract_.tensors) known.push_back(tensor.name.value);
    if (model::tensor_index(contract_, name.value) < 0)
      fail(name, fmt::format("'{}' is not a tensor of this contract", name.value), suggestion(name.value, known));
  }

  void breakage(const model::Breakage& breakage) const {
    const Text& target = breakage.target;
    if (breakage.kind == Violation::Kind::dim) {
      over_dims({target.value, target.at}, false);
    } else if (breakage.kind == Violation::Kind::param) {
      if (model::param_index(contract_, target.value) < 0)
        fail(target, fmt::format("'{}' is not a parameter of this contract", target.value), "name one of params");
    } else {
      tensor(target);
    }
    if (breakage.kind == Violation::Kind::alias) tensor(breakage.other);
    for (const Text& value : breakage.value) over_dims(value, true);
    if (breakage.kind != Violation::Kind::strides) return;
    const auto& shape = contract_.tensors[static_cast<std::size_t>(model::tensor_index(contract_, target.value))].shape;
    if (shape.size() != breakage.value.size())
      fail(target,
           fmt::format("'{}' has {} axes but {} strides are given", target.value, shape.size(), breakage.value.size()),
           "give one stride per axis");
  }

  /// Checks that the wording of a clause names the same things as its expression: both appear with the expression's
  /// values.
  void wording(const model::Clause& clause) const {
    const std::vector<std::string> said = conjuncts(clause.says), evaluated = conjuncts(clause.expr.value);
    for (std::size_t i = 0; said.size() == evaluated.size() && i < said.size(); ++i) {
      if (!comparison(said[i]) || !comparison(evaluated[i])) continue;
      std::vector<std::string> words = identifiers(said[i]), names = identifiers(evaluated[i]);
      std::ranges::sort(words);
      std::ranges::sort(names);
      if (words != names)
        fail(clause.id, fmt::format("clause {} says '{}' but checks '{}'", clause.id.value, said[i], evaluated[i]),
             "use the same names in both");
    }
  }

  void clause(const model::Clause& clause) const {
    if (const auto fault = malformed(clause.expr.value))
      fail(clause.expr, fmt::format("clause {} is not an expression: {}", clause.id.value, *fault), "correct it");
    wording(clause);
    for (const Text& name : clause.reads) tensor(name);
    for (const model::Breakage& breakage : clause.violate) this->breakage(breakage);
    if (clause.kind != ClauseKind::requires_clause) return ensures(clause);
    const std::size_t conditions = conjuncts(clause.expr.value).size();
    if (clause.violate.size() < conditions)
      fail(clause.id,
           fmt::format("clause {} joins {} conditions by && and has {} violation(s)", clause.id.value, conditions,
                       clause.violate.size()),
           "list one violation for each condition under 'violate', or split the clause");
  }

  /// Checks that a postcondition reads elements that the kernel wrote. Shapes and strides are the caller's, checked
  /// before.
  void ensures(const model::Clause& clause) const {
    const auto outputs = [&](const auto& reads) {
      return std::ranges::any_of(contract_.tensors,
                                 [&](const model::Tensor& t) { return t.role != Role::in && reads(t.name.value); });
    };
    if (clause.kind == ClauseKind::certificate) {
      if (!outputs([&](const std::string& name) { return mentions(clause.expr.value, name); }))
        fail(clause.expr, fmt::format("certificate {} names no output, so no kernel can break it", clause.id.value),
             "give it an output, or remove it");
      return;
    }
    for (const std::string& condition : conjuncts(clause.expr.value)) {
      for (const model::Clause& other : contract_.clauses)
        if (other.kind == ClauseKind::requires_clause && std::ranges::count(conjuncts(other.expr.value), condition) > 0)
          fail(clause.expr,
               fmt::format("'{}' is already required by {}, so no kernel can break it", condition, other.id.value),
               "remove it");
      if (!outputs([&](const std::string& name) { return reads_element(condition, name); }))
        fail(clause.expr, fmt::format("'{}' reads no element of an output, so no kernel can break it", condition),
             "state it of elements, as in 'y(0) >= 0', name a certificate, or remove it");
    }
  }

  void obligations() const {
    if (!contract_.inputs.value.empty() && !usable_name(contract_.inputs.value))
      fail(contract_.inputs, fmt::format("'{}' cannot name a function", contract_.inputs.value),
           "use lower-case letters, digits and single underscores, no C++ keyword");
    for (const model::Obligation& obligation : contract_.obligations)
      if (!usable_name(obligation.by.value))
        fail(obligation.by, fmt::format("'{}' cannot name a check", obligation.by.value),
             "use lower-case letters, digits and single underscores, no C++ keyword");
    const auto promise =
        std::ranges::find_if(contract_.clauses, [](const auto& c) { return c.kind != ClauseKind::requires_clause; });
    const auto promised = std::ranges::find(contract_.obligations, std::string("postconditions"),
                                            [](const auto& o) { return o.by.value; });
    if (promise == contract_.clauses.end() && promised != contract_.obligations.end())
      fail(promised->by, "the contract ensures nothing, so 'postconditions' cannot fail",
           "add a certificate under 'ensures', or remove the obligation");
  }

  void pin(const model::Pin& pin) const {
    std::vector<std::string_view> known;
    for (const model::Obligation& obligation : contract_.obligations) known.push_back(obligation.id.value);
    if (std::ranges::find(known, pin.tested_by.value) == known.end())
      fail(pin.tested_by,
           fmt::format("pin '{}' is tested by '{}', which is no obligation of this contract", pin.name.value,
                       pin.tested_by.value),
           suggestion(pin.tested_by.value, known));
  }

  void gradient(const model::Gradient& gradient) const {
    const int input = model::tensor_index(contract_, gradient.input.value);
    if (input < 0 || contract_.tensors[static_cast<std::size_t>(input)].role == Role::out)
      fail(gradient.input, fmt::format("'{}' is not an input of this contract", gradient.input.value),
           "name the tensor that is differentiated by");
    if (!differentiable(contract_.tensors[static_cast<std::size_t>(input)]))
      fail(gradient.input,
           fmt::format("'{}' holds no real numbers, or says why it has no gradient", gradient.input.value),
           "remove one of the two");
    if (gradient.by.value.empty()) return;
    for (const std::string& argument : gradient_call(contract_, gradient).arguments) {
      const int named = model::tensor_index(contract_, argument);
      if (named >= 0) continue;
      const int output = argument.starts_with("d") ? model::tensor_index(contract_, argument.substr(1)) : -1;
      if (output < 0 || tensor_at(output).role == Role::in || tensor_at(output).saved)
        fail(gradient.by, fmt::format("'{}' is neither an input, an output, nor d and the name of an output", argument),
             "write for example matmul_nt(dc, b)");
    }
  }

  const model::Tensor& tensor_at(int index) const { return contract_.tensors[static_cast<std::size_t>(index)]; }

  static bool differentiable(const model::Tensor& tensor) {
    return tensor.role != Role::out && is_floating(tensor.dtype) && tensor.no_gradient.empty();
  }

  /// Checks that each input of real numbers has a gradient, or that the contract says why not.
  void every_gradient() const {
    if (!contract_.no_gradients.value.empty()) {
      if (!contract_.gradients.empty())
        fail(contract_.no_gradients, "the contract has both gradients and no_gradients", "remove one of the two");
      return;
    }
    for (const model::Tensor& tensor : contract_.tensors) {
      if (!differentiable(tensor)) continue;
      if (tensor.role == Role::inout)
        fail(tensor.name,
             fmt::format("'{}' is overwritten: an operation with inout tensors has no gradients", tensor.name.value),
             "say why under 'no_gradients'");
      const auto has = [&](const model::Gradient& g) { return g.input.value == tensor.name.value; };
      if (std::ranges::none_of(contract_.gradients, has))
        fail(
            tensor.name, fmt::format("nothing says what the gradient of '{}' is", tensor.name.value),
            "add it under 'gradients', or say why there is none ('no_gradient' of the tensor, 'no_gradients' of the contract)");
    }
  }

  const model::Contract& contract_;
};

}  // namespace

void check_code(const model::Contract& contract) {
  if (!is_code(contract.code.value))
    fail_at(contract.file, contract.code.at, fmt::format("'{}' is not a code for ids", contract.code.value),
            "write capitals, such as MM or MM-NT");
}

void check(const model::Contract& contract) { Checker(contract).run(); }

}  // namespace assay::contract
