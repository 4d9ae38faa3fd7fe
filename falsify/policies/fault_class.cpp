#include "falsify/policies/fault_class.hpp"

#include <array>
#include <utility>

namespace assay::falsify::policies {
namespace {

constexpr std::string_view kIndexing = "indexing", kPrecision = "precision", kFormula = "formula", kState = "state",
                           kSpecial = "special", kSynchronization = "races", kGradient = "gradient";
constexpr std::array kClasses{kIndexing, kFormula, kGradient, kPrecision, kState, kSpecial, kSynchronization};
/// A word that would lead astray: the formula is wrong, or the gradient's.
constexpr std::string_view kAstray = "";

using Words = std::pair<std::string_view, std::string_view>;

/// Families of automatic mutants (falsify/spirv).
constexpr Words kFamilies[] = {
    {"barrier", kSynchronization}, {"subgroup", kSynchronization}, {"store", kState},        {"duplicate", kState},
    {"fma", kPrecision},           {"half", kPrecision},           {"bfloat16", kPrecision}, {"comparison", kIndexing},
    {"loop", kIndexing},           {"branch", kIndexing},          {"index", kIndexing},     {"component", kIndexing},
};

/// Of what is wrong with a hand-written one, the first word found decides. Races are bug 28, warps' lanes bug 44.
constexpr Words kWords[] = {
    {"bug 28", kSynchronization},
    {"bug 44", kSynchronization},
    {"__syncthreads", kSynchronization},
    {"barrier", kSynchronization},
    {"race", kSynchronization},
    {"wait", kSynchronization},
    {"other threads", kSynchronization},
    {"double buffer", kSynchronization},
    {"without a lock", kSynchronization},
    {"shuffle", kSynchronization},
    {"workgroup's other", kSynchronization},
    {"row sum", kAstray},
    {"by rows", kAstray},
    {"losses of rows", kAstray},
    {"exchanged outside", kAstray},
    {"adds to what", kState},
    {"added to what", kState},
    {"added to (bug", kState},
    {"starts from what", kState},
    {"what it held", kState},
    {"what y held", kState},
    {"call before", kState},
    {"first call", kState},
    {"never written", kState},
    {"not written", kState},
    {"unwritten", kState},
    {"is overwritten", kState},
    {"is written", kState},
    {"writes zeros to the next", kState},
    {"gap between", kState},
    {"past the end", kState},
    {"cache is not filled", kState},
    {"second time", kState},
    {"behind the last", kState},
    {"scratch", kState},
    {"left with", kState},
    {"from 0 at every", kState},
    {"half of its last", kState},
    {"dies of", kState},
    {"ends the process", kState},
    {"does not return", kState},
    {"never ends", kState},
    {"NaN", kSpecial},
    {"Inf", kSpecial},
    {"-inf", kSpecial},
    {"infinite", kSpecial},
    {"finite", kSpecial},
    {"subnormal", kSpecial},
    {"overflow", kSpecial},
    {"clamped to", kSpecial},
    {"is clamped", kSpecial},
    {"clamped at", kSpecial},
    {"maximum is not taken off", kSpecial},
    {"-0", kSpecial},
    {"negative zero", kSpecial},
    {"largest half", kSpecial},
    {"exponent 31", kSpecial},
    {"below 2^", kSpecial},
    {"masked", kSpecial},
    {"flush", kSpecial},
    {"0 / 0", kSpecial},
    {"multiplied by zero", kSpecial},
    {"treated as zero", kSpecial},
    {"low bits", kIndexing},
    {"upper two bits", kIndexing},
    {"half a block", kIndexing},
    {"half the width", kAstray},
    {"bfloat16", kPrecision},
    {"bf16", kPrecision},
    {"f16", kPrecision},
    {"TF32", kPrecision},
    {"bits", kPrecision},
    {"float32", kPrecision},
    {"rounded", kPrecision},
    {"lost in rounding", kPrecision},
    {"polynomial", kPrecision},
    {"off by 3.5%", kPrecision},
    {"Strassen", kPrecision},
    {"straight lines", kPrecision},
    {"is a float", kPrecision},
    {"binary16", kPrecision},
    {"repeated multiplication", kPrecision},
    {"one float", kPrecision},
    {"nearest", kPrecision},
    {"truncat", kPrecision},
    {"quantized to", kPrecision},
    {"three digits", kPrecision},
    {"reciprocal", kPrecision},
    {"halfway", kPrecision},
    {"leading dimension", kIndexing},
    {"floor instead", kIndexing},
    {"stride", kIndexing},
    {"the last", kIndexing},
    {"the first", kIndexing},
    {"last row", kIndexing},
    {"first row", kIndexing},
    {"columns past", kIndexing},
    {"tail", kIndexing},
    {"one place", kIndexing},
    {"pairs of", kIndexing},
    {"nibble", kIndexing},
    {"modulo", kIndexing},
    {"index", kIndexing},
    {"exchanged", kIndexing},
    {"square", kIndexing},
    {"512] is", kIndexing},
    {"kv_heads", kIndexing},
    {"count from", kIndexing},
    {"counted", kIndexing},
    {"position", kIndexing},
    {"every head", kIndexing},
    {"head 0", kIndexing},
    {"head h", kIndexing},
    {"heads", kIndexing},
    {"other axis", kIndexing},
    {"a scale for", kIndexing},
    {"one scale for", kIndexing},
    {"a maximum for", kIndexing},
    {"zeros from", kIndexing},
    {"appended", kIndexing},
    {"attends", kIndexing},
    {"sees", kIndexing},
    {"its own key", kIndexing},
    {"read as [", kIndexing},
    {"read as its", kIndexing},
    {"instead of A", kIndexing},
    {"column-major", kIndexing},
    {"are read from", kIndexing},
    {"past the", kIndexing},
    {"too many", kIndexing},
    {"for a batch", kIndexing},
    {"far apart", kIndexing},
    {"ends after", kIndexing},
    {"leaves out element", kIndexing},
    {"i <", kIndexing},
    {"i] in place", kIndexing},
    {"format guessed", kIndexing},
    {"lengths", kIndexing},
    {"padding", kIndexing},
    {"block", kIndexing},
    {"tile", kIndexing},
    {"group", kIndexing},
    {"row", kIndexing},
    {"column", kIndexing},
    {"warp", kIndexing},
    {"lane", kIndexing},
    {"aligned", kIndexing},
    {"sequence", kIndexing},
    {"ids", kIndexing},
    {"token", kIndexing},
    {"entry", kIndexing},
};

std::string_view find(std::span<const Words> words, std::string_view text, bool whole) {
  for (const auto& [word, of] : words)
    if (whole ? text == word : text.find(word) != std::string_view::npos) return of;
  return kAstray;
}

}  // namespace

std::span<const std::string_view> fault_classes() { return kClasses; }

std::string_view fault_class(std::string_view op, std::string_view fault) {
  const bool family = fault.find(' ') == std::string_view::npos;
  const std::string_view found = family ? find(kFamilies, fault, true) : find(kWords, fault, false);
  return !found.empty() ? found : op.ends_with("_backward") ? kGradient : kFormula;
}

}  // namespace assay::falsify::policies
