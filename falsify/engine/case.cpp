#include "falsify/engine/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

constexpr std::string_view kStrategyNames[] = {
    "one_hot",  "distinct_index", "exact_integers", "gaussian",     "same_sign", "cancellation", "graded",
    "dominant", "subnormal",      "huge",           "signed_zeros", "directed",  "nonfinite",    "runs"};
static_assert(std::size(kStrategyNames) == kStrategies);
constexpr std::string_view kLayoutNames[] = {"tight", "padded", "offset", "mixed", "pitched", "own", "far_rows"};
static_assert(std::size(kLayoutNames) == kLayouts);
constexpr std::string_view kPlacementNames[] = {"sentinels", "page_end", "page_start"};
static_assert(std::size(kPlacementNames) == kPlacements);

/// Returns the divisor that the contract requires of a dim, given the dims before it.
Index step_of(const OpDescriptor& op, std::size_t dim, const std::vector<Index>& dims) {
  const DimInfo& info = op.dims[dim];
  return info.multiple_of < 0 ? info.multiple : std::max<Index>(1, dims[static_cast<std::size_t>(info.multiple_of)]);
}

template <class E>
E parse_name(std::span<const std::string_view> names, const nlohmann::json& json, const std::string& where) {
  if (json.is_string())
    for (std::size_t i = 0; i < names.size(); ++i)
      if (json.get<std::string>() == names[i]) return static_cast<E>(i);
  throw InputError(where, "has " + json.dump() + ", which names nothing known",
                   fmt::format("use one of {}", fmt::join(names, ", ")));
}

std::string float_text(float x) {
  if (std::isnan(x)) return fmt::format("nan:{:#010x}", std::bit_cast<std::uint32_t>(x));
  return fmt::format("{:a}", x);
}

float float_from(const nlohmann::json& json, const std::string& where) {
  if (json.is_number()) return json.get<float>();
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    char* end = nullptr;
    if (text.starts_with("nan:")) {
      const unsigned long bits = std::strtoul(text.c_str() + 4, &end, 16);
      if (*end == '\0' && end != text.c_str() + 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    } else if (!text.empty()) {
      const float value = std::strtof(text.c_str(), &end);
      if (*end == '\0') return value;
    }
  }
  throw InputError(where, json.dump() + " is not a float", "use a number, a hexadecimal float or nan:0x7fc00001");
}

const nlohmann::json& member(const nlohmann::json& json, const char* key, const std::string& where) {
  if (!json.is_object() || !json.contains(key))
    throw InputError(where, fmt::format("the key '{}' is missing", key), "replay files are written by `assay falsify`");
  return json.at(key);
}

std::uint64_t seed_from(const nlohmann::json& json, const std::string& where) {
  const std::string digits = json.is_string() ? json.get<std::string>() : json.dump();
  if (digits.empty() || digits.size() > 20 || digits.find_first_not_of("0123456789") != std::string::npos)
    throw InputError(where, json.dump() + " is not a seed", "use a non-negative integer of 64 bits");
  return std::strtoull(digits.c_str(), nullptr, 10);
}

std::vector<Index> dims_from(const OpDescriptor& op, const nlohmann::json& json, const std::string& where) {
  std::vector<Index> dims;
  for (const DimInfo& dim : op.dims) {
    const nlohmann::json& value = member(json, std::string(dim.name).c_str(), where);
    const Index step = step_of(op, dims.size(), dims);
    if (!value.is_number_integer() || value.get<Index>() < dim.min || value.get<Index>() > dim.max ||
        value.get<Index>() % std::max<Index>(step, 1) != 0)
      throw InputError(where + "." + std::string(dim.name), value.dump() + " is not an extent of this operation",
                       fmt::format("use {} from {} to {}",
                                   step > 1 ? fmt::format("a multiple of {}", step) : "an integer", dim.min, dim.max));
    dims.push_back(value.get<Index>());
  }
  return dims;
}

nlohmann::json dims_json(const OpDescriptor& op, const std::vector<Index>& dims) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t d = 0; d < dims.size(); ++d) json[std::string(op.dims[d].name)] = dims[d];
  return json;
}

std::vector<std::vector<float>> values_from(const OpDescriptor& op, const Case& c, const nlohmann::json& json,
                                            const std::string& where) {
  std::vector<std::vector<float>> values(op.tensors.size());
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.tensors[t].role == Role::out) continue;
    const std::string here = where + "." + std::string(op.tensors[t].name);
    const nlohmann::json& list = member(json, std::string(op.tensors[t].name).c_str(), where);
    const auto expected = static_cast<std::size_t>(op.tensors[t].shape(c.dims).size());
    if (!list.is_array() || list.size() != expected)
      throw InputError(here,
                       fmt::format("holds {} values where the shape {} needs {}", list.size(),
                                   to_string(op.tensors[t].shape(c.dims)), expected),
                       "give every element, row by row");
    for (const nlohmann::json& x : list) values[t].push_back(float_from(x, here));
  }
  return values;
}

}  // namespace

std::string_view name(Strategy strategy) { return kStrategyNames[static_cast<int>(strategy)]; }
std::string_view name(Layout layout) { return kLayoutNames[static_cast<int>(layout)]; }
std::string_view name(Placement placement) { return kPlacementNames[static_cast<int>(placement)]; }

void make_valid(const OpDescriptor& op, std::vector<Index>& dims) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const DimInfo& info = op.dims[d];
    const Index step = step_of(op, d, dims);
    const Index least = (info.min + step - 1) / step * step, most = info.max / step * step;
    dims[d] = std::clamp(dims[d] / step * step, least, std::max(least, most));
  }
}

bool valid(const OpDescriptor& op, const std::vector<Index>& dims) {
  std::vector<Index> corrected = dims;
  make_valid(op, corrected);
  return corrected == dims;
}

std::size_t count_of_values(const Case& c) {
  std::size_t count = 0;
  for (const auto& list : c.values) count += list.size();
  return count;
}

std::string describe_extents(const OpDescriptor& op, const std::vector<Index>& dims,
                             const std::vector<double>& params) {
  std::string text;
  const auto add = [&](std::string_view name, auto value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  };
  for (std::size_t d = 0; d < dims.size(); ++d) add(op.dims[d].name, dims[d]);
  const auto shortest = [](double x) {  // a float32 prints with its own shortest digits
    const auto narrow = static_cast<float>(x);
    return narrow == x ? fmt::to_string(narrow) : fmt::to_string(x);
  };
  for (std::size_t p = 0; p < params.size(); ++p) add(op.params[p].name, shortest(params[p]));
  return text;
}

std::string describe(const OpDescriptor& op, const Case& c) {
  std::string text = describe_extents(op, c.dims, c.params);
  text +=
      fmt::format("{} {}, {}, {}, seed {}", text.empty() ? "" : ",",
                  c.values.empty() ? name(c.strategy) : "explicit values", name(c.layout), name(c.placement), c.seed);
  if (c.region >= 0) text += fmt::format(", {}", op.shapes[static_cast<std::size_t>(c.region)].name);
  if (c.order != 0) text += fmt::format(", thread order {}", c.order);
  if (!c.prelude.empty()) {
    const Case before = prelude_of(op, c);
    text += fmt::format(", after a call with {}", describe_extents(op, before.dims, before.params));
  }
  return text;
}

nlohmann::json to_json(const OpDescriptor& op, const Case& c) {
  nlohmann::json json{{"dims", dims_json(op, c.dims)},
                      {"strategy", name(c.strategy)},
                      {"layout", name(c.layout)},
                      {"placement", name(c.placement)},
                      {"seed", std::to_string(c.seed)}};
  for (std::size_t p = 0; p < c.params.size(); ++p) json["params"][std::string(op.params[p].name)] = c.params[p];
  if (c.order != 0) json["order"] = std::to_string(c.order);
  if (!c.prelude.empty()) json["prelude"] = dims_json(op, c.prelude);
  for (std::size_t t = 0; t < c.values.size(); ++t) {
    if (op.tensors[t].role == Role::out) continue;
    nlohmann::json list = nlohmann::json::array();
    for (float x : c.values[t]) list.push_back(float_text(x));
    json["values"][std::string(op.tensors[t].name)] = std::move(list);
  }
  return json;
}

Case case_from_json(const OpDescriptor& op, const nlohmann::json& json, const std::string& where) {
  Case c;
  c.dims = dims_from(op, member(json, "dims", where), where + ".dims");
  for (const ParamInfo& param : op.params) {
    const auto& value = member(member(json, "params", where), std::string(param.name).c_str(), where + ".params");
    if (!value.is_number())
      throw InputError(where + ".params." + std::string(param.name), value.dump() + " is not a number", "use a number");
    c.params.push_back(value.get<double>());
  }
  c.strategy = parse_name<Strategy>(kStrategyNames, member(json, "strategy", where), where + ".strategy");
  c.layout = parse_name<Layout>(kLayoutNames, member(json, "layout", where), where + ".layout");
  c.placement = parse_name<Placement>(kPlacementNames, member(json, "placement", where), where + ".placement");
  c.seed = seed_from(member(json, "seed", where), where + ".seed");
  if (json.contains("order")) c.order = seed_from(json["order"], where + ".order");
  if (json.contains("prelude")) c.prelude = dims_from(op, json["prelude"], where + ".prelude");
  if (json.contains("values")) c.values = values_from(op, c, json["values"], where + ".values");
  return c;
}

}  // namespace assay::falsify
