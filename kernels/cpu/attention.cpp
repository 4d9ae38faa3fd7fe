// Attention on the CPU: blocks of queries against tiles of keys, with an online softmax.
#include "ops/attention.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "serve/scratch.hpp"
#include "kernels/cpu/threads.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

/// A row of a block: query i of head h; heads of a group are adjacent.
struct QueryRow {
  Index i, h, keys;
};

struct Buffers {
  explicit Buffers(Index d)
      : width(packed_width(d)), q(kBlock * width), rows(kKeys * width), transposed(d * kKeys), v(kKeys * width),
        scores(kBlock * kKeys), sums(kBlock * width) {}

  Index width;
  struct Buffer : Scratch<float> {
    explicit Buffer(Index n) : Scratch(static_cast<std::size_t>(n), true) {}
  };
  Buffer q, rows, transposed, v, scores, sums;
  float largest[kBlock], total[kBlock];
};

template <class S>
void attend(const ops::AttentionArgs& args, Index b, Index g, std::span<const QueryRow> rows, Buffers& of) {
  const Index n = std::ssize(rows), d = args.d, width = of.width;
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
      weigh(of.scores.data() + r * kKeys, std::clamp<Index>(rows[static_cast<std::size_t>(r)].keys - first, 0, kKeys),
            of.largest[r], of.total[r], of.sums.data() + r * width, d);
    // Skip values that some rows do not see: a zero weight times NaN would still reach those rows.
    if (all_finite(of.v.data(), std::clamp<Index>(least - first, 0, keys), keys, width)) {
      multiply<false>(n, d, keys, of.scores.data(), kKeys, of.v.data(), width, of.sums.data(), width, true);
    } else {
      for (Index r = 0; r < n; ++r)
        multiply<false>(1, d, std::clamp<Index>(rows[static_cast<std::size_t>(r)].keys - first, 0, keys),
                        of.scores.data() + r * kKeys, kKeys, of.v.data(), width, of.sums.data() + r * width, width,
                        true);
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

/// Threads take blocks of queries in turn: causal ones grow.
template <class S>
void attend_all(const ops::AttentionArgs& args) {
  const Index group = args.heads / args.kv_heads, queries = args.s * group, in_head = (queries + kBlock - 1) / kBlock,
              blocks = args.batch * args.kv_heads * in_head;
  const Index threads = threads_for(2 * args.batch * args.heads * args.s * args.t * args.d, blocks);
  std::array<std::optional<Buffers>, kMostThreads> buffers;
  for (Index t = 0; t < threads; ++t) buffers[static_cast<std::size_t>(t)].emplace(args.d);
  on_threads(threads, [&](Index thread) {
    QueryRow rows[kBlock];
    for (Index block = thread; block < blocks; block += threads) {
      const Index head = block / in_head, b = head / args.kv_heads, g = head % args.kv_heads,
                  r = block % in_head * kBlock, n = std::min(kBlock, queries - r);
      for (Index at = r; at < r + n; ++at)
        rows[at - r] = {at / group, g * group + at % group,
                        keys_seen(args.causal != 0, args.lengths(b), args.starts(b), at / group)};
      attend<S>(args, b, g, std::span(rows).first(static_cast<std::size_t>(n)),
                *buffers[static_cast<std::size_t>(thread)]);
    }
  });
  for (Index t = threads; t-- > 0;) buffers[static_cast<std::size_t>(t)].reset();  // the last to be taken first
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

/// The naive kernel's sums for 64 queries against 64 keys at a time: products by register tiles, sums rescaled where a
/// maximum grows.
void highway(const AttentionArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(attention_blocks)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway, .online_tile = 64},
                             .storage = storage,
                             .summary = "online softmax, 64 queries by 64 keys, register tiles",
                             .run = &run_typed<AttentionArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "attention/cpu/highway"),
    add(DType::f16, "attention/cpu/highway_f16"),
    add(DType::bf16, "attention/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu
#endif
