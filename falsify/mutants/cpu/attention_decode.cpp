// Wrong attention against a cache.
#include "ops/attention_decode.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "falsify/mutants/cpu/mutant.hpp"

namespace assay::mutants::attention_decode_mutants {
namespace {

enum class Fault {
  position_kept,
  never_appended,
  first_head_appended,
  values_not_appended,
  appended_a_place_early,
  appended_after,
  new_key_missing,
  stale_place_attended,
  stale_places_times_zero,
  stride_of_length,
  limit_below_capacity,
  heads_interleaved,
  grouped_as_single,
  first_sequence_only,
  lengths_of_first,
  scale_from_width,
  not_shifted,
  last_place_of_tile_left_out,
  masked_row_nan,
  nan_swallowed,
  cleared_past_the_end,
  appended_by_arithmetic,
  bf16_weights,
};

/// Where one sequence stands, kept by the process.
Index kept_position = 0;

template <Fault F>
void decode(const ops::AttentionDecodeArgs& args, Device&) {
  using enum Fault;
  const auto q = args.q.as<const float>(), k = args.k.as<const float>(), v = args.v.as<const float>();
  auto k_cache = args.k_cache.as<float>();
  const auto v_cache = args.v_cache.as<float>(), y = args.y.as<float>();
  const Index group = args.heads / args.kv_heads;
  std::vector<float> weights(static_cast<std::size_t>(args.capacity));
  float* const weight = weights.data();
  for (Index b = 0; b < (F == first_sequence_only ? std::min<Index>(args.batch, 1) : args.batch); ++b) {
    Index last = args.lengths(F == lengths_of_first ? 0 : b);
    if (F == position_kept) {
      // A call that does not start a sequence goes on from the one before.
      kept_position = last == 0 || b > 0 ? last : std::min(kept_position + 1, args.capacity - 1);
      last = kept_position;
    }
    const Index place = F == appended_a_place_early && last > 0 ? last - 1 : last;
    const auto append = [&] {
      for (Index g = 0; g < (F == first_head_appended ? 1 : args.kv_heads); ++g)
        for (Index c = 0; c < args.d; ++c) {
          k_cache(b, place, g, c) = F == appended_by_arithmetic ? k(b, g, c) + 0.0F : k(b, g, c);
          if (F != values_not_appended) v_cache(b, place, g, c) = v(b, g, c);
        }
    };
    if (F == cleared_past_the_end && last + 1 < args.capacity)
      for (Index c = 0; c < args.d; ++c) k_cache(b, last + 1, 0, c) = 0;
    if (F != never_appended && F != appended_after) append();
    // The cache as if it were as long as what it holds.
    const Index batch_stride = F == stride_of_length ? (last + 1) * args.k_cache.stride(1) : args.k_cache.stride(0);
    const auto key = [&](Index j, Index g, Index c) {
      return k_cache.data()[b * batch_stride + j * k_cache.stride(1) + g * k_cache.stride(2) + c];
    };
    Index places = last + 1;
    if (F == new_key_missing) places = std::max<Index>(last, 1);
    if (F == stale_place_attended) places = std::min(last + 2, args.capacity);
    if (F == limit_below_capacity) places = std::min<Index>(places, 64);
    if (F == last_place_of_tile_left_out && places % 16 == 0) --places;
    const Index summed = F == stale_places_times_zero ? std::min((places + 7) / 8 * 8, args.capacity) : places;
    const float scale = F == scale_from_width ? 1 / std::sqrt(static_cast<float>(args.d)) : static_cast<float>(args.scale);
    for (Index h = 0; h < args.heads; ++h) {
      const Index g = F == heads_interleaved   ? h % args.kv_heads
                      : F == grouped_as_single ? std::min(h, args.kv_heads - 1)
                                               : h / group;
      float largest = -INFINITY, sum = 0;
      for (Index j = 0; j < places; ++j) {
        float dot = 0;
        for (Index c = 0; c < args.d; ++c) dot += q(b, h, c) * key(j, g, c);
        weight[j] = scale * dot;
        if (F == nan_swallowed && std::isnan(weight[j])) weight[j] = -INFINITY;
        largest = largest < weight[j] ? weight[j] : largest;
      }
      const float shift = F == not_shifted || (largest == -INFINITY && F != masked_row_nan) ? 0 : largest;
      for (Index j = 0; j < places; ++j) {
        sum += weight[j] = std::exp(weight[j] - shift);
        if (F == bf16_weights) weight[j] = widen(to_bfloat16(weight[j]));
      }
      for (Index j = places; j < summed; ++j) weight[j] = 0;
      for (Index c = 0; c < args.d; ++c) {
        float mean = 0;
        for (Index j = 0; j < summed; ++j) mean += weight[j] * v_cache(b, j, g, c);
        y(b, h, c) = sum == 0 ? 0 : mean / sum;
      }
    }
    if (F == appended_after) append();
  }
}

template <Fault F>
KernelRegistration add(std::string_view id, std::string_view fault) {
  return cpu_mutant<ops::AttentionDecodeArgs, &decode<F>>("attention_decode", id, fault);
}

const KernelRegistration registrations[] = {
    add<Fault::position_kept>("mutant/cpu/attention_decode/position_kept",
                              "the position is counted by the kernel, not read (bug 30)"),
    add<Fault::never_appended>("mutant/cpu/attention_decode/never_appended", "the cache is not filled (bug 31)"),
    add<Fault::first_head_appended>("mutant/cpu/attention_decode/first_head_appended", "only head 0 is appended (bug 31)"),
    add<Fault::values_not_appended>("mutant/cpu/attention_decode/values_not_appended", "the key is appended, the value is not"),
    add<Fault::appended_a_place_early>("mutant/cpu/attention_decode/appended_a_place_early", "appended at lengths - 1 (bug 30)"),
    add<Fault::appended_after>("mutant/cpu/attention_decode/appended_after",
                               "attends first, appends then: the query misses its own position"),
    add<Fault::new_key_missing>("mutant/cpu/attention_decode/new_key_missing", "attends over lengths places, not lengths + 1"),
    add<Fault::stale_place_attended>("mutant/cpu/attention_decode/stale_place_attended", "attends one place too many"),
    add<Fault::stale_places_times_zero>("mutant/cpu/attention_decode/stale_places_times_zero",
                                        "values past the end are multiplied by weights of 0 (bug 40)"),
    add<Fault::stride_of_length>("mutant/cpu/attention_decode/stride_of_length",
                                 "sequences taken to be as far apart as they are long, not as the capacity (bug 39)"),
    add<Fault::limit_below_capacity>("mutant/cpu/attention_decode/limit_below_capacity",
                                     "scratch for 64 places whatever the capacity, the rest cut off (bugs 21, 22)"),
    add<Fault::heads_interleaved>("mutant/cpu/attention_decode/heads_interleaved", "head h reads h % kv_heads (bug 15)"),
    add<Fault::grouped_as_single>("mutant/cpu/attention_decode/grouped_as_single",
                                  "GQA treated as MHA: head h reads head h (bug 15)"),
    add<Fault::first_sequence_only>("mutant/cpu/attention_decode/first_sequence_only",
                                    "one sequence's kernel for a batch (bug 43)"),
    add<Fault::lengths_of_first>("mutant/cpu/attention_decode/lengths_of_first", "every sequence stands where the first does"),
    add<Fault::scale_from_width>("mutant/cpu/attention_decode/scale_from_width", "1/sqrt(d), whatever scale is given"),
    add<Fault::not_shifted>("mutant/cpu/attention_decode/not_shifted", "the maximum is not taken off"),
    add<Fault::last_place_of_tile_left_out>("mutant/cpu/attention_decode/last_place_of_tile_left_out",
                                            "where places fill tiles of 16 the last one is left out"),
    add<Fault::masked_row_nan>("mutant/cpu/attention_decode/masked_row_nan", "scores of -inf alone give -inf - -inf"),
    add<Fault::nan_swallowed>("mutant/cpu/attention_decode/nan_swallowed", "a score of NaN counts as masked"),
    add<Fault::cleared_past_the_end>("mutant/cpu/attention_decode/cleared_past_the_end", "writes zeros to the next place"),
    add<Fault::appended_by_arithmetic>("mutant/cpu/attention_decode/appended_by_arithmetic", "-0 is appended as +0"),
    add<Fault::bf16_weights>("mutant/cpu/attention_decode/bf16_weights", "weights rounded to bfloat16 before they meet values"),
};

}  // namespace
}  // namespace assay::mutants::attention_decode_mutants
