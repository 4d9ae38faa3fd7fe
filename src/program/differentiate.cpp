#include "program/differentiate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "contract/composition.hpp"
#include "core/errors.hpp"
#include "program/builder.hpp"

namespace assay::program {
namespace {

/// A gradient that is known so far.
struct Partial {
  Value value;
  bool owned = false;  ///< no other value looks at its memory, so that more may be added in place
};

Shape as_matrix(const Shape& shape) {
  const Index columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  return {columns == 0 ? 0 : shape.size() / columns, columns};
}

/// The call that computes the gradient of an operation's tensor, or "".
std::string_view gradient_of(const OpDescriptor& op, int tensor) {
  // Builder::cast() widens by it. It is linear: dx = dy, dbias[j] = sum_i dy[i,j], whose transpose is bias_add.
  if (op.name == "bias_add_backward") return "bias_add(ddx, ddbias)";
  const auto found = std::ranges::find(op.gradients, tensor, &GradientInfo::input);
  return found == op.gradients.end() ? "" : found->by;
}

class Backward {
 public:
  Backward(const Program& forward, std::span<const Value> outputs, std::vector<Value> wanted, const Kept* kept)
      : forward_(forward), builder_(forward), wanted_(std::move(wanted)) {
    if (kept != nullptr) find_computed_again(*kept);
    on_path_ = dependents(wanted_).first;
    written_.resize(forward_.values.size());
    for (const Step& step : forward_.steps)
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role != Role::in)
          written_[static_cast<std::size_t>(forward_.base_of(step.tensors[t]).id)] = true;
    for (std::size_t w = 0; w < wanted_.size(); ++w) place_of_[wanted_[w].id] = w;
    make_leaf_gradients();
    for (const Value output : outputs) {
      const ValueInfo& info = forward_[output];
      upstream_.push_back(
          builder_.input(builder_.free_name("d " + info.name), info.shape, forward_.storage_of(output).dtype));
      contribute(output, {upstream_.back(), false});
    }
  }

  Differentiated run() {
    for (std::size_t s = forward_.steps.size(); s-- > 0;) step(forward_.steps[s]);
    for (std::size_t w = 0; w < wanted_.size(); ++w)
      if (!reached_[w]) refuse(w);
    std::vector<Value> gradients;
    for (const Value w : wanted_) gradients.push_back(builder_.latest(leaf_gradient_.at(w.id)));
    Differentiated result{builder_.take(), std::move(upstream_), std::move(gradients)};
    return result;
  }

 private:
  /// Notes the step that computes each temporary that is not kept. Storages that steps change in place are kept.
  void find_computed_again(const Kept& kept) {
    for (const Step& step : forward_.steps)
      for (std::size_t t = 0; t < step.tensors.size(); ++t) {
        if (step.op->tensors[t].role != Role::out) continue;
        const Value base = forward_.base_of(step.tensors[t]);
        if (forward_.storage_of(base).kind == Kind::temporary) computed_by_.emplace(base.id, &step);
      }
    const auto keep = [&](Value v) { computed_by_.erase(forward_.base_of(v).id); };
    for (const Value v : kept) keep(v);
    for (const Value v : forward_.outputs) keep(v);
    for (std::size_t v = 0; v < forward_.values.size(); ++v)
      if (forward_.values[v].version > 1)
        std::erase_if(computed_by_, [&](const auto& computed) {
          return forward_[Value{computed.first}].storage == forward_.values[v].storage;
        });
  }

  /// The value, or the same elements computed again from those that are kept.
  Value again(Value v) {
    const Value base = forward_.base_of(v);
    const auto by = computed_by_.find(base.id);
    if (by == computed_by_.end()) return v;
    if (!computed_again_.contains(base.id)) {
      const Step& s = *by->second;
      std::vector<Value> reads;
      std::vector<NamedNumber> params;
      std::vector<NamedDim> dims;
      for (std::size_t t = 0; t < s.tensors.size(); ++t)
        if (s.op->tensors[t].role != Role::out) reads.push_back(again(s.tensors[t]));
      for (std::size_t p = 0; p < s.params.size(); ++p) params.push_back({s.op->params[p].name, s.params[p]});
      for (std::size_t d = 0; d < s.dims.size(); ++d) dims.push_back({s.op->dims[d].name, s.dims[d]});
      const Builder::Scope scope(builder_, "again." + s.label);
      const std::vector<Value> results = builder_.call(s.op->name, reads, params, dims);
      std::size_t result = 0;
      for (std::size_t t = 0; t < s.tensors.size(); ++t)
        if (s.op->tensors[t].role != Role::in)
          computed_again_.emplace(forward_.base_of(s.tensors[t]).id, results.at(result++));
    }
    const Value whole = computed_again_.at(base.id);
    return is_part(v, base) ? same_place(whole, v, base) : builder_.reshape(whole, forward_[v].shape);
  }

  bool on_path(Value v) const { return on_path_[static_cast<std::size_t>(forward_.base_of(v).id)]; }

  /// Returns of each value that is no view whether it depends on one of the leaves, and the last step that they reach,
  /// or -1.
  std::pair<std::vector<bool>, int> dependents(std::span<const Value> leaves) const {
    std::vector<bool> depends(forward_.values.size());
    int last = -1;
    const auto base = [&](Value v) { return static_cast<std::size_t>(forward_.base_of(v).id); };
    for (const Value leaf : leaves) depends[base(leaf)] = true;
    for (std::size_t s = 0; s < forward_.steps.size(); ++s) {
      const Step& step = forward_.steps[s];
      bool reached = false;
      for (std::size_t t = 0; t < step.tensors.size(); ++t) {
        const TensorInfo& info = step.op->tensors[t];
        reached = reached || (info.role != Role::out && is_floating(info.dtype) && depends[base(step.tensors[t])]);
      }
      if (!reached) continue;
      last = static_cast<int>(s);
      for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.op->tensors[t].role != Role::in && !step.op->tensors[t].saved) depends[base(step.tensors[t])] = true;
    }
    return {std::move(depends), last};
  }

  /// Throws for a value that Builder::join() made of results on a path: no step of its own has written it.
  void expect_no_join(Value base) const {
    const ValueInfo& info = forward_[base];
    if (forward_.storage_of(base).kind != Kind::temporary || written_[static_cast<std::size_t>(base.id)]) return;
    for (std::size_t i = 0; i < forward_.values.size(); ++i)
      if (const Value part{static_cast<std::int32_t>(i)};
          part != base && forward_[part].storage == info.storage && on_path(part))
        throw InputError(info.name, "it joins results of steps, and no gradient passes through a join",
                         "differentiate outputs that read the results themselves");
  }

  /// One storage for all trainable parameters, laid out like theirs; one for each wanted input.
  void make_leaf_gradients() {
    reached_.resize(wanted_.size());
    for (const Value leaf : wanted_) {
      const ValueInfo& info = forward_[leaf];
      const Storage& storage = forward_.storage_of(leaf);
      if (storage.kind == Kind::parameter) {
        Value& all = flat_gradients_[info.storage];
        if (!all) all = builder_.gradient(builder_.free_name("gradients of " + storage.name), {storage.elements});
        leaf_gradient_[leaf.id] =
            builder_.reshape(builder_.rows(all, info.offset, info.offset + info.shape.size()), info.shape);
      } else {
        leaf_gradient_[leaf.id] = builder_.gradient(builder_.free_name("gradient of " + info.name), info.shape);
      }
    }
  }

  /// Adds in place. `into` names the storage's newest version afterwards.
  void accumulate(Value& into, Value more) {
    const Shape shape = builder_.shape(into), matrix = as_matrix(shape);
    const NamedNumber alpha[] = {{"alpha", 1}};
    const Value reads[] = {builder_.reshape(into, matrix), builder_.reshape(more, matrix)};
    into = builder_.reshape(builder_.call("accumulate", reads, alpha)[0], shape);
  }

  Value copy(Value v) {
    const Shape shape = builder_.shape(v);
    const Value reads[] = {builder_.reshape(v, as_matrix(shape))};
    return builder_.reshape(builder_.call("tensor_layout", reads)[0], shape);
  }

  /// x + factor y
  Value sum(Value x, Value y, double factor = 1) {
    const Shape shape = builder_.shape(x), matrix = as_matrix(shape);
    const NamedNumber alpha[] = {{"alpha", factor}};
    const Value reads[] = {builder_.reshape(x, matrix), builder_.reshape(y, matrix)};
    return builder_.reshape(builder_.call("residual_add", reads, alpha)[0], shape);
  }

  /// zeros + factor y, as a step of the gradient of `of`.
  Value scaled(const Step& of, Value zeros, Value y, double factor) {
    const Builder::Scope scope(builder_, "backward." + of.label);
    return sum(zeros, y, factor);
  }

  /// Part of the gradient of a value arrives.
  void contribute(Value v, Partial part) {
    const Value base = forward_.base_of(v);
    expect_no_join(base);
    const DType dtype = forward_.storage_of(base).dtype;
    const bool narrow = dtype != DType::f32;
    if (const auto leaf = place_of_.find(base.id); leaf != place_of_.end()) {
      part.value = builder_.cast(part.value, DType::f32);  // gradients of leaves add up over runs, in f32 alone
      reached_[leaf->second] = true;
      Value& gradient = leaf_gradient_.at(base.id);
      if (is_part(v, base)) {
        Value place = same_place(gradient, v, base);
        accumulate(place, part.value);
        gradient = builder_.latest(gradient);
      } else {
        accumulate(gradient, builder_.reshape(part.value, builder_.shape(gradient)));
      }
      return;
    }
    part.value = builder_.cast(part.value, dtype);
    Partial& sum_so_far = partials_[base.id];
    const Shape& shape = forward_[base].shape;
    if (is_part(v, base)) {
      if (narrow)
        throw InputError(forward_[v].name,
                         fmt::format("gradients of parts of a value add up in f32, and it is {}", name(dtype)),
                         "read the whole value, or compute in f32");
      if (!sum_so_far.value) sum_so_far = {copy(builder_.zeros(shape)), true};
      else if (!sum_so_far.owned) sum_so_far = {copy(sum_so_far.value), true};
      Value place = same_place(sum_so_far.value, v, base);
      accumulate(place, part.value);
      sum_so_far.value = builder_.latest(sum_so_far.value);
      return;
    }
    part.value = builder_.reshape(part.value, shape);
    if (!sum_so_far.value) sum_so_far = part;
    else if (narrow) sum_so_far = {sum(sum_so_far.value, part.value), true};  // accumulate takes f32 alone
    else if (sum_so_far.owned) accumulate(sum_so_far.value, part.value);
    else if (part.owned) accumulate(part.value, sum_so_far.value), sum_so_far = part;
    else sum_so_far = {sum(sum_so_far.value, part.value), true};
  }

  bool is_part(Value v, Value base) const { return forward_[v].shape.size() != forward_[base].shape.size(); }

  /// The rows of `gradient`, which is dense like `base`, that `v` is of `base`.
  Value same_place(Value gradient, Value v, Value base) {
    const Index offset = forward_[v].offset - forward_[base].offset, size = forward_[v].shape.size();
    const Value flat = builder_.reshape(gradient, {builder_.shape(gradient).size()});
    return builder_.reshape(builder_.rows(flat, offset, offset + size), forward_[v].shape);
  }

  void step(const Step& s) {
    std::vector<Value> upstream(s.tensors.size());
    bool any = false;
    for (std::size_t t = 0; t < s.tensors.size(); ++t) {
      const TensorInfo& info = s.op->tensors[t];
      if (info.role == Role::in) continue;
      const auto known = partials_.find(forward_.base_of(s.tensors[t]).id);
      if (known != partials_.end())
        upstream[t] = builder_.reshape(known->second.value, forward_[s.tensors[t]].shape), any = true;
    }
    if (!any) return;
    std::map<std::string_view, std::pair<const OpDescriptor*, std::vector<Value>>> composed;  // by the call's text
    for (std::size_t t = 0; t < s.tensors.size(); ++t) {
      const TensorInfo& info = s.op->tensors[t];
      if (info.role == Role::out || !is_floating(info.dtype) || !on_path(s.tensors[t])) continue;
      const std::string_view by = gradient_of(*s.op, static_cast<int>(t));
      // an error only for leaves that no other path reaches
      if (by.empty()) {
        ends_.push_back({&s, forward_.base_of(s.tensors[t]), info.no_gradient});
        continue;
      }
      const contract::Composition composition(by);
      if (composition.op == "tensor_layout") {  // the gradient as it is: no copy is needed
        contribute(s.tensors[t], {argument(s, upstream, composition.arguments.at(0)), false});
        continue;
      }
      if (composition.op == "scale")
        if (const Value v = argument(s, upstream, composition.arguments.at(0)); builder_.dtype(v) != DType::f32) {
          const double alpha = param(s, "alpha");  // scale takes f32 alone
          const Value zeros = builder_.zeros(builder_.shape(v), builder_.dtype(v));
          contribute(s.tensors[t], alpha == 1 ? Partial{v, false} : Partial{scaled(s, zeros, v, alpha), true});
          continue;
        }
      auto found = composed.find(by);
      if (found == composed.end()) found = composed.emplace(by, compose(s, composition, t, upstream)).first;
      const auto& [op, results] = found->second;
      std::size_t position = 0;
      for (std::size_t o = 0; o < contract::gradient_output(*op, info.name); ++o)
        position += op->tensors[o].role != Role::in;
      contribute(s.tensors[t], {results.at(position), true});
    }
  }

  static double param(const Step& s, std::string_view name) {
    return s.params[static_cast<std::size_t>(std::ranges::find(s.op->params, name, &ParamInfo::name) -
                                             s.op->params.begin())];
  }

  /// The value that a composition calls by this name: a tensor of the step, or d<output>.
  Value argument(const Step& s, const std::vector<Value>& upstream, std::string_view name) {
    for (std::size_t t = 0; t < s.tensors.size(); ++t) {
      const TensorInfo& info = s.op->tensors[t];
      if (info.name == name) return again(s.tensors[t]);
      if (info.role != Role::in && fmt::format("d{}", info.name) == name)
        return upstream[t] ? upstream[t] : builder_.zeros(forward_[s.tensors[t]].shape, builder_.dtype(s.tensors[t]));
    }
    throw InputError(std::string(s.op->file),
                     fmt::format("a gradient's call names {}, which is no tensor and no d<output>", name),
                     "use the contract's own names");
  }

  std::pair<const OpDescriptor*, std::vector<Value>> compose(const Step& s, const contract::Composition& composition,
                                                             std::size_t input, const std::vector<Value>& upstream) {
    const OpDescriptor& op = operation(composition.op);
    std::vector<Value> reads;
    for (const std::string_view name : composition.arguments) reads.push_back(argument(s, upstream, name));
    std::vector<NamedNumber> params;
    for (std::size_t p = 0; p < s.op->params.size(); ++p)
      if (std::ranges::find(op.params, s.op->params[p].name, &ParamInfo::name) != op.params.end())
        params.push_back({s.op->params[p].name, s.params[p]});
    std::vector<NamedDim> dims;
    for (const auto& [d, extent] : contract::free_dims(op, *s.op, s.dims, input))
      dims.push_back({op.dims[d].name, extent});
    const Builder::Scope scope(builder_, "backward." + s.label);
    return {&op, builder_.call(composition.op, reads, params, dims)};
  }

  [[noreturn]] void refuse(std::size_t w) const {
    const ValueInfo& leaf = forward_[wanted_[w]];
    const auto [depends, last_reader] = dependents(std::span(wanted_).subspan(w, 1));
    for (auto end = ends_.rbegin(); end != ends_.rend(); ++end) {
      const auto& [step, into, reason] = *end;
      if (!depends[static_cast<std::size_t>(into.id)]) continue;
      const std::string_view why = !reason.empty()                   ? reason
                                   : !step->op->no_gradients.empty() ? step->op->no_gradients
                                                                     : "the contract names no call for it";
      throw InputError(leaf.name,
                       fmt::format("it has no gradient: its path ends at {}, which has none: {}", describe(*step), why),
                       "use an operation that has gradients, or do not want this one");
    }
    if (last_reader < 0)
      throw InputError(leaf.name, "it has no gradient: no step reads it",
                       "want gradients of values that the outputs depend on");
    throw InputError(
        leaf.name,
        fmt::format(
            "it has no gradient: its path ends at {}, and no differentiated output depends on that step's results",
            describe(forward_.steps[static_cast<std::size_t>(last_reader)])),
        "differentiate an output that depends on it");
  }

  const Program& forward_;
  Builder builder_;
  std::vector<Value> wanted_, upstream_;
  std::vector<bool> on_path_;                     ///< of each value that is no view: it depends on a wanted leaf
  std::vector<bool> written_;                     ///< of each value that is no view: a step writes it
  std::map<std::int32_t, std::size_t> place_of_;  ///< of each leaf among those that are wanted
  struct End {
    const Step* step;
    Value into;
    std::string_view reason;
  };
  std::vector<End> ends_;      ///< steps through which no gradient passes from their results to an operand, and why
  std::vector<bool> reached_;  ///< of each wanted leaf: its gradient has arrived
  std::map<std::int32_t, Value> flat_gradients_;     ///< by the parameters' storage
  std::map<std::int32_t, Value> leaf_gradient_;      ///< by leaf
  std::map<std::int32_t, Partial> partials_;         ///< by value
  std::map<std::int32_t, const Step*> computed_by_;  ///< of each temporary that is not kept
  std::map<std::int32_t, Value> computed_again_;
};

}  // namespace

Kept inputs_of_layers(const Program& program) {
  const auto layer_of = [](const Step& step) -> std::string_view {
    constexpr std::string_view kLayers = "layers.";
    const std::string_view label = step.label;
    const std::size_t at = label.find(kLayers);
    return at == label.npos ? "" : label.substr(0, label.find('.', at + kLayers.size()));
  };
  std::map<std::int32_t, std::string_view> made_in;
  Kept kept;
  for (const Step& step : program.steps) {
    const std::string_view layer = layer_of(step);
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      const Value base = program.base_of(step.tensors[t]);
      if (step.op->tensors[t].role == Role::out) made_in[base.id] = layer;
      const auto made = made_in.find(base.id);
      const bool crosses = made != made_in.end() && (made->second.empty() || made->second != layer);
      if (crosses && std::ranges::find(kept, base) == kept.end()) kept.push_back(base);
    }
  }
  return kept;
}

Differentiated differentiate(const Program& program, std::span<const Value> outputs, std::span<const Value> wanted,
                             const Kept* kept) {
  std::vector<Value> leaves(wanted.begin(), wanted.end());
  if (leaves.empty())
    for (const Parameter& p : program.parameters)
      if (p.trainable) leaves.push_back(p.value);
  if (leaves.empty())
    throw InputError("program", "nothing in it trains", "want gradients of inputs, or have parameters that train");
  if (outputs.empty())
    throw InputError("differentiate", "it was given no output", "name the outputs whose gradients are to be added up");
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const ValueInfo& info = program[outputs[o]];
    if (const DType dtype = program.storage_of(outputs[o]).dtype; !is_floating(dtype))
      throw InputError(info.name, fmt::format("it is {}, and has no gradient", name(dtype)),
                       "differentiate outputs of floating-point numbers");
    if (std::ranges::count(outputs, outputs[o]) > 1)
      throw InputError(info.name, "it is differentiated twice at once",
                       "name each output once, and add up its upstream gradients");
  }
  for (const Value v : leaves)
    if (std::ranges::count(wanted, v) > 1)
      throw InputError(program[v].name, "its gradient is wanted twice", "name each leaf once");
    else if (const DType dtype = program.storage_of(v).dtype; !is_floating(dtype))
      throw InputError(program[v].name, fmt::format("it is {}, and has no gradient", name(dtype)),
                       "want gradients of floating-point numbers");
    else if (const Kind kind = program.storage_of(v).kind;
             program.base_of(v) != v || (kind != Kind::input && kind != Kind::parameter))
      throw InputError(program[v].name, "it is no leaf", "want gradients of inputs and parameters");
  return Backward(program, outputs, std::move(leaves), kept).run();
}

Passes split(const Differentiated& differentiated, std::size_t steps, std::span<const Value> kept) {
  const Program& whole = differentiated.program;
  const auto border = whole.steps.begin() + static_cast<std::ptrdiff_t>(steps);
  Passes passes{whole, whole, {}};
  passes.forward.steps.assign(whole.steps.begin(), border), passes.backward.steps.assign(border, whole.steps.end());
  passes.backward.outputs.clear();
  std::vector<bool> made(whole.storages.size());
  for (const Step& step : passes.forward.steps)
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role != Role::in) made[static_cast<std::size_t>(whole[step.tensors[t]].storage)] = true;
  const auto save = [&](Value v) {
    const auto storage = static_cast<std::size_t>(whole[v].storage);
    Kind& kind = passes.forward.storages[storage].kind;
    if (!made[storage] || kind != Kind::temporary) return;
    kind = passes.backward.storages[storage].kind = Kind::state;
    passes.saved.push_back(whole.base_of(v));
  };
  for (const Step& step : passes.backward.steps)
    for (const Value v : step.tensors) save(v);
  for (const Value v : kept) save(v);
  return passes;
}

}  // namespace assay::program
