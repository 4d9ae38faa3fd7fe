#include "falsify/policies/fault_class.hpp"

#include <array>
#include <utility>

namespace assay::falsify::policies {
namespace {

constexpr std::string_view kIndexing = "indexing", kPrecision = "precision", kFormula = "formula", kState = "state",
                           kSpecial = "special values", kSynchronization = "synchronization", kGradient = "gradient";
constexpr std::array kClasses{kIndexing, kFormula, kGradient, kPrecision, kState, kSpecial, kSynchronization};

/// The first word found decides.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    // Families of automatic mutants, and barriers.
    {"barrier", kSynchronization}, {"__syncthreads", kSynchronization}, {"race", kSynchronization}, {"wait", kSynchronization},
    {"before the other", kSynchronization}, {"shuffle", kSynchronization}, {"order of threads", kSynchronization},
    {"atomic", kSynchronization},
    // What was there before, or stays.
    {"adds to what", kState}, {"added to what", kState}, {"starts from what", kState}, {"call before", kState},
    {"first call", kState}, {"never written", kState}, {"not written", kState}, {"unwritten", kState}, {"is overwritten", kState},
    {"is written", kState}, {"writes zeros to the next", kState}, {"gap between", kState}, {"past the end", kState},
    {"same pointer", kState}, {"cached", kState}, {"beyond the end", kState}, {"cache is not filled", kState},
    {"second time", kState}, {"behind the last", kState}, {"left with", kState}, {"is never", kState}, {"kept from", kState},
    // NaN, Inf, the ends of the range.
    {"NaN", kSpecial}, {"Inf", kSpecial}, {"-inf", kSpecial}, {"infinite", kSpecial}, {"finite", kSpecial}, {"subnormal", kSpecial},
    {"overflow", kSpecial}, {"clamped", kSpecial}, {"maximum is not taken off", kSpecial}, {"zeros of x", kSpecial},
    {"-0", kSpecial}, {"largest half", kSpecial}, {"exponent 31", kSpecial}, {"below 2^", kSpecial}, {"masked", kSpecial},
    {"flush", kSpecial}, {"range of f16", kSpecial},
    // Fewer digits.
    {"bfloat16", kPrecision}, {"TF32", kPrecision}, {"bits", kPrecision}, {"float32", kPrecision}, {"rounded", kPrecision},
    {"polynomial", kPrecision}, {"off by 3.5%", kPrecision}, {"straight lines", kPrecision}, {"is a float", kPrecision},
    {"binary16", kPrecision}, {"half precision", kPrecision}, {"half", kPrecision}, {"repeated multiplication", kPrecision},
    {"fma", kPrecision}, {"one float", kPrecision}, {"nearest", kPrecision}, {"truncat", kPrecision}, {"quantized to", kPrecision},
    // Which element.
    {"leading dimension", kIndexing}, {"floor instead", kIndexing}, {"stride", kIndexing}, {"last row", kIndexing},
    {"last column", kIndexing}, {"last token", kIndexing}, {"last label", kIndexing}, {"last element", kIndexing},
    {"last entry", kIndexing}, {"last value", kIndexing}, {"the last", kIndexing}, {"the first", kIndexing}, {"first row", kIndexing},
    {"columns past", kIndexing}, {"rows past", kIndexing}, {"rows from", kIndexing}, {"tail", kIndexing}, {"off by one", kIndexing},
    {"one place", kIndexing}, {"pairs of", kIndexing}, {"nibble", kIndexing}, {"modulo", kIndexing}, {"indexed", kIndexing},
    {"index", kIndexing}, {"exchanged", kIndexing}, {"square matrices", kIndexing}, {"[512", kIndexing}, {"kv_heads", kIndexing},
    {"count from 1", kIndexing}, {"counted from", kIndexing}, {"position", kIndexing}, {"every row", kIndexing}, {"head 0", kIndexing},
    {"heads beyond", kIndexing}, {"other axis", kIndexing}, {"rows taken", kIndexing}, {"one row", kIndexing}, {"a scale for", kIndexing},
    {"one scale for", kIndexing}, {"zeros from value", kIndexing}, {"rows are cut", kIndexing}, {"appended at", kIndexing},
    {"attends over", kIndexing}, {"i] in place", kIndexing}, {"format guessed", kIndexing}, {"lengths", kIndexing}, {"block", kIndexing},
    {"tile", kIndexing}, {"group", kIndexing}, {"component", kIndexing}, {"duplicate", kIndexing}, {"store", kIndexing}, {"row", kIndexing},
    {"column", kIndexing}, {"warp", kIndexing}, {"lane", kIndexing}, {"loop", kIndexing}, {"comparison", kIndexing},
};

}  // namespace

std::span<const std::string_view> fault_classes() { return kClasses; }

std::string_view fault_class(std::string_view op, std::string_view fault) {
  for (const auto& [word, of] : kWords)
    if (fault.find(word) != std::string_view::npos) return of;
  return op.ends_with("_backward") ? kGradient : kFormula;
}

}  // namespace assay::falsify::policies
