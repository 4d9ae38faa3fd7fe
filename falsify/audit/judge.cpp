#include "falsify/audit/judge.hpp"

#include <fmt/format.h>

namespace assay::falsify::audit {
namespace {

bool is_nearest(SeenRounding rounding) {
  return rounding == SeenRounding::nearest_even || rounding == SeenRounding::nearest;
}

std::string_view words(Rounding rounding) { return rounding == Rounding::nearest ? "to nearest" : "toward zero"; }

class Judge {
 public:
  Judge(const Kernel& kernel, const Sum& sum, const Measured& m)
      : declared_(kernel.arithmetic), ours_(kernel.role != KernelRole::peer), sum_(sum), m_(m) {}

  std::vector<Disagreement> compare() {
    accumulator();
    rounding();
    inputs();
    at_once();
    if (m_.fused.value == true && !declared_.fuses_products)
      report("fma", "declares that products are rounded before they are added, and fuses them", m_.fused.probe);
    if (!declared_.flushes_subnormals) {
      flush("inputs", m_.flushes_inputs);
      flush("products", m_.flushes_products);
      flush("results", m_.flushes_results);
    }
    return std::move(found_);
  }

 private:
  void report(std::string_view property, const std::string& says, const std::string& probe, bool holds_more = false) {
    found_.push_back({std::string(property),
                      fmt::format("{}: {}{}{}", sum_.says, says, probe.empty() ? "" : ": ", probe), holds_more});
  }

  void accumulator() {
    if (!m_.accumulator_bits.value) return;
    const int bits = *m_.accumulator_bits.value, promised = significand_bits(declared_.accumulator);
    if (bits < promised && !m_.accumulator_limited)
      report("accumulator",
             fmt::format("declares an accumulator of {} ({} bits), measured {} bits", name(declared_.accumulator),
                         promised, bits),
             m_.accumulator_bits.probe);
    else if (ours_ && promised < 24 && bits > promised)
      report("accumulator",
             fmt::format("declares an accumulator of {} ({} bits) and holds {} bits: declare what it holds",
                         name(declared_.accumulator), promised, bits),
             "", true);
  }

  void rounding() {
    if (!m_.rounding.value || m_.accumulator_bits.value.value_or(24) < significand_bits(declared_.accumulator)) return;
    const Rounding promised = declared_.block > 1 && sum_.count > 2 ? Rounding::toward_zero : declared_.accumulation;
    if (sum_.count < 3 && promised != Rounding::nearest) return;  // no accumulation
    const SeenRounding seen = *m_.rounding.value;
    // Such a result shows only a change of the sum: by rounding up, or because more bits are held than declared.
    const bool shows_changes = sum_.terms != Terms::products && sum_.terms != Terms::values;
    if (shows_changes && seen == SeenRounding::away) return;
    if (promised == Rounding::nearest ? !is_nearest(seen) : seen != SeenRounding::toward_zero)
      report("rounding", fmt::format("declares accumulation {}, measured {}", words(promised), name(seen)),
             m_.rounding.probe, promised == Rounding::toward_zero && is_nearest(seen));
  }

  void inputs() {
    if (!m_.input_bits.value) return;
    const int bits = *m_.input_bits.value, promised = significand_bits(declared_.inputs);
    if (bits < promised && !m_.bits_limited)
      report("inputs",
             fmt::format("declares inputs of {} ({} bits), measured {} bits", name(declared_.inputs), promised, bits),
             m_.input_bits.probe);
    else if (ours_ && bits > promised && declared_.inputs != Format::tf32x3 && sum_.count > 1)
      report("inputs",
             fmt::format("declares inputs of {} ({} bits) and holds {} bits: declare what it holds",
                         name(declared_.inputs), promised, bits),
             "", true);
    if (!m_.input_rounding.value || bits != promised) return;
    const SeenRounding seen = *m_.input_rounding.value;
    if (declared_.input_rounding == Rounding::nearest ? !is_nearest(seen) : seen != SeenRounding::toward_zero)
      report("input_rounding",
             fmt::format("declares inputs rounded {}, measured {}", words(declared_.input_rounding), name(seen)),
             m_.input_rounding.probe);
  }

  /// Compares block operations, which appear as nodes of more than two children.
  void at_once() {
    if (!m_.order.value) return;
    const Index most = widest(*m_.order.value);
    if (most > 2 && declared_.block == 1)
      report("block", fmt::format("declares ordinary additions, and adds {} numbers at once", most), "");
    if (most == 2 && declared_.block > 1)
      report("block", fmt::format("declares blocks of {}, and adds two numbers at a time", declared_.block), "", true);
  }

  void flush(std::string_view what, const Property<bool>& property) {
    if (property.value == true)
      report("subnormals", fmt::format("declares that subnormals are kept, and flushes {}", what), property.probe);
  }

  const Arithmetic& declared_;
  bool ours_;
  const Sum& sum_;
  const Measured& m_;
  std::vector<Disagreement> found_;
};

}  // namespace

std::vector<Disagreement> compare(const Kernel& kernel, const Sum& sum, const Measured& measured) {
  return Judge(kernel, sum, measured).compare();
}

bool statistical_tier_used(const Arithmetic& arithmetic) {
  return arithmetic.accumulation == Rounding::nearest && arithmetic.block == 1;
}

bool statistical_tier_justified(const Measured& measured) {
  return !measured.rounding.value || is_nearest(*measured.rounding.value);
}

}  // namespace assay::falsify::audit
