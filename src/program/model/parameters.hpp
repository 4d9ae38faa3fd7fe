// Parameters by name: found, counted, initialized, set.
#pragma once

#include "program/session.hpp"

namespace assay::program {

/// One step of splitmix64 (Steele, Lea & Flood, OOPSLA 2014).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Throws InputError if no parameter has this name.
const Parameter& parameter(const Program& program, std::string_view name);

/// Elements of all parameters, or of those that train.
Index parameter_count(const Program& program, bool trainable_only = false);

/// The parameters of an attention block, adapters apart, in the order of their list: weights of q, k, v, o; biases in
/// the same order; norms of q, k. Throws InputError where one of the weights is missing.
std::vector<std::string> attention_names(const Program& program, std::string_view prefix = "self_attn");

/// Values of a parameter before training, which depend on seed, full name and position alone: ones for norms, zeros for
/// biases and for an adapter's B, else approximately normal(0, 0.02), the usual
/// initializer_range of Hugging Face configurations, never beyond 6 deviations. The same on every
/// platform.
std::vector<float> initial_values(std::string_view name, const Shape& shape, std::uint64_t seed);
void initialize(Session& session, std::uint64_t seed);

/// Sets a parameter to elements of this shape, packed in its format or rounded to it, to nearest even. Throws InputError for a shape that is not the
/// parameter's, such as a transposed one, and for another number of elements.
void set_parameter(Session& session, std::string_view name, const Shape& shape, std::span<const float> elements);
/// Sets a parameter to its rows as its own format stores them, without scales.
void set_stored(Session& session, const Parameter& parameter, std::string_view bytes);
/// The elements of a parameter, exactly. Throws InputError where it is packed.
std::vector<float> get_parameter(Session& session, const Parameter& parameter);

}  // namespace assay::program
