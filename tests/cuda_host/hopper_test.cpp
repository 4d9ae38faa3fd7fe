// Asynchronous instructions of compute capability 9.0 in software: barriers that count bytes, copies of boxes, products
// of warpgroups.
#include "kernels/cuda/hopper.cuh"

#include <bit>
#include <functional>
#include <set>
#include <vector>

#include "kernels/cuda/mma.cuh"
#include "tests/cuda_host/host.hpp"

namespace assay {
namespace {

namespace hopper = cuda_host_kernels::hopper;
using hopper::Barrier;
using hopper::TensorMap;

template <class... P, class... A>
void run_asynchronous(void (*kernel)(P...), const LaunchShape& shape, A&&... args) {
  hopper::launch_asynchronous(kernel, shape, device(Backend::cuda_host), std::forward<A>(args)...);
}

template <class S>
TensorMap map_of(const std::vector<S>& matrix, Index rows, Index columns, unsigned box_rows) {
  return hopper::tensor_map(matrix.data(), rows, columns, columns, box_rows, device(Backend::cuda_host));
}

/// Thread 32 hands `rounds` numbers to the first warp, one at a time.
__global__ void hand_over(int* out, int rounds) {
  ASSAY_SHARED(Barrier, full, [1]);
  ASSAY_SHARED(Barrier, empty, [1]);
  ASSAY_SHARED(int, held, [1]);
  if (threadIdx.x == 0) {
    hopper::initialize(full[0], 1);
    hopper::initialize(empty[0], 32);
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const auto parity = static_cast<unsigned>(round) % 2;
    if (threadIdx.x == 32) {
      hopper::wait(empty[0], parity ^ 1);
      held[0] = 3 * round;
      hopper::arrive(full[0]);
    }
    if (threadIdx.x < 32) {
      hopper::wait(full[0], parity);
      out[round * 32 + static_cast<int>(threadIdx.x)] = held[0];
      hopper::arrive(empty[0]);
    }
  }
}

TEST(HopperBarrier, HandsOverOnePhaseAfterTheOther) {
  constexpr int kRounds = 5;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_host::set_seed(seed);
    std::vector<int> out(32 * kRounds);
    run_asynchronous(&hand_over, {dim3(2), dim3(64)}, out.data(), kRounds);
    for (int i = 0; i < 32 * kRounds; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], i / 32 * 3);
  }
}

enum class Misuse { never_arrives, arrives_twice, not_initialized, nobody_left };

__global__ void misuse(Misuse kind) {
  ASSAY_SHARED(Barrier, barrier, [2]);
  if (threadIdx.x == 0) {
    hopper::initialize(barrier[0], 1);
    hopper::initialize(barrier[1], kind == Misuse::arrives_twice ? 1 : 2);
  }
  __syncthreads();
  if (kind == Misuse::never_arrives) {
    if (threadIdx.x == 1) hopper::arrive(barrier[1]);
    hopper::wait(barrier[1], 0);
  }
  if (kind == Misuse::nobody_left && threadIdx.x < 32) hopper::wait(barrier[0], 0);
  if (kind == Misuse::arrives_twice && threadIdx.x == 0) hopper::arrive_expecting(barrier[1], 16);
  if (kind == Misuse::arrives_twice && threadIdx.x == 0) hopper::arrive(barrier[1]);
}
__global__ void arrive_at_garbage() {
  ASSAY_SHARED(Barrier, barrier, [1]);
  hopper::arrive(barrier[0]);
}

TEST(HopperBarrier, StatesWaitsThatCannotEnd) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_host::set_seed(seed);
    expect_error(
        [] {
          run_asynchronous(&misuse, {dim3(1), dim3(64)}, Misuse::never_arrives);
        },
        "deadlock",
        {"parity 0 of barrier 1 of those initialized (count 2, hopper_test.cpp:", "phase 0 lacks 1 arrivals"});
    // Whichever thread comes last, the error is the same.
    expect_error(
        [] {
          run_asynchronous(&misuse, {dim3(1), dim3(64)}, Misuse::nobody_left);
        },
        "deadlock", {"barrier 0 of those"});
  }
  expect_error(
      [] {
        run_asynchronous(&misuse, {dim3(1), dim3(32)}, Misuse::arrives_twice);
      },
      "mbarrier", {"phase 0 of barrier 1", "waits for 16 bytes"});
  expect_error([] { run_asynchronous(&arrive_at_garbage, {dim3(1), dim3(32)}); }, "mbarrier", {"initialized"});
}

/// Half of the threads pass a named barrier before the other half exists for it.
__global__ void meet_by_halves(int* order, int* next, unsigned count) {
  const auto half = threadIdx.x / 64;
  ASSAY_SHARED(int, sum, [2]);
  if (threadIdx.x % 64 == 0) sum[half] = 0;
  hopper::named_barrier(1 + half, count);
  atomicAdd(&sum[half], 1);
  hopper::named_barrier(1 + half, count);
  order[threadIdx.x] = sum[half];
  atomicAdd(next, 1);
}

TEST(HopperBarrier, NamedBarriersJoinSomeThreads) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_host::set_seed(seed);
    std::vector<int> order(128);
    int next = 0;
    run_asynchronous(&meet_by_halves, {dim3(1), dim3(128)}, order.data(), &next, 64U);
    EXPECT_EQ(order, std::vector<int>(128, 64));
  }
  int next = 0;
  std::vector<int> order(128);
  expect_error(
      [&] {
        run_asynchronous(&meet_by_halves, {dim3(1), dim3(128)}, order.data(), &next, 96U);
      },
      "deadlock", {"64 of 96 threads wait at named barrier"});
}

/// The second warp gives the first its turn, `rounds` times.
__global__ void take_turns(int* turns, int rounds, bool gives) {
  const bool first = threadIdx.x < 32;
  ASSAY_SHARED(int, given, [1]);
  if (threadIdx.x == 0) given[0] = 0;
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    if (!first && threadIdx.x == 32) given[0] = round + 1;
    if (!first) __syncwarp();
    if (first) hopper::named_barrier(1, 64);
    else if (gives) hopper::arrive_at_named_barrier(1, 64);
    if (first && threadIdx.x == 0) turns[round] = given[0];
    hopper::named_barrier(2, 64);
  }
}

TEST(HopperBarrier, ArrivalsDoNotWait) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_host::set_seed(seed);
    std::vector<int> turns(4);
    run_asynchronous(&take_turns, {dim3(1), dim3(64)}, turns.data(), 4, true);
    EXPECT_EQ(turns, (std::vector<int>{1, 2, 3, 4}));
  }
  std::vector<int> turns(4);
  expect_error(
      [&] {
        run_asynchronous(&take_turns, {dim3(1), dim3(64)}, turns.data(), 4, false);
      },
      "deadlock", {"32 of 64 threads wait at named barrier"});
}

struct Copied {
  int row, column;
  unsigned expected;
  bool waits, fences;
};

/// out: the box as it lies in shared memory.
__global__ void copy_once(const TensorMap map, Copied how, std::uint16_t* out) {
  ASSAY_SHARED(Barrier, full, [1]);
  unsigned char* const box = hopper::boxes_of_block();
  if (threadIdx.x == 0) {
    hopper::initialize(full[0], 1);
    if (how.fences) hopper::fence_proxy_async();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_expecting(full[0], how.expected);
    hopper::copy_box(box, map, full[0], how.column, how.row);
  }
  if (how.waits) hopper::wait(full[0], 0);
  if (threadIdx.x == 0)
    for (int i = 0; i < 8 * 64; ++i) out[i] = reinterpret_cast<std::uint16_t*>(box)[i];
  __syncthreads();
  hopper::wait(full[0], 0);
}

constexpr unsigned kBox = 8 * 128;
const LaunchShape kCopying{dim3(1), dim3(64), kBox + hopper::kSwizzleBytes};

TEST(HopperCopy, SwizzlesABoxAndFillsWithZeros) {
  constexpr int kRows = 11, kColumns = 72;
  std::vector<BFloat16> matrix(kRows * kColumns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i].bits = static_cast<std::uint16_t>(i + 1);
  const TensorMap map = map_of(matrix, kRows, kColumns, 8);
  for (const auto& [row0, column0] : {std::pair{0, 0}, {2, 8}, {6, 16}, {-3, -8}, {0, 64}, {20, 0}})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      cuda_host::set_seed(seed);
      std::vector<std::uint16_t> out(8 * 64);
      run_asynchronous(&copy_once, kCopying, map, Copied{row0, column0, kBox, true, true}, out.data());
      for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 64; ++c) {
          const int row = row0 + r, column = column0 + c;
          const bool inside = row >= 0 && row < kRows && column >= 0 && column < kColumns;
          // Chunk c / 8 of row r lies at the place of chunk c / 8 ^ r.
          ASSERT_EQ(out[static_cast<std::size_t>(r * 64 + (c / 8 ^ r) * 8 + c % 8)],
                    inside ? row * kColumns + column + 1 : 0)
              << row0 << ", " << column0 << ": " << r << ", " << c;
        }
    }
}

/// out: the first element of the box at each (third, fourth) of -1 .. 2.
__global__ void copy_matrices(const TensorMap map, std::uint16_t* out) {
  ASSAY_SHARED(Barrier, full, [1]);
  unsigned char* const box = hopper::boxes_of_block();
  if (threadIdx.x > 0) return;
  hopper::initialize(full[0], 1);
  hopper::fence_proxy_async();
  for (int n = 0; n < 16; ++n) {
    hopper::arrive_expecting(full[0], kBox);
    hopper::copy_box(box, map, full[0], 0, 1, n % 4 - 1, n / 4 - 1);
    hopper::wait(full[0], static_cast<unsigned>(n) % 2);
    out[n] = *reinterpret_cast<std::uint16_t*>(box);
  }
}

TEST(HopperCopy, TakesAMatrixOfFourAxes) {
  // [fourth][row][third][column], as heads lie.
  constexpr Index kThird = 2, kFourth = 2, kRows = 3, kColumns = 8;
  std::vector<BFloat16> tensor(kThird * kFourth * kRows * kColumns);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i].bits = static_cast<std::uint16_t>(i + 1);
  const TensorMap map = hopper::tensor_map<BFloat16, 4>(tensor.data(), {kColumns, kRows, kThird, kFourth},
                                                        {kThird * kColumns, kColumns, kRows * kThird * kColumns}, 8,
                                                        device(Backend::cuda_host));
  std::vector<std::uint16_t> out(16);
  run_asynchronous(&copy_matrices, kCopying, map, out.data());
  for (int n = 0; n < 16; ++n) {
    const Index third = n % 4 - 1, fourth = n / 4 - 1;
    const bool inside = third >= 0 && third < kThird && fourth >= 0 && fourth < kFourth;
    EXPECT_EQ(out[static_cast<std::size_t>(n)], inside ? ((fourth * kRows + 1) * kThird + third) * kColumns + 1 : 0)
        << n;
  }
}

TEST(HopperCopy, TakesNoTensorThatTheDriverRefuses) {
  const std::vector<BFloat16> matrix(8 * 64 + 1);
  const auto map = [&](std::size_t first, Index rows, Index step, unsigned box_rows) {
    return hopper::tensor_map(matrix.data() + first, rows, Index{8}, step, box_rows, device(Backend::cuda_host));
  };
  const auto refused = [&](auto call, const char* why) { expect_error(call, "cudaErrorInvalidValue", {why}); };
  EXPECT_NO_THROW(map(0, 8, 64, 256));
  EXPECT_NO_THROW(map(0, 1, 8, 8));
  refused([&] { map(0, 1, 2, 8); }, "steps of 4 bytes");
  refused([&] { map(0, 8, Index{1} << 39, 8); }, "below 2^40");
  refused([&] { map(1, 8, 64, 8); }, "a multiple of 16 bytes");
  refused([&] { map(0, (Index{1} << 32) + 1, 64, 8); }, "1 to 2^32");
  refused([&] { map(0, 8, 64, 257); }, "257 rows");
}

TEST(HopperCopy, ArrivesWhenItIsDrawn) {
  const std::vector<BFloat16> matrix(8 * 64, BFloat16{0x1234});
  const TensorMap map = map_of(matrix, 8, 64, 8);
  std::set<bool> arrived;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    cuda_host::set_seed(seed);
    std::vector<std::uint16_t> out(8 * 64);
    run_asynchronous(&copy_once, kCopying, map, Copied{0, 0, kBox, false, true}, out.data());
    arrived.insert(out == std::vector<std::uint16_t>(8 * 64, 0x1234));
  }
  EXPECT_EQ(arrived.size(), 2U);
}

TEST(HopperCopy, StatesWrongCountsAndMissingFences) {
  const std::vector<BFloat16> matrix(8 * 64);
  const TensorMap map = map_of(matrix, 8, 64, 8);
  std::vector<std::uint16_t> out(8 * 64);
  expect_error(
      [&] {
        run_asynchronous(&copy_once, kCopying, map, Copied{0, 0, kBox + 16, true, true}, out.data());
      },
      "deadlock", {"phase 0 lacks 0 arrivals and 16 bytes"});
  expect_error(
      [&] {
        run_asynchronous(&copy_once, kCopying, map, Copied{0, 0, kBox, true, false}, out.data());
      },
      "mbarrier", {"fence.proxy.async"});
  expect_error(
      [&] {
        run_asynchronous(&copy_once, {dim3(1), dim3(64), kBox - 16}, map, Copied{0, 0, kBox, true, true}, out.data());
      },
      "illegal address");
}

enum class Slip { none, no_wait, no_commit, no_fence, no_second_fence, overwritten, stored, fenced, exits, lanes };

/// Terms of a row of a box.
template <class S>
constexpr int kTerms = hopper::kRowBytes / sizeof(S);

/// C = op(A) op(B) for 64 rows, 2 count columns and kTerms terms.
template <class S, bool a_transposed, bool b_transposed, bool in_registers, int count>
__global__ void multiply(const TensorMap a_map, const TensorMap b_map, float* c, Slip slip) {
  constexpr int kColumns = 2 * count, kBoxBytes = 64 * hopper::kRowBytes;
  ASSAY_SHARED(Barrier, full, [2]);
  unsigned char* const a = hopper::boxes_of_block();
  unsigned char* const b = a + kBoxBytes;
  if (threadIdx.x == 0) {
    hopper::initialize(full[0], 1);
    hopper::initialize(full[1], 1);
    hopper::fence_proxy_async();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_expecting(full[0], kBoxBytes * (1 + kColumns / 64));
    hopper::copy_box(a, a_map, full[0], 0, 0);
    for (int j = 0; j < kColumns; j += 64)
      hopper::copy_box(b + j / 64 * kBoxBytes, b_map, full[0], b_transposed ? j : 0, b_transposed ? 0 : j);
  }
  hopper::wait(full[0], 0);
  float sums[count] = {};
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  unsigned held[4][4];                                          // K-major only
  constexpr int kHeld = 4 / sizeof(S), kDepth = kTerms<S> / 4;  // elements of a register, terms of a product
  for (int q = 0; in_registers && q < kTerms<S>; q += kDepth)
    for (int r = 0; r < 4; ++r) {
      const int i = row + r % 2 * 8, from = (q + (r / 2 * 4 + lane % 4) * kHeld) * static_cast<int>(sizeof(S));
      std::memcpy(&held[q / kDepth][r], a + i * hopper::kRowBytes + (from / 16 ^ i % 8) * 16 + from % 16, 4);
    }
  if (slip == Slip::stored || slip == Slip::fenced) a[threadIdx.x * 16 + 1] ^= 0x80;
  if (slip == Slip::fenced) hopper::fence_proxy_async();
  if (slip == Slip::stored || slip == Slip::fenced) __syncthreads();
  if (slip != Slip::no_fence) hopper::fence_products(sums);
  for (int q = 0; q < kTerms<S>; q += kDepth) {
    if (q == 32 && slip == Slip::no_second_fence) {
      hopper::commit_products();
      hopper::complete_products(sums);
      sums[1] += 1;
    }
    const std::uint64_t right = b_transposed
                                    ? hopper::descriptor(b + q * hopper::kRowBytes, kBoxBytes, hopper::kSwizzleBytes)
                                    : hopper::descriptor(b + q * sizeof(S), 0, hopper::kSwizzleBytes);
    const std::uint64_t left =
        a_transposed
            ? hopper::descriptor(a + q * hopper::kRowBytes, kBoxBytes, hopper::kSwizzleBytes)
            : hopper::descriptor(a + (slip == Slip::lanes && lane == 3 ? 0 : q * sizeof(S)), 0, hopper::kSwizzleBytes);
    if constexpr (in_registers) hopper::multiply<S, b_transposed>(sums, held[q / kDepth], right, q > 0);
    else hopper::multiply<S, a_transposed, b_transposed>(sums, left, right, q > 0);
  }
  if (slip != Slip::no_commit) hopper::commit_products();
  if (slip == Slip::exits) return;
  if (slip == Slip::overwritten && threadIdx.x == 0) {
    hopper::arrive_expecting(full[1], kBoxBytes);
    hopper::copy_box(a, a_map, full[1], 0, 32);
  }
  if (slip != Slip::no_wait) hopper::complete_products(sums);
  for (int e = 0; e < count; ++e) c[(row + e / 2 % 2 * 8) * kColumns + e / 4 * 8 + lane % 4 * 2 + e % 2] = sums[e];
  hopper::complete_products(sums);
  if (slip == Slip::overwritten) hopper::wait(full[1], 0);
}

float number(int i, int j) { return static_cast<float>((i * 37 + j * 11) % 13 - 6); }

struct Multiplied {
  std::vector<float> got, wanted;
};

/// A number with garbage in the bits that no tensor core takes of a float.
template <class S>
void store_number(S& to, float x, int seed) {
  cuda_host_kernels::store(to, x);
  if constexpr (std::is_same_v<S, float>)
    to = std::bit_cast<float>(std::bit_cast<std::uint32_t>(to) | (static_cast<unsigned>(seed) * 0x9e3779b9U >> 19));
}

/// Returns a product of matrices with elements left(row, term) and right(term, column).
template <class S, bool a_transposed, bool b_transposed, bool in_registers, int count>
Multiplied multiplied(Slip slip = Slip::none) {
  constexpr int kColumns = 2 * count;
  constexpr int kRow = kTerms<S>;
  std::vector<S> a(64 * kRow), b(kRow * kColumns);
  Multiplied m{std::vector<float>(64 * kColumns), std::vector<float>(64 * kColumns)};
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  for (int k = 0; k < kRow; ++k) {
    for (int i = 0; i < 64; ++i)
      store_number(a[at(a_transposed ? k * 64 + i : i * kRow + k)], number(i, k), 64 * k + i);
    for (int j = 0; j < kColumns; ++j)
      store_number(b[at(b_transposed ? k * kColumns + j : j * kRow + k)], number(k + 3, j), 256 * k + j);
  }
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < kColumns; ++j)
      for (int k = 0; k < kRow; ++k) m.wanted[at(i * kColumns + j)] += number(i, k) * number(k + 3, j);
  const TensorMap a_map = map_of(a, 64, kRow, 64);
  const TensorMap b_map = b_transposed ? map_of(b, 64, kColumns, 64) : map_of(b, kColumns, kRow, 64);
  run_asynchronous(
      &multiply<S, a_transposed, b_transposed, in_registers, count>,
      {dim3(1), dim3(128), static_cast<std::size_t>((64 + kColumns) * hopper::kRowBytes + hopper::kSwizzleBytes)},
      a_map, b_map, m.got.data(), slip);
  return m;
}

template <class S, bool a_transposed, bool b_transposed, bool in_registers, int count>
void expect_exact() {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    cuda_host::set_seed(seed);
    const Multiplied m = multiplied<S, a_transposed, b_transposed, in_registers, count>();
    ASSERT_EQ(m.got, m.wanted) << a_transposed << b_transposed << in_registers << " " << count;
  }
}

TEST(HopperProduct, MultipliesIntegersExactly) {
  expect_exact<Half, false, false, false, 32>();
  expect_exact<Half, false, true, false, 64>();
  expect_exact<Half, true, false, false, 128>();
  expect_exact<Half, true, true, false, 64>();
  expect_exact<Half, false, true, true, 32>();
  expect_exact<BFloat16, false, false, false, 64>();
  expect_exact<BFloat16, false, true, false, 128>();
  expect_exact<BFloat16, true, true, false, 128>();
  expect_exact<BFloat16, true, false, false, 32>();
  expect_exact<BFloat16, false, false, true, 64>();
  expect_exact<float, false, false, false, 32>();
  expect_exact<float, false, false, false, 64>();
  expect_exact<float, false, false, false, 128>();
  expect_exact<float, false, false, true, 32>();
  expect_exact<float, false, false, true, 64>();
  expect_exact<float, false, false, true, 128>();
}

enum class Order {
  right,
  one_waits,            ///< one thread waits for each box, and the others meet it
  one_waits_alone,      ///< one thread waits for each box
  not_awaited,          ///< boxes after the first
  released_early,       ///< before the products are complete
  not_all_released,     ///< a box counts as read when three of four warps have read it
  copied_over_copy,     ///< the next box is copied while the last one arrives
  copied_at_once,       ///< over boxes that may be read
  other_group_awaited,  ///< products are waited for one group late
};

/// Thread 128 copies `rounds` boxes to one place; the warpgroup before it adds box boxT for each.
__global__ void stream(const TensorMap map, int rounds, Order order, float* out) {
  constexpr unsigned kBoxBytes = 64 * hopper::kRowBytes;
  ASSAY_SHARED(Barrier, full, [1]);
  ASSAY_SHARED(Barrier, empty, [1]);
  unsigned char* const box = hopper::boxes_of_block();
  if (threadIdx.x == 0) {
    hopper::initialize(full[0], 1);
    hopper::initialize(empty[0], order == Order::not_all_released ? 3 : 4);
    hopper::fence_proxy_async();
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    for (int round = 0; round < rounds && threadIdx.x == 128; ++round) {
      // The box before has arrived, and may be read.
      hopper::wait(order == Order::copied_at_once ? full[0] : empty[0], static_cast<unsigned>(round + 1) % 2);
      const bool twice = order == Order::copied_over_copy;
      hopper::arrive_expecting(full[0], twice ? 2 * kBoxBytes : kBoxBytes);
      hopper::copy_box(box, map, full[0], 0, 64 * round);
      if (twice) hopper::copy_box(box, map, full[0], 0, 64 * round);
    }
    return;
  }
  const bool one = order == Order::one_waits || order == Order::one_waits_alone;
  float sums[32] = {};
  for (int round = 0; round < rounds; ++round) {
    if ((!one || threadIdx.x == 0) && (order != Order::not_awaited || round == 0))
      hopper::wait(full[0], static_cast<unsigned>(round) % 2);
    if (order == Order::one_waits) hopper::named_barrier(1, 128);
    hopper::fence_products(sums);
    for (int q = 0; q < 64; q += 16) {
      const std::uint64_t rows = hopper::descriptor(box + q * 2, 0, hopper::kSwizzleBytes);
      hopper::multiply<BFloat16, false, false>(sums, rows, rows, round + q > 0);
    }
    hopper::commit_products();
    const bool releases = threadIdx.x % 32 == 0 && (order != Order::not_all_released || threadIdx.x > 0);
    if (releases && order == Order::released_early) hopper::arrive(empty[0]);
    if (order == Order::other_group_awaited) hopper::wait_products<1>();
    else hopper::complete_products(sums);
    if (releases && order != Order::released_early) hopper::arrive(empty[0]);
  }
  hopper::complete_products(sums);
  if (threadIdx.x == 0) out[0] = sums[0];
}

TEST(HopperProduct, ReadsBoxesThatTheThreadKnowsToHaveArrived) {
  constexpr int kRounds = 4;
  const std::vector<BFloat16> matrix(64 * kRounds * 64, BFloat16{0x3f80});
  const TensorMap map = map_of(matrix, 64 * kRounds, 64, 64);
  const auto run = [&](Order order) {
    float out = 0;
    run_asynchronous(&stream, {dim3(1), dim3(160), 64 * hopper::kRowBytes + hopper::kSwizzleBytes}, map, kRounds, order,
                     &out);
    EXPECT_EQ(out, 64 * kRounds);
  };
  std::set<Order> races;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    cuda_host::set_seed(seed);
    run(Order::right);
    run(Order::one_waits);
    for (const Order order :
         {Order::one_waits_alone, Order::not_awaited, Order::released_early, Order::not_all_released,
          Order::copied_over_copy, Order::copied_at_once, Order::other_group_awaited})
      try {
        run(order);
        ADD_FAILURE() << "no error of order " << static_cast<int>(order) << " with seed " << seed;
      } catch (const DeviceError& error) {
        // Threads that run ahead may miss a phase instead.
        const bool race = error.code == "race on shared memory";
        EXPECT_TRUE(race || error.code == "deadlock") << error.what();
        if (race) races.insert(order);
      }
  }
  EXPECT_EQ(races.size(), 7U);
}

/// Products of one warp by mma.sync: 16 rows, 8 columns, 64 terms.
__global__ void multiply_by_mma(const BFloat16* a, const BFloat16* b, float* c) {
  float sums[4] = {};
  for (int q = 0; q < 64; q += 16) {
    const auto left = cuda_host_kernels::TensorCore<BFloat16>::rows(a + q, 64);
    const auto right = cuda_host_kernels::TensorCore<BFloat16>::rows_as_columns(b + q, 64);
    cuda_host_kernels::TensorCore<BFloat16>::multiply(sums, left, right.x[0]);
  }
  const int lane = static_cast<int>(threadIdx.x);
  for (int e = 0; e < 4; ++e) c[(lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = sums[e];
}

TEST(HopperProduct, TruncatesSumsAsMmaDoes) {
  std::vector<std::uint16_t> kinds{0x0001, 0x8003, 0x0080, 0x3f80, 0xbf81, 0x4b12,
                                   0xc977, 0x7f7f, 0x7f80, 0x7fc0, 0x0000};
  std::uint64_t state = 7;
  const auto draw = [&] {
    return static_cast<std::uint16_t>((state = state * 6364136223846793005U + 1442695040888963407U) >> 48);
  };
  for (int round = 0; round < 30; ++round) {
    struct alignas(16) Matrices {
      BFloat16 a[64 * 64], b[64 * 64];
    };
    const auto m = std::make_unique<Matrices>();
    for (auto* x : {m->a, m->b})
      for (int i = 0; i < 64 * 64; ++i)
        x[i].bits = round % 3 == 0 ? kinds[draw() % (round % 2 ? kinds.size() : 7)]
                                   : static_cast<std::uint16_t>((draw() & 0x87ffU) | 0x3800U);
    std::vector<float> by_mma(16 * 8), c(64 * 64);
    run_here(&multiply_by_mma, {dim3(1), dim3(32)}, m->a, m->b, by_mma.data());
    Device& here = device(Backend::cuda_host);
    run_asynchronous(&multiply<BFloat16, false, false, false, 32>,
                     {dim3(1), dim3(128), 128 * 128 + hopper::kSwizzleBytes},
                     hopper::tensor_map(m->a, 64, 64, 64, 64, here), hopper::tensor_map(m->b, 64, 64, 64, 64, here),
                     c.data(), Slip::none);
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        const float x = by_mma[static_cast<std::size_t>(i * 8 + j)], y = c[static_cast<std::size_t>(i * 64 + j)];
        if (std::isnan(x)) ASSERT_TRUE(std::isnan(y));
        else ASSERT_EQ(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y)) << round << ": " << i << j;
      }
  }
}

constexpr auto kMultiply = &multiplied<BFloat16, false, false, false, 32>;

TEST(HopperProduct, IsCompleteNoSoonerThanItsGroup) {
  for (const Slip slip : {Slip::no_wait, Slip::no_commit}) {
    const auto run = [&] {
      const Multiplied m = kMultiply(slip);
      EXPECT_NE(m.got, m.wanted);
    };
    // Products that belong to no group are still in flight at the end.
    if (slip == Slip::no_commit) expect_error([&] { run(); }, "wgmma", {"in flight"});
    else run();
  }
}

TEST(HopperProduct, ReadsOperandsUntilItIsComplete) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_host::set_seed(seed);
    expect_error([] { kMultiply(Slip::overwritten); }, "race on shared memory", {"no wait or barrier orders this"});
  }
}

TEST(HopperProduct, SeesStoresOfThreadsBehindAFenceOnly) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    cuda_host::set_seed(seed);
    expect_error([] { kMultiply(Slip::stored); }, "wgmma", {"fence.proxy.async"});
    const Multiplied m = kMultiply(Slip::fenced);  // signs of some elements are changed
    EXPECT_NE(m.got, m.wanted);
  }
}

TEST(HopperProduct, StatesMissingFencesAndDivergence) {
  expect_error([] { kMultiply(Slip::no_fence); }, "wgmma", {"wgmma.fence"});
  expect_error([] { kMultiply(Slip::no_second_fence); }, "wgmma", {"wgmma.fence"});
  expect_error([] { kMultiply(Slip::exits); }, "wgmma", {"in flight"});
  expect_error([] { kMultiply(Slip::lanes); }, "warp divergence", {"other operands"});
}

}  // namespace
}  // namespace assay
