// The CUDA kernels on cuda-host give the same bits in every order of threads; mutants give other bits or an error.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

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

/// A product or matrix-vector product of small odd integers: all sums are exact, so that every order of evaluation and
/// TF32 give the same bits.
struct Problem {
  std::vector<float> a, b, c;
  Call call;

  Problem(std::string_view op, Index m, Index k, Index n, unsigned seed) {
    if (op == "gemv") n = 1;
    a = integers(m * k, seed);
    b = integers(k * n, seed + 1);
    c.assign(static_cast<std::size_t>(m * n), -1.0f);
    const bool a_transposed = op == "matmul_tn", b_transposed = op == "matmul_nt";
    if (op == "gemv") {
      call.dims = {m, k};
      call.tensors = {tensor(a, Shape{m, k}), tensor(b, Shape{k}), tensor(c, Shape{m})};
    } else {
      call.dims = {m, k, n};
      call.tensors = {tensor(a, a_transposed ? Shape{k, m} : Shape{m, k}),
                      tensor(b, b_transposed ? Shape{n, k} : Shape{k, n}), tensor(c, Shape{m, n})};
    }
  }

  const std::vector<float>& run(std::string_view id) {
    const Kernel& k = kernel(id);
    k.run(call, device(Backend::cuda_host));
    return c;
  }

 private:
  static std::vector<float> integers(Index size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 32) * 2 - 31);
    return values;
  }
  static Tensor tensor(std::vector<float>& values, const Shape& shape) {
    return {.data = values.data(), .shape = shape, .strides = row_major_strides(shape)};
  }
};

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

TEST(Kernels, ProductsGiveTheSameBitsInEveryOrder) {
  int kernels_run = 0;
  for (const Kernel& k : kernels()) {
    if (k.backend != Backend::cuda_host || k.role != KernelRole::kernel) continue;
    if (!k.op.starts_with("matmul") && k.op != "gemv") continue;  // obligations cover other operations
    ++kernels_run;
    Problem problem(k.op, 37, 41, 35, 7);
    std::vector<float> first;
    for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
      cuda_host::set_seed(seed);
      const std::vector<float>& c = problem.run(k.id);
      if (seed == 0) first = c;
      EXPECT_TRUE(same_bits(c, first)) << k.id << " with seed " << seed;
      std::fill(problem.c.begin(), problem.c.end(), -1.0f);
    }
  }
  EXPECT_EQ(kernels_run, 12);
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
  const std::string_view op = kernel(right).op;
  int count = 0;
  for (int t = 0; t < tries; ++t) {
    Problem good(op, m, k, n, static_cast<unsigned>(t)), bad(op, m, k, n, static_cast<unsigned>(t));
    cuda_host::set_seed(static_cast<std::uint64_t>(t));
    try {
      count += same_bits(good.run(right), bad.run(mutant)) ? 0 : 1;
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
  }
}

TEST(Mutants, DivergenceAndMasksAreErrors) {
  const auto code_of = [](std::string_view id, Index m, Index k, Index n) -> std::string {
    Problem problem(kernel(id).op, m, k, n, 1);
    try {
      problem.run(id);
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

TEST(MutantsDeathTest, AccessesOutOfBoundsAreSeenByTheAddressSanitizer) {
#if defined(__SANITIZE_ADDRESS__)
  const auto run = [](std::string_view id, Index m, Index k, Index n) { Problem("matmul", m, k, n, 1).run(id); };
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
