// Attention on the CPU: blocks of queries against tiles of keys, with an online softmax.
#include "ops/attention.hpp"

#include <cmath>
#include <vector>

#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

/// Rows of a block: query i of head h, heads of a group side by side.
struct QueryRow {
  Index i, h, keys;
};

struct Buffers {
  explicit Buffers(Index d)
      : width(packed_width(d)), q(kBlock * width), rows(kKeys * width), transposed(d * kKeys), v(kKeys * width), scores(kBlock * kKeys),
        sums(kBlock * width) {}

  using Floats = std::vector<float>;
  Index width;
  struct Buffer : Floats {
    explicit Buffer(Index n) : Floats(static_cast<std::size_t>(n)) {}
  };
  Buffer q, rows, transposed, v, scores, sums;
  float largest[kBlock], total[kBlock];
};

template <class S>
void attend(const ops::AttentionArgs& args, Index b, Index g, const std::vector<QueryRow>& rows, Buffers& of) {
  const Index n = static_cast<Index>(rows.size()), d = args.d, width = of.width;
  const auto q = head_rows<const S>(args.q), k = head_rows<const S>(args.k), v = head_rows<const S>(args.v);
  Index most = 0, least = rows[0].keys;
  for (Index r = 0; r < n; ++r) {
    const QueryRow& row = rows[static_cast<std::size_t>(r)];
    pack_row(q.at(b, row.i, row.h), d, static_cast<float>(args.scale), of.q.data() + r * width);
    of.largest[r] = -INFINITY;
    of.total[r] = 0;
    most = std::max(most, row.keys);
    least = std::min(least, row.keys);
  }
  std::fill(of.sums.begin(), of.sums.end(), 0.0F);
  for (Index first = 0; first < most; first += kKeys) {
    const Index keys = std::min(kKeys, most - first);
    for (Index j = 0; j < keys; ++j) {
      pack_row(k.at(b, first + j, g), d, 1, of.rows.data() + j * width);
      pack_row(v.at(b, first + j, g), d, 1, of.v.data() + j * width);
    }
    transpose_rows(of.rows.data(), keys, d, of.transposed.data());
    multiply<false>(n, kKeys, d, of.q.data(), width, of.transposed.data(), kKeys, of.scores.data(), kKeys, false);
    for (Index r = 0; r < n; ++r)
      weigh(of.scores.data() + r * kKeys, std::clamp<Index>(rows[static_cast<std::size_t>(r)].keys - first, 0, kKeys), of.largest[r],
            of.total[r], of.sums.data() + r * width, d);
    // A weight of zero times NaN would reach rows that do not see the value.
    if (all_finite(of.v.data(), std::clamp<Index>(least - first, 0, keys), keys, width)) {
      multiply<false>(n, d, keys, of.scores.data(), kKeys, of.v.data(), width, of.sums.data(), width, true);
    } else {
      for (Index r = 0; r < n; ++r)
        multiply<false>(1, d, std::clamp<Index>(rows[static_cast<std::size_t>(r)].keys - first, 0, keys), of.scores.data() + r * kKeys, kKeys,
                        of.v.data(), width, of.sums.data() + r * width, width, true);
    }
  }
  const FloatTag tag;
  for (Index r = 0; r < n; ++r) {
    const QueryRow& row = rows[static_cast<std::size_t>(r)];
    const bool nothing = of.total[r] == 0;
    const auto factor = hn::Set(tag, nothing ? 0.0F : 1.0F / of.total[r]);
    S* const y = head_rows<S>(args.y).at(b, row.i, row.h);
    for_each_vector(tag, d, [&](Index c, std::size_t count) {
      const auto mean = hn::Mul(hn::LoadU(tag, of.sums.data() + r * width + c), factor);
      store_first(tag, nothing ? hn::Zero(tag) : mean, y + c, count);
    });
    args.logsumexp(b, row.h, row.i) = nothing ? -INFINITY : of.largest[r] + std::log(of.total[r]);
  }
}

template <class S>
void attend_all(const ops::AttentionArgs& args) {
  const Index group = args.heads / args.kv_heads;
  Buffers buffers(args.d);
  std::vector<QueryRow> rows;
  for (Index b = 0; b < args.batch; ++b)
    for (Index g = 0; g < args.kv_heads; ++g)
      for (Index r = 0; r < args.s * group; r += kBlock) {
        rows.clear();
        for (Index at = r; at < std::min(r + kBlock, args.s * group); ++at)
          rows.push_back({at / group, g * group + at % group, keys_seen(args.causal != 0, args.lengths(b), args.starts(b), at / group)});
        attend<S>(args, b, g, rows, buffers);
      }
}

void attention_blocks(const ops::AttentionArgs& args) {
  with_storage(args.q.dtype(), [&]<class S>(S) { attend_all<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace {

HWY_EXPORT(attention_blocks);

using ops::AttentionArgs;

/// y[b,i,h] = sum_j p_j v[b,j,g], p = softmax(scale q · k), over visible keys; logsumexp[b,h,i] beside it
///   q, y (batch,s,heads,d), k, v (batch,t,kv_heads,d): float32, binary16 or bfloat16; lengths, starts (batch): int32; logsumexp
///   (batch,heads,s): float32. Rows dense, outputs share no memory with inputs. The maximum is known before the first
///   exponential. Cost 4 batch heads s t d operations, t floats of scratch memory.
template <class S>
void naive(const AttentionArgs& args, Device&) {
  const View<const S> q = args.q.as<const S>(), k = args.k.as<const S>(), v = args.v.as<const S>();
  const View<S> y = args.y.as<S>();
  const Index group = args.heads / args.kv_heads;
  std::vector<float> weights(static_cast<std::size_t>(args.t));
  float* const weight = weights.data();
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; h < args.heads; ++h)
      for (Index i = 0; i < args.s; ++i) {
        const Index keys = keys_seen(args.causal != 0, args.lengths(b), args.starts(b), i);
        float largest = -INFINITY, sum = 0.0F;
        for (Index j = 0; j < keys; ++j) {
          float dot = 0.0F;
          for (Index c = 0; c < args.d; ++c) dot += widen(q(b, i, h, c)) * widen(k(b, j, h / group, c));
          weight[j] = static_cast<float>(args.scale) * dot;
          largest = largest < weight[j] ? weight[j] : largest;
        }
        const float shift = largest == -INFINITY ? 0.0F : largest;
        for (Index j = 0; j < keys; ++j) sum += weight[j] = std::exp(weight[j] - shift);
        for (Index c = 0; c < args.d; ++c) {
          float mean = 0.0F;
          for (Index j = 0; j < keys; ++j) mean += weight[j] * widen(v(b, j, h / group, c));
          y(b, i, h, c) = narrow<S>(sum == 0.0F ? 0.0F : mean / sum);
        }
        args.logsumexp(b, h, i) = sum == 0.0F ? -INFINITY : shift + std::log(sum);
      }
}

/// The same, 32 queries against 64 keys at a time: products by register tiles, sums rescaled where a maximum grows.
void highway(const AttentionArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(attention_blocks)(args); }

template <void (*run)(const AttentionArgs&, Device&)>
KernelRegistration add(DType storage, std::string_view id, std::string_view summary, const Arithmetic& arithmetic, int priority) {
  return KernelRegistration({.op = "attention",
                             .id = id,
                             .arithmetic = arithmetic,
                             .storage = storage,
                             .source = "kernels/cpu/attention.cpp",
                             .summary = summary,
                             .run = &run_typed<AttentionArgs, run>,
                             .priority = priority});
}

constexpr std::string_view kNaive = "a query at a time, all of its scores in memory";
constexpr std::string_view kHighway = "online softmax, 32 queries by 64 keys, register tiles, one thread";
constexpr Arithmetic kOnline{.functions = FunctionLibrary::highway, .online_tile = 64};
const KernelRegistration registrations[] = {
    add<&naive<float>>(DType::f32, "attention/cpu/naive", kNaive, {}, 0),
    add<&naive<Half>>(DType::f16, "attention/cpu/naive_f16", kNaive, {}, 0),
    add<&naive<BFloat16>>(DType::bf16, "attention/cpu/naive_bf16", kNaive, {}, 0),
    add<&highway>(DType::f32, "attention/cpu/highway", kHighway, kOnline, 1),
    add<&highway>(DType::f16, "attention/cpu/highway_f16", kHighway, kOnline, 1),
    add<&highway>(DType::bf16, "attention/cpu/highway_bf16", kHighway, kOnline, 1),
};

}  // namespace
}  // namespace assay::cpu
#endif
