#include "program/model/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "program/operations.hpp"

namespace assay::program {
namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;  // of splitmix64

/// Sets rows of a parameter, packed in its format.
void set(Session& session, const Parameter& p, const PartOfRows& part, std::span<const float> elements) {
  if (!is_packed(p.format)) return session.set(part.value, elements);
  Builder b;
  const Value x = b.input(p.name, {part.end - part.begin, p.shape[1]});
  Value packed, scales;
  if (p.format == WeightFormat::q4_k) {
    packed = q4_k_quantize(b, x);
  } else {
    const Nf4QuantizeValues both = nf4_quantize(b, x);
    packed = both.codes, scales = both.absmax;
    b.output(scales);
  }
  b.output(packed);
  Session packing(b.take(), assay::device(Backend::cpu));
  packing.set(x, std::as_bytes(elements));
  packing.run();
  session.set(part.value, packing.get<std::uint8_t>(packed));
  if (scales) session.set(part.scales, packing.get<float>(scales));
}

}  // namespace

const Parameter& parameter(const Program& program, std::string_view name) {
  const auto at = std::ranges::find(program.parameters, name, &Parameter::name);
  if (at == program.parameters.end())
    throw InputError(std::string(name), "the program has no parameter of this name",
                     fmt::format("its {} parameters are in Program::parameters", program.parameters.size()));
  return *at;
}

Index parameter_count(const Program& program, bool trainable_only) {
  Index count = 0;
  for (const Parameter& p : program.parameters)
    if (p.trainable || !trainable_only) count += p.shape.size();
  return count;
}

std::vector<std::string> attention_names(const Program& program, std::string_view prefix) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view projection, std::string_view rest) {
    std::string name = fmt::format("{}.{}{}", prefix, projection, rest);
    if (std::ranges::find(program.parameters, name, &Parameter::name) != program.parameters.end())
      names.push_back(std::move(name));
    else if (rest == "_proj.weight") parameter(program, name);  // throws
  };
  for (const char* p : {"q", "k", "v", "o"}) add(p, "_proj.weight");
  for (const char* p : {"q", "k", "v", "o"}) add(p, "_proj.bias");
  for (const char* p : {"q", "k"}) add(p, "_norm.weight");
  return names;
}

std::vector<float> initial_values(std::string_view name, const Shape& shape, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(shape.size());
  if (name.ends_with("norm.weight")) return std::vector<float>(n, 1);
  std::vector<float> values(n, 0);
  if (name.ends_with(".bias") || name.ends_with(".lora_B.weight")) return values;
  std::uint64_t key = scramble(seed);
  for (const char c : name) key = scramble(key ^ static_cast<unsigned char>(c));
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t sum = 0;  // of twelve uniform numbers of 16 bits: integers, which round nowhere
    for (std::uint64_t draw = 0; draw < 3; ++draw) {
      const std::uint64_t bits = scramble(key + (3 * i + draw) * kStep);
      for (int part = 0; part < 4; ++part) sum += static_cast<std::int64_t>(bits >> (16 * part) & 0xffff);
    }
    values[i] = static_cast<float>(0.02 * (static_cast<double>(2 * sum - 12 * 65535) / 131072.0));
  }
  return values;
}

void initialize(Session& session, std::uint64_t seed) {
  for (const Parameter& p : session.program().parameters)
    set_parameter(session, p.name, p.shape, initial_values(p.name, p.shape, seed));
}

void set_parameter(Session& session, std::string_view name, const Shape& shape, std::span<const float> elements) {
  const Parameter& p = parameter(session.program(), name);
  if (!(p.shape == shape))
    throw InputError(std::string(name), fmt::format("it is {}, and {} was given", to_string(p.shape), to_string(shape)),
                     "give it in its own layout: a weight is [out, in]");
  if (std::ssize(elements) != shape.size())
    throw InputError(std::string(name),
                     fmt::format("it is {}, and {} elements were given", to_string(shape), elements.size()),
                     fmt::format("give {}", shape.size()));
  if (!p.parts.empty()) {
    const auto columns = static_cast<std::size_t>(shape[1]);
    for (const PartOfRows& part : p.parts)
      set(session, p, part,
          elements.subspan(static_cast<std::size_t>(part.begin) * columns,
                           static_cast<std::size_t>(part.end - part.begin) * columns));
    return;
  }
  set(session, p, {0, shape[0], p.value, p.scales}, elements);
}

void set_stored(Session& session, const Parameter& p, std::string_view bytes) {
  const std::size_t row = bytes.size() / static_cast<std::size_t>(p.shape[0]);
  const PartOfRows whole[] = {{0, p.shape[0], p.value, p.scales}};
  for (const PartOfRows& part : p.parts.empty() ? std::span(whole) : std::span(p.parts))
    session.set(part.value,
                std::as_bytes(std::span(bytes.substr(static_cast<std::size_t>(part.begin) * row,
                                                     static_cast<std::size_t>(part.end - part.begin) * row))));
}

std::vector<float> get_parameter(Session& session, const Parameter& p) {
  if (is_packed(p.format))
    throw InputError(p.name, fmt::format("it is stored as {}, which holds no exact elements", name(p.format)),
                     "take the weights that it was set to");
  if (p.parts.empty()) return session.get<float>(p.value);
  std::vector<float> all;
  for (const PartOfRows& part : p.parts) {
    const std::vector<float> rows = session.get<float>(part.value);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace assay::program
