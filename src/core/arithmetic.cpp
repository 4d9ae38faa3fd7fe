#include "core/arithmetic.hpp"

#include "core/bounded.hpp"

namespace assay {
namespace {

constexpr Arithmetic kPlain{};
thread_local const Arithmetic* current = &kPlain;

}  // namespace

std::string_view name(Format format) {
  switch (format) {
    case Format::f32: return "f32";
    case Format::tf32: return "tf32";
    case Format::f16: return "f16";
    case Format::bf16: return "bf16";
    case Format::tf32x3: return "tf32x3";
  }
  return "?";
}

std::string_view name(Loss loss) {
  switch (loss) {
    case Loss::nothing: return "nothing";
    case Loss::confident: return "confident";
    case Loss::stable: return "stable";
    case Loss::small_scale: return "small_scale";
  }
  return "?";
}

std::string to_string(const Arithmetic& arithmetic) {
  std::string text = std::string(name(arithmetic.inputs)) + " inputs, " + std::string(name(arithmetic.accumulator)) +
                     " accumulator, " + (arithmetic.accumulation == Rounding::nearest ? "to nearest" : "toward zero");
  if (arithmetic.block > 1) text += ", blocks of " + std::to_string(arithmetic.block);
  if (arithmetic.aligned != Format::f32) text += ", factors aligned as " + std::string(name(arithmetic.aligned));
  if (arithmetic.flushes_subnormals) text += ", subnormals flushed";
  if (arithmetic.flushes_stored) text += ", subnormal results flushed when stored";
  if (!arithmetic.fuses_products) text += ", products rounded";
  text += ", functions of " + std::string(name(arithmetic.functions));
  if (arithmetic.online_tile > 0)
    text += ", softmax rescaled every " + std::to_string(arithmetic.online_tile) + " terms";
  if (arithmetic.lazy_rescaling > 0)
    text += ", once its maximum has grown 2^" + std::to_string(arithmetic.lazy_rescaling) + " times";
  if (arithmetic.merges_parts) text += ", parts merged under their logsumexp";
  if (arithmetic.frequencies != Frequencies::exact)
    text += arithmetic.frequencies == Frequencies::powers ? ", frequencies as float32 powers"
                                                          : ", frequencies as float32 products";
  if (arithmetic.loses != Loss::nothing) text += ", loses what " + std::string(name(arithmetic.loses)) + " pins";
  return text;
}

ArithmeticScope::ArithmeticScope(const Arithmetic& arithmetic) : in_force_(arithmetic), previous_(current) {
  current = &in_force_;
  detail::in_force = nullptr;
}
ArithmeticScope::~ArithmeticScope() {
  current = previous_;
  detail::in_force = nullptr;
}

const Arithmetic& current_arithmetic() { return *current; }

}  // namespace assay
