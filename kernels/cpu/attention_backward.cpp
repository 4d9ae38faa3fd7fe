// Gradients of attention on the CPU: blocks of queries against tiles of keys, weights recomputed from logsumexp.
#include "ops/attention_backward.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "serve/scratch.hpp"
#include "kernels/cpu/threads.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

/// A row of a block: query i of head h. A query with logsumexp = -inf sees no key.
struct QueryRow {
  Index i, h, keys;
  float logsumexp, along;  ///< dy · y
};

struct Buffers {
  Buffers(Index d, Index t)
      : width(packed_width(d)), q(kBlock * width), scaled(kBlock * width), dy(kBlock * width), dq(kBlock * width),
        k(kKeys * width), v(kKeys * width), transposed(d * kKeys), p(kBlock * kKeys), ds(kBlock * kKeys), dk(t * width),
        dv(t * width) {}

  Index width;
  struct Buffer : Scratch<float> {
    explicit Buffer(Index n) : Scratch(static_cast<std::size_t>(n), true) {}
  };
  Buffer q, scaled, dy, dq, k, v, transposed, p, ds, dk, dv;
};

/// sum_c x[c] y[c] of packed rows.
float dot(const float* x, const float* y, Index width) {
  const FloatTag tag;
  auto sum = hn::Zero(tag);
  for (Index c = 0; c < width; c += kLanes) sum = hn::MulAdd(hn::LoadU(tag, x + c), hn::LoadU(tag, y + c), sum);
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// Replaces scores by p = exp(score - logsumexp) and dp by ds = p (dp - along) for the first `keys` of a row; zeros the
/// rest.
void weigh(const QueryRow& row, Index keys, float* p, float* ds) {
  const FloatTag tag;
  const auto logsumexp = hn::Set(tag, row.logsumexp), along = hn::Set(tag, row.along);
  for (Index j = 0; j < kKeys; j += kLanes) {
    const auto on = hn::FirstN(tag, static_cast<std::size_t>(std::clamp<Index>(keys - j, 0, kLanes)));
    const auto weight = exp_of(tag, hn::Sub(hn::LoadU(tag, p + j), logsumexp));
    hn::StoreU(hn::IfThenElseZero(on, weight), tag, p + j);
    hn::StoreU(hn::IfThenElseZero(on, hn::Mul(weight, hn::Sub(hn::LoadU(tag, ds + j), along))), tag, ds + j);
  }
}

template <class S>
void differentiate(const ops::AttentionBackwardArgs& args, Index b, Index g, std::span<QueryRow> rows, Buffers& of) {
  const Index n = std::ssize(rows), d = args.d, width = of.width;
  const auto q = head_rows<const S>(args.q), k = head_rows<const S>(args.k), v = head_rows<const S>(args.v);
  const auto y = head_rows<const S>(args.y), dy = head_rows<const S>(args.dy);
  Index most = 0, least = args.t;
  for (Index r = 0; r < n; ++r) {
    QueryRow& row = rows[static_cast<std::size_t>(r)];
    pack_row(q.at(b, row.i, row.h), d, 1, of.q.data() + r * width);
    pack_row(q.at(b, row.i, row.h), d, static_cast<float>(args.scale), of.scaled.data() + r * width);
    pack_row(dy.at(b, row.i, row.h), d, 1, of.dy.data() + r * width);
    pack_row(y.at(b, row.i, row.h), d, 1, of.dq.data());  // dq serves as scratch until its sums start
    row.along = dot(of.dy.data() + r * width, of.dq.data(), width);
    most = std::max(most, row.keys);
    least = std::min(least, row.keys);
  }
  std::fill(of.dq.begin(), of.dq.end(), 0.0F);
  for (Index first = 0; first < most; first += kKeys) {
    const Index keys = std::min(kKeys, most - first);
    for (Index j = 0; j < keys; ++j) {
      pack_row(k.at(b, first + j, g), d, 1, of.k.data() + j * width);
      pack_row(v.at(b, first + j, g), d, 1, of.v.data() + j * width);
    }
    transpose_rows(of.k.data(), keys, d, of.transposed.data());
    multiply<false>(n, kKeys, d, of.scaled.data(), width, of.transposed.data(), kKeys, of.p.data(), kKeys, false);
    transpose_rows(of.v.data(), keys, d, of.transposed.data());
    multiply<false>(n, kKeys, d, of.dy.data(), width, of.transposed.data(), kKeys, of.ds.data(), kKeys, false);
    for (Index r = 0; r < n; ++r) {
      const QueryRow& row = rows[static_cast<std::size_t>(r)];
      weigh(row, std::clamp<Index>(row.keys - first, 0, kKeys), of.p.data() + r * kKeys, of.ds.data() + r * kKeys);
    }
    float* const dk = of.dk.data() + first * width;
    float* const dv = of.dv.data() + first * width;
    // Zero times NaN would pass between a query and a key that the query does not see.
    const bool all_seen = least >= first + keys;
    if (all_seen || (all_finite(of.k.data(), std::clamp<Index>(least - first, 0, keys), keys, width) &&
                     all_finite(of.q.data(), 0, n, width) && all_finite(of.dy.data(), 0, n, width))) {
      multiply<false>(n, d, keys, of.ds.data(), kKeys, of.k.data(), width, of.dq.data(), width, true);
      multiply<true>(keys, d, n, of.ds.data(), kKeys, of.q.data(), width, dk, width, true);
      multiply<true>(keys, d, n, of.p.data(), kKeys, of.dy.data(), width, dv, width, true);
      continue;
    }
    for (Index r = 0; r < n; ++r) {
      const Index own = std::clamp<Index>(rows[static_cast<std::size_t>(r)].keys - first, 0, keys);
      const float *p = of.p.data() + r * kKeys, *ds = of.ds.data() + r * kKeys;
      multiply<false>(1, d, own, ds, kKeys, of.k.data(), width, of.dq.data() + r * width, width, true);
      multiply<true>(own, d, 1, ds, kKeys, of.q.data() + r * width, width, dk, width, true);
      multiply<true>(own, d, 1, p, kKeys, of.dy.data() + r * width, width, dv, width, true);
    }
  }
  const FloatTag tag;
  const auto scale = hn::Set(tag, static_cast<float>(args.scale));
  for (Index r = 0; r < n; ++r) {
    const QueryRow& row = rows[static_cast<std::size_t>(r)];
    S* const dq = head_rows<S>(args.dq).at(b, row.i, row.h);
    for_each_vector(tag, d, [&](Index c, std::size_t count) {
      store_first(tag, hn::Mul(hn::LoadU(tag, of.dq.data() + r * width + c), scale), dq + c, count);
    });
  }
}

/// The gradients of one head of keys and values, and of its queries.
template <class S>
void differentiate_head(const ops::AttentionBackwardArgs& args, Index b, Index g, Buffers& buffers) {
  const Index group = args.heads / args.kv_heads;
  QueryRow rows[kBlock];
  const FloatTag tag;
  const auto scale = hn::Set(tag, static_cast<float>(args.scale));
  std::fill(buffers.dk.begin(), buffers.dk.end(), 0.0F);
  std::fill(buffers.dv.begin(), buffers.dv.end(), 0.0F);
  for (Index r = 0; r < args.s * group; r += kBlock) {
    const Index n = std::min(kBlock, args.s * group - r);
    for (Index at = r; at < r + n; ++at) {
      const Index i = at / group, h = g * group + at % group;
      const float logsumexp = args.logsumexp(b, h, i);
      const Index keys = logsumexp == -INFINITY ? 0 : keys_seen(args.causal != 0, args.lengths(b), args.starts(b), i);
      rows[at - r] = {i, h, keys, logsumexp, 0};
    }
    differentiate<S>(args, b, g, std::span(rows).first(static_cast<std::size_t>(n)), buffers);
  }
  for (Index j = 0; j < args.t; ++j) {
    S* const dk = head_rows<S>(args.dk).at(b, j, g);
    S* const dv = head_rows<S>(args.dv).at(b, j, g);
    for_each_vector(tag, args.d, [&](Index c, std::size_t count) {
      const Index at = j * buffers.width + c;
      store_first(tag, hn::Mul(hn::LoadU(tag, buffers.dk.data() + at), scale), dk + c, count);
      store_first(tag, hn::LoadU(tag, buffers.dv.data() + at), dv + c, count);
    });
  }
}

template <class S>
void differentiate_all(const ops::AttentionBackwardArgs& args) {
  const Index heads = args.batch * args.kv_heads;
  const Index threads = threads_for(5 * args.batch * args.heads * args.s * args.t * args.d, heads);
  std::array<std::optional<Buffers>, kMostThreads> buffers;
  for (Index t = 0; t < threads; ++t) buffers[static_cast<std::size_t>(t)].emplace(args.d, args.t);
  on_threads(threads, [&](Index thread) {
    for (Index head = thread; head < heads; head += threads)
      differentiate_head<S>(args, head / args.kv_heads, head % args.kv_heads,
                            *buffers[static_cast<std::size_t>(thread)]);
  });
  for (Index t = threads; t-- > 0;) buffers[static_cast<std::size_t>(t)].reset();  // the last to be taken first
}

void attention_backward_blocks(const ops::AttentionBackwardArgs& args) {
  with_storage(args.q.dtype(), [&]<class S>(S) { differentiate_all<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace {

HWY_EXPORT(attention_backward_blocks);

using ops::AttentionBackwardArgs;

/// The naive kernel's sums for 64 queries against 64 keys at a time: five products by register tiles.
void highway(const AttentionBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(attention_backward_blocks)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "64 queries by 64 keys, five products by register tiles",
                             .run = &run_typed<AttentionBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "attention_backward/cpu/highway"),
    add(DType::f16, "attention_backward/cpu/highway_f16"),
    add(DType::bf16, "attention_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu
#endif
