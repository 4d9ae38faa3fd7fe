// Attention of one position against a cache on the CPU: heads that share keys and values read both once.
#include "ops/attention_decode.hpp"

#include <algorithm>
#include <cmath>

#include "serve/scratch.hpp"
#include "kernels/heads.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_decode.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

struct Buffers {
  explicit Buffers(Index d)
      : width(packed_width(d)), q(kBlock * width), v(kKeys * width), scores(kBlock * kKeys), sums(kBlock * width) {}

  Index width;
  struct Buffer : Scratch<float> {
    explicit Buffer(Index n) : Scratch(static_cast<std::size_t>(n), true) {}
  };
  Buffer q, v, scores, sums;
  float largest[kBlock], total[kBlock];
};

/// score[h][j] = q_h · key_j for packed rows q and keys `step` elements apart.
template <int kHeads, int kRows, class S>
void dots(const float* q, Index width, const S* keys, Index step, Index d, float* score) {
  const FloatTag tag;
  hn::Vec<FloatTag> sum[kHeads][kRows];
  for (auto& of_head : sum)
    for (auto& s : of_head) s = hn::Zero(tag);
  for_each_vector(tag, d, [&](Index c, std::size_t count) {
    hn::Vec<FloatTag> key[kRows];
#pragma GCC unroll 4
    for (int j = 0; j < kRows; ++j) key[j] = load_first(tag, keys + j * step + c, count);
#pragma GCC unroll 2
    for (int h = 0; h < kHeads; ++h) {
      const auto query = hn::LoadU(tag, q + h * width + c);
#pragma GCC unroll 4
      for (int j = 0; j < kRows; ++j) sum[h][j] = hn::MulAdd(query, key[j], sum[h][j]);
    }
  });
  for (int h = 0; h < kHeads; ++h)
    for (int j = 0; j < kRows; ++j) score[h * kKeys + j] = hn::GetLane(hn::SumOfLanes(tag, sum[h][j]));
}

/// Computes the scores of a tile. Each score is one chain of vectors, independent of the block of heads and keys it
/// falls into.
template <class S>
void score_tile(const Buffers& of, Index heads, const S* keys, Index step, Index n, Index d, float* scores) {
  for (Index h = 0; h < heads; h += 2) {
    const float* const q = of.q.data() + h * of.width;
    float* const score = scores + h * kKeys;
    const bool two = h + 1 < heads;
    Index j = 0;
    for (; j + 4 <= n; j += 4)
      (two ? &dots<2, 4, S> : &dots<1, 4, S>)(q, of.width, keys + j * step, step, d, score + j);
    for (; j < n; ++j) (two ? &dots<2, 1, S> : &dots<1, 1, S>)(q, of.width, keys + j * step, step, d, score + j);
  }
}

/// Heads [first, first + n) of the group that reads key-value head g.
template <class S>
void attend(const ops::AttentionDecodeArgs& args, Index b, Index g, Index first, Index n, Buffers& of) {
  const Index d = args.d, width = of.width, places = args.lengths(b) + 1;
  const auto k = head_rows<const S>(args.k_cache), v = head_rows<const S>(args.v_cache);
  const View<const S> q = args.q.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index h = 0; h < n; ++h) {
    pack_row(&q(b, first + h, 0), d, static_cast<float>(args.scale), of.q.data() + h * width);
    of.largest[h] = -INFINITY;
    of.total[h] = 0;
  }
  std::fill(of.sums.begin(), of.sums.end(), 0.0F);
  for (Index from = 0; from < places; from += kKeys) {
    const Index keys = std::min(kKeys, places - from);
    score_tile(of, n, k.at(b, from, g), k.per_position, keys, d, of.scores.data());
    for (Index h = 0; h < n; ++h)
      weigh(of.scores.data() + h * kKeys, keys, of.largest[h], of.total[h], of.sums.data() + h * width, d);
    const float* values = of.v.data();
    Index step = width;
    if constexpr (std::is_same_v<S, float>) {
      if (width == d) {
        values = v.at(b, from, g);
        step = v.per_position;
      }
    }
    if (values == of.v.data())
      for (Index j = 0; j < keys; ++j) pack_row(v.at(b, from + j, g), d, 1, of.v.data() + j * width);
    multiply<false>(n, d, keys, of.scores.data(), kKeys, values, step, of.sums.data(), width, true);
  }
  const FloatTag tag;
  for (Index h = 0; h < n; ++h) {
    const bool nothing = of.total[h] == 0;
    const auto factor = hn::Set(tag, nothing ? 0.0F : 1.0F / of.total[h]);
    for_each_vector(tag, d, [&](Index c, std::size_t count) {
      const auto mean = hn::Mul(hn::LoadU(tag, of.sums.data() + h * width + c), factor);
      store_first(tag, nothing ? hn::Zero(tag) : mean, &y(b, first + h, c), count);
    });
  }
}

template <class S>
void decode_all(const ops::AttentionDecodeArgs& args) {
  const Index group = args.heads / args.kv_heads;
  const View<const S> k = args.k.as<const S>(), v = args.v.as<const S>();
  const auto k_cache = head_rows<S>(args.k_cache), v_cache = head_rows<S>(args.v_cache);
  Buffers buffers(args.d);
  for (Index b = 0; b < args.batch; ++b)
    for (Index g = 0; g < args.kv_heads; ++g) {
      std::copy_n(&k(b, g, 0), args.d, k_cache.at(b, args.lengths(b), g));
      std::copy_n(&v(b, g, 0), args.d, v_cache.at(b, args.lengths(b), g));
      for (Index h = 0; h < group; h += kBlock)
        attend<S>(args, b, g, g * group + h, std::min(kBlock, group - h), buffers);
    }
}

void decode_tiles(const ops::AttentionDecodeArgs& args) {
  with_storage(args.q.dtype(), [&]<class S>(S) { decode_all<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace {

HWY_EXPORT(decode_tiles);

using ops::AttentionDecodeArgs;

/// The naive kernel's sums, 64 places at a time: up to 32 heads that share keys and values read both once; sums
/// rescaled where a maximum grows.
void highway(const AttentionDecodeArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(decode_tiles)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = {.functions = FunctionLibrary::highway, .online_tile = 64},
       .storage = storage,
       .summary = "online softmax by tiles of 64 places, shared keys and values read once, one thread",
       .run = &run_typed<AttentionDecodeArgs, &highway>,
       .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "attention_decode/cpu/highway"),
    add(DType::f16, "attention_decode/cpu/highway_f16"),
    add(DType::bf16, "attention_decode/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu
#endif
