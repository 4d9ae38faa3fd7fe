// The CUDA kernels on cuda-host give the same bits in every order of threads; mutants give other bits or an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/q4_k.hpp"
#include "kernels/storage.hpp"
#include "runtime/cuda_host/model.hpp"
#include "runtime/registry.hpp"

namespace assay {
namespace {

/// Number of thread orders: fiber switches are slow under the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
constexpr int kOrders = 5, kTries = 1;
#else
constexpr int kOrders = 50, kTries = 10;
#endif

/// A product or matrix-vector product of small odd integers, which every storage format holds: all sums are exact, so
/// that every order of evaluation, TF32 and tensor cores give the same bits.
struct Problem {
  using Bytes = std::vector<std::byte>;
  Bytes a, b, c;
  Call call;

  Problem(const Kernel& of, Index m, Index k, Index n, unsigned seed) {
    if (of.op == "gemv") n = 1;
    const DType out = of.op == "matmul_tn" ? DType::f32 : of.storage;
    a = integers(of.storage, m * k, seed);
    b = integers(of.storage, k * n, seed + 1);
    c.resize(static_cast<std::size_t>(m * n) * size_of(out));
    forget();
    const bool a_transposed = of.op == "matmul_tn", b_transposed = of.op == "matmul_nt";
    if (of.op == "gemv") {
      call.dims = {m, k};
      call.tensors = {tensor(of.storage, a, Shape{m, k}), tensor(of.storage, b, Shape{k}), tensor(out, c, Shape{m})};
    } else {
      call.dims = {m, k, n};
      call.tensors = {tensor(of.storage, a, a_transposed ? Shape{k, m} : Shape{m, k}),
                      tensor(of.storage, b, b_transposed ? Shape{n, k} : Shape{k, n}), tensor(out, c, Shape{m, n})};
    }
  }

  const Bytes& run(const Kernel& k) {
    k.run(call, device(Backend::cuda_host));
    return c;
  }
  void forget() { std::ranges::fill(c, std::byte{0xbf}); }

 private:
  static Bytes integers(DType dtype, Index size, unsigned seed) {
    std::mt19937 random(seed);
    Bytes values(static_cast<std::size_t>(size) * size_of(dtype));
    with_storage(dtype, [&]<class S>(S) {
      for (std::byte* at = values.data(); at < values.data() + values.size(); at += sizeof(S)) {
        const S value = narrow<S>(static_cast<float>(static_cast<int>(random() % 32) * 2 - 31));
        std::memcpy(at, &value, sizeof value);
      }
    });
    return values;
  }
  static Tensor tensor(DType dtype, Bytes& values, const Shape& shape) {
    return {dtype, values.data(), shape, row_major_strides(shape)};
  }
};

bool of_few_rows(const Kernel& kernel) { return kernel.id.find("/few_rows") != std::string_view::npos; }

TEST(Kernels, ProductsGiveTheSameBitsInEveryOrder) {
  int kernels_run = 0;
  for (const Kernel& k : kernels()) {
    if (k.backend != Backend::cuda_host || k.role != KernelRole::kernel) continue;
    if (!k.op.starts_with("matmul") && k.op != "gemv") continue;  // obligations cover other operations
    ++kernels_run;
    Index m = 37, terms = 41, n = 35;
    // Rows of whole boxes of 16 bytes, where a kernel takes no others.
    if (k.id.find("/wgmma") != std::string_view::npos) m = 40, terms = 104, n = 136;
    if (of_few_rows(k)) m = 13, terms = 1800;
    Problem problem(k, m, terms, n, 7);
    Problem::Bytes first;
    for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
      cuda_host::set_seed(seed);
      const Problem::Bytes& c = problem.run(k);
      if (seed == 0) first = c;
      EXPECT_TRUE(c == first) << k.id << " with seed " << seed;
      problem.forget();
    }
  }
  EXPECT_EQ(kernels_run, 41);
}

/// Blocks of 64, 32 and 16 columns: cuda-host has four multiprocessors. Terms 5 and 1497 cancel, so that sums depend on
/// the order of their terms.
TEST(Kernels, ProductsOfFewRowsGiveTheSameBitsInBlocksOfEveryWidthAndBesideAnyRows) {
  const Index m = 13, k = 1500, n = 330;
  int kernels_run = 0;
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != Backend::cuda_host || kernel.role != KernelRole::kernel) continue;
    if (kernel.op != "matmul_nt" || !of_few_rows(kernel)) continue;
    ++kernels_run;
    EXPECT_TRUE(refuses(kernel, Problem(kernel, 17, 8, 8, 1).call)) << kernel.id;
    with_storage(kernel.storage, [&]<class S>(S) {
      std::mt19937 random(3);
      std::normal_distribution<float> normal;
      std::vector<S> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(n * k));
      for (std::vector<S>* matrix : {&a, &b}) {
        for (std::size_t i = 0; i < matrix->size(); ++i) {
          const std::size_t term = i % static_cast<std::size_t>(k);
          const float large = matrix == &b ? 1024 : term == 5 ? 8192 : -8192;
          (*matrix)[i] = narrow<S>(term == 5 || term == 1497 ? large : normal(random));
        }
      }
      std::vector<S> wide;
      for (const auto& [rows, columns] :
           std::vector<std::pair<Index, Index>>{{m, n}, {m, 100}, {m, 23}, {9, n}, {1, 100}}) {
        std::vector<S> c(static_cast<std::size_t>(m * n));
        const auto tensor = [](std::vector<S>& of, Index height, Index width, Index ld) {
          return Tensor{dtype_of<S>, of.data(), Shape{height, width}, Shape{ld, 1}};
        };
        cuda_host::set_seed(static_cast<std::uint64_t>(columns));
        kernel.run({.dims = {rows, k, columns},
                    .params = {},
                    .tensors = {tensor(a, rows, k, k), tensor(b, columns, k, k), tensor(c, rows, columns, n)}},
                   device(Backend::cuda_host));
        if (wide.empty()) wide = c;
        for (Index at = 0; at < rows * n; ++at) {
          if (at % n >= columns) continue;
          const auto i = static_cast<std::size_t>(at);
          EXPECT_EQ(std::memcmp(&c[i], &wide[i], sizeof(S)), 0)
              << kernel.id << " at " << at << " of " << rows << " rows and " << columns << " columns";
        }
      }
    });
  }
  EXPECT_EQ(kernels_run, 3);
}

/// Campaigns have dense factors for these kernels.
TEST(Kernels, ProductsByBoxesTakeRowsWithGaps) {
  int kernels_run = 0;
  for (const Kernel& k : kernels()) {
    if (k.backend != Backend::cuda_host || k.role != KernelRole::kernel) continue;
    if (!k.op.starts_with("matmul") || k.id.find("/wgmma") == std::string_view::npos) continue;
    ++kernels_run;
    Problem dense(k, 136, 72, 264, 7);
    const Problem::Bytes wanted = dense.run(k);
    dense.forget();
    std::vector<Problem::Bytes> pitched(2);
    for (std::size_t t = 0; t < 2; ++t) {
      Tensor& tensor = dense.call.tensors[t];
      const std::size_t element = size_of(k.storage), row = static_cast<std::size_t>(tensor.shape[1]) * element;
      const std::size_t pitch = row + 16 * (t + 1);
      pitched[t].assign(static_cast<std::size_t>(tensor.shape[0]) * pitch, std::byte{0xff});
      for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.shape[0]); ++i)
        std::memcpy(pitched[t].data() + i * pitch, static_cast<const std::byte*>(tensor.data) + i * row, row);
      tensor.data = pitched[t].data();
      tensor.strides = Shape{static_cast<Index>(pitch / element), 1};
    }
    EXPECT_FALSE(refuses(k, dense.call)) << k.id;
    EXPECT_TRUE(dense.run(k) == wanted) << k.id;
    dense.call.tensors[0].strides = Shape{dense.call.tensors[0].strides[0] - 1, 1};
    EXPECT_TRUE(refuses(k, dense.call).value_or("").starts_with("the left factor must")) << k.id;
  }
  EXPECT_EQ(kernels_run, 8);
}

TEST(Kernels, Tf32IsForCallersWhoNameIt) {
  for (const Kernel& k : kernels()) {
    if (k.role != KernelRole::kernel || k.arithmetic.inputs != Format::tf32) continue;
    const auto before = [&](const Kernel& other) {
      return other.op == k.op && other.backend == k.backend && other.storage == k.storage &&
             other.priority > k.priority && other.arithmetic.inputs == Format::f32;
    };
    EXPECT_TRUE(std::ranges::any_of(kernels(), before)) << k.id;
  }
}

/// Rows of tensors by position, then head; or by head, then position, with 16 bytes between rows.
TEST(Kernels, AttentionByBoxesTakesHeadsInAnyOrder) {
  const Index batch = 2, rows = 140, kv_heads = 2, heads = 4, d = 72, padded = d + 8;
  const auto tensor = [](DType dtype, std::vector<std::byte>& bytes, const Shape& shape, const Shape& strides) {
    return Tensor{dtype, bytes.data(), shape, strides};
  };
  int kernels_run = 0;
  for (const Kernel& k : kernels()) {
    if (k.backend != Backend::cuda_host || k.role != KernelRole::kernel) continue;
    const bool backward = k.op == "attention_backward";
    if ((k.op != "attention" && !backward) || k.id.find("/wgmma") == std::string_view::npos) continue;
    ++kernels_run;
    std::mt19937 random(5);
    const std::vector<std::int32_t> lengths{140, 131}, starts{0, -3};
    const std::size_t element = size_of(k.storage);
    const auto to_bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * element; };
    std::vector<std::vector<std::byte>> dense, apart, outputs;
    // q, k, v, y; and dy, dq, dk, dv.
    std::vector<Index> of_tensor{heads, kv_heads, kv_heads, heads};
    if (backward) of_tensor.insert(of_tensor.end(), {heads, heads, kv_heads, kv_heads});
    for (const Index h : of_tensor) {
      auto& values = dense.emplace_back(to_bytes(batch * rows * h * d));
      apart.emplace_back(to_bytes(batch * h * rows * padded), std::byte{0xff});
      // Numbers between 1/4 and 4 of either sign: the first two bytes of one are a number of bf16.
      for (std::size_t e = 0; e < values.size(); e += element) {
        const std::uint32_t below = static_cast<std::uint32_t>(random()) & 0xffffU;
        const auto above =
            static_cast<std::uint16_t>((k.storage == DType::f16 ? 0x3400U : 0x3e80U) +
                                       random() % (k.storage == DType::f16 ? 0x1000U : 0x0200U) + (random() % 2 << 15));
        const std::uint32_t bits = element == 4 ? std::uint32_t{above} << 16 | below : above;
        std::memcpy(values.data() + e, &bits, element);
      }
      for (Index b = 0; b < batch; ++b)
        for (Index i = 0; i < rows; ++i)
          for (Index head = 0; head < h; ++head)
            std::memcpy(apart.back().data() + to_bytes(((b * h + head) * rows + i) * padded),
                        values.data() + to_bytes(((b * rows + i) * h + head) * d), to_bytes(d));
    }
    for (const bool by_position : {true, false}) {
      auto& from = by_position ? dense : apart;
      Call call{.dims = {batch, rows, rows, kv_heads, heads, d}, .params = {0.125, 1}, .tensors = {}};
      std::vector<float> logsumexp(static_cast<std::size_t>(batch * heads * rows), 8.0F);
      const auto of_heads = [&](std::size_t t) {
        const Index h = of_tensor[t];
        return tensor(
            k.storage, from[t], Shape{batch, rows, h, d},
            by_position ? Shape{rows * h * d, h * d, d, 1} : Shape{h * rows * padded, padded, rows * padded, 1});
      };
      for (std::size_t t = 0; t < 3; ++t) call.tensors.push_back(of_heads(t));
      for (const auto* ints : {&lengths, &starts})
        call.tensors.push_back({DType::i32, const_cast<std::int32_t*>(ints->data()), Shape{batch}, Shape{1}});
      call.tensors.push_back(of_heads(3));
      call.tensors.push_back(
          {DType::f32, logsumexp.data(), Shape{batch, heads, rows}, row_major_strides(Shape{batch, heads, rows})});
      for (std::size_t t = 4; t < of_tensor.size(); ++t) call.tensors.push_back(of_heads(t));
      ASSERT_FALSE(refuses(k, call)) << k.id;
      cuda_host::set_seed(by_position ? 1 : 2);
      k.run(call, device(Backend::cuda_host));
      auto& got = outputs.emplace_back();
      for (std::size_t t = backward ? 5 : 3; t < of_tensor.size(); ++t)
        for (Index b = 0, n = of_tensor[t]; b < batch; ++b)
          for (Index i = 0; i < rows; ++i)
            for (Index h = 0; h < n; ++h) {
              const Index at = by_position ? ((b * rows + i) * n + h) * d : ((b * n + h) * rows + i) * padded;
              const std::byte* const row = from[t].data() + to_bytes(at);
              got.insert(got.end(), row, row + to_bytes(d));
            }
      const auto* bytes = reinterpret_cast<const std::byte*>(logsumexp.data());
      got.insert(got.end(), bytes, bytes + logsumexp.size() * sizeof(float));
      call.tensors[1].strides = Shape{1, call.tensors[1].strides[1] - 1, 1, 1};
      EXPECT_TRUE(refuses(k, call).value_or("").starts_with("k must start")) << k.id;
    }
    EXPECT_TRUE(outputs[0] == outputs[1]) << k.id;
  }
  EXPECT_EQ(kernels_run, 6);
}

TEST(Kernels, CopiesGiveTheSameBitsInEveryOrder) {
  const Index m = 45, n = 70;
  for (const Kernel& k : kernels()) {
    if (k.backend != Backend::cuda_host || k.role != KernelRole::kernel) continue;
    if (k.op != "transpose" && k.op != "tensor_layout") continue;
    std::vector<std::uint32_t> src(static_cast<std::size_t>(m * n)), dst(src.size());
    std::mt19937 random(3);
    for (std::uint32_t& bits : src) bits = static_cast<std::uint32_t>(random());  // including NaNs with payloads
    const bool exchanged = k.op == "transpose";
    const Call call{.dims = {m, n},
                    .params = {},
                    .tensors = {{.data = src.data(), .shape = Shape{m, n}, .strides = Shape{n, 1}},
                                {.data = dst.data(),
                                 .shape = exchanged ? Shape{n, m} : Shape{m, n},
                                 .strides = exchanged ? Shape{m, 1} : Shape{n, 1}}}};
    for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
      cuda_host::set_seed(seed);
      std::fill(dst.begin(), dst.end(), 0);
      k.run(call, device(Backend::cuda_host));
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j)
          ASSERT_EQ(dst[static_cast<std::size_t>(exchanged ? j * m + i : i * n + j)],
                    src[static_cast<std::size_t>(i * n + j)])
              << k.id;
    }
  }
}

/// Returns the number of runs of the mutant, of `tries`, with bits other than the correct kernel's, or with an error.
int caught(std::string_view mutant, std::string_view right, Index m, Index k, Index n, int tries) {
  const Kernel& correct = kernel(right);
  int count = 0;
  for (int t = 0; t < tries; ++t) {
    Problem good(correct, m, k, n, static_cast<unsigned>(t)), bad(correct, m, k, n, static_cast<unsigned>(t));
    cuda_host::set_seed(static_cast<std::uint64_t>(t));
    try {
      count += good.run(correct) == bad.run(kernel(mutant)) ? 0 : 1;
    } catch (const DeviceError&) {
      ++count;
    }
  }
  return count;
}

TEST(Mutants, ARemovedBarrierShowsAtEverySize) {
  for (const Index size : {17, 31, 32, 33, 64, 100}) {
    const auto every_time = [&](std::string_view mutant, std::string_view right) {
      EXPECT_EQ(caught(mutant, right, size, size, size, kTries), kTries) << mutant << " at " << size;
    };
    every_time("mutant/cuda-host/matmul/no_barrier_after_store", "matmul/cuda-host/naive16");
    every_time("mutant/cuda-host/matmul/no_barrier_after_use", "matmul/cuda-host/naive16");
    every_time("mutant/cuda-host/matmul/no_barrier_between_stages", "matmul/cuda-host/register_tiled");
    every_time("mutant/cuda-host/matmul/stage_not_swapped", "matmul/cuda-host/register_tiled");
    every_time("mutant/cuda-host/matmul/no_barrier_before_reuse", "matmul/cuda-host/tf32_wmma");
    every_time("mutant/cuda-host/matmul/no_wait", "matmul/cuda-host/tf32_wmma");
    every_time("mutant/cuda-host/matmul/mma_half_overwritten", "matmul/cuda-host/mma_f16");
  }
  for (const Index size : {8, 64, 136})
    for (const std::string_view fault : {"wgmma_no_proxy_fence", "wgmma_no_fence", "wgmma_no_wait_for_products"})
      EXPECT_EQ(caught("mutant/cuda-host/matmul_nt/" + std::string(fault), "matmul_nt/cuda-host/wgmma_bf16", size, size,
                       size, kTries),
                kTries)
          << fault << " at " << size;
  for (const Index columns : {16, 100, 330})
    for (const auto& [fault, right] : {std::pair<std::string_view, std::string_view>{"no_wait", "bf16"},
                                       {"waits_a_round_short", "f16"},
                                       {"copies_a_round_late", "bf16"},
                                       {"one_stage_fewer", "f16"},
                                       {"no_barrier_before_the_sum", "bf16"}})
      EXPECT_EQ(caught("mutant/cuda-host/matmul_nt/few_rows_" + std::string(fault),
                       "matmul_nt/cuda-host/few_rows_" + std::string(right), 16, 1600, columns, kTries),
                kTries)
          << fault << " at " << columns;
}

TEST(Mutants, DivergenceAndMasksAreErrors) {
  const auto code_of = [](std::string_view id, Index m, Index k, Index n) -> std::string {
    Problem problem(kernel(id), m, k, n, 1);
    try {
      problem.run(kernel(id));
    } catch (const DeviceError& error) {
      return error.code;
    }
    return "none";
  };
  EXPECT_EQ(code_of("mutant/cuda-host/matmul/return_before_barrier", 17, 5, 16), "barrier divergence");
  EXPECT_EQ(code_of("mutant/cuda-host/matmul/return_before_barrier", 32, 5, 16), "none");
  EXPECT_EQ(code_of("mutant/cuda-host/gemv/mask_names_absent_lanes", 3, 17, 1), "warp mask");
  EXPECT_EQ(code_of("mutant/cuda-host/gemv/mask_names_absent_lanes", 3, 64, 1), "none");
}

/// Returns a super-block of weights d q, sc = 1, m = 0.
std::vector<std::uint8_t> block_of(float d, const std::vector<unsigned>& codes) {
  std::vector<std::uint8_t> block(static_cast<std::size_t>(q4_k::kBytes));
  const Half step = to_half(d);
  std::memcpy(block.data(), &step, sizeof step);
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) q4_k::pack(block.data() + q4_k::kPacked, b, {1, 0});
  for (std::size_t i = 0; i < codes.size(); ++i)  // of the first sub-block
    block[static_cast<std::size_t>(q4_k::kCodes) + i] = static_cast<std::uint8_t>(codes[i]);
  return block;
}

/// Returns y of one row of these weights, by a kernel of q4_k_gemv.
float of_row(const Kernel& of, float d, const std::vector<unsigned>& codes, std::vector<float> x) {
  std::vector<std::uint8_t> block = block_of(d, codes);
  const auto k = static_cast<Index>(x.size());
  float y = 7;
  of.run({{1, k},
          {},
          {{DType::u8, block.data(), Shape{1, q4_k::kBytes}, Shape{q4_k::kBytes, 1}},
           {DType::f32, x.data(), Shape{k}, Shape{1}},
           {DType::f32, &y, Shape{1}, Shape{1}}}},
         device(Backend::cuda_host));
  return y;
}

/// Campaigns seldom draw a large x whose weight is 0, or an infinite d whose codes are all positive.
TEST(Q4KGemv, HoldsXOfAnyRangeAndFollowsAnInfiniteStep) {
  for (const Kernel* of : kernels_of("q4_k_gemv")) {
    if (of->backend != Backend::cuda_host) continue;
    EXPECT_EQ(of_row(*of, 1, {0, 3, 2}, {1e20F, 1.25F, -0x1p-30F}), 3 * 1.25F - 0x1p-29F) << of->id;
    EXPECT_EQ(of_row(*of, 1, {0, 1}, {0x1p127F, 0x1p-149F}), 0x1p-149F) << of->id;
    EXPECT_EQ(of_row(*of, 2, {1, 1}, {0x1p-149F, 0x1p-148F}), 0x1.8p-147F) << of->id;
    EXPECT_EQ(of_row(*of, INFINITY, {1, 2}, {1, 3}), INFINITY) << of->id;
    EXPECT_TRUE(std::isnan(of_row(*of, INFINITY, {1, 2}, {1, -3}))) << of->id;
    EXPECT_TRUE(std::isnan(of_row(*of, 1, {1, 2}, {NAN, 3}))) << of->id;
    EXPECT_EQ(of_row(*of, 1, {1, 2}, {INFINITY, 3}), INFINITY) << of->id;
  }
}

/// The same of q4_k_matmul_nt, of the last of `rows` rows of X, the others of which are 1.
float of_last_row(const Kernel& of, Index rows, float d, const std::vector<unsigned>& codes,
                  const std::vector<float>& last) {
  std::vector<std::uint8_t> block = block_of(d, codes);
  const auto k = static_cast<Index>(last.size());
  std::vector<float> x(static_cast<std::size_t>((rows - 1) * k), 1.0F), y(static_cast<std::size_t>(rows), 7.0F);
  x.insert(x.end(), last.begin(), last.end());
  of.run({{rows, k, 1},
          {},
          {{DType::f32, x.data(), Shape{rows, k}, Shape{k, 1}},
           {DType::u8, block.data(), Shape{1, q4_k::kBytes}, Shape{q4_k::kBytes, 1}},
           {DType::f32, y.data(), Shape{rows, 1}, Shape{1, 1}}}},
         device(Backend::cuda_host));
  if (rows > 1 && std::isfinite(d)) {
    EXPECT_EQ(y[0], d * static_cast<float>(std::accumulate(codes.begin(), codes.end(), 0U))) << "beside it";
  }
  return y.back();
}

TEST(Q4KMatmulNt, HoldsXOfAnyRangeAndFollowsAnInfiniteStep) {
  for (const Kernel* of : kernels_of("q4_k_matmul_nt"))
    for (const Index m : {1, 2, 9, 16, 17, 65}) {
      if (of->backend != Backend::cuda_host) continue;
      EXPECT_EQ(of_last_row(*of, m, 1, {0, 3, 2}, {1e20F, 1.25F, -0x1p-20F}), 3 * 1.25F - 0x1p-19F) << of->id << m;
      EXPECT_EQ(of_last_row(*of, m, 1, {0, 1}, {0x1p127F, 0x1p-149F}), 0x1p-149F) << of->id << m;
      EXPECT_EQ(of_last_row(*of, m, 2, {1, 1}, {0x1p-149F, 0x1p-148F}), 0x1.8p-147F) << of->id << m;
      EXPECT_EQ(of_last_row(*of, m, INFINITY, {1, 2}, {1, 3}), INFINITY) << of->id << m;
      // Inf - Inf element by element, -Inf where sums of codes times x are scaled.
      EXPECT_FALSE(std::isfinite(of_last_row(*of, m, INFINITY, {1, 2}, {1, -3}))) << of->id << m;
      EXPECT_TRUE(std::isnan(of_last_row(*of, m, 1, {1, 2}, {NAN, 3}))) << of->id << m;
      EXPECT_EQ(of_last_row(*of, m, 1, {1, 2}, {INFINITY, 3}), INFINITY) << of->id << m;
    }
}

TEST(MutantsDeathTest, AccessesOutOfBoundsAreSeenByTheAddressSanitizer) {
#if defined(__SANITIZE_ADDRESS__)
  const auto run = [](std::string_view id, Index m, Index k, Index n) {
    Problem(kernel(id), m, k, n, 1).run(kernel(id));
  };
  EXPECT_DEATH(run("mutant/cuda-host/matmul/tile_off_by_one", 16, 16, 16),
               // The latter from the undefined-behaviour sanitizer.
               "global-buffer-overflow|index [0-9]+ out of bounds");
  EXPECT_DEATH(run("mutant/cuda-host/matmul/store_not_predicated", 17, 16, 17), "heap-buffer-overflow");
  EXPECT_DEATH(run("mutant/cuda-host/matmul/k_not_predicated", 16, 17, 16), "heap-buffer-overflow");
#else
  GTEST_SKIP() << "needs the address sanitizer: preset asan-ubsan";
#endif
}

}  // namespace
}  // namespace assay
