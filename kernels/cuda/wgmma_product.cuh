// Products of 16-bit matrices on the tensor cores of compute capability 9.0: one warp copies, two warpgroups multiply.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"
#include "runtime/limits.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr std::string_view kWgmmaProduct =
    "16-bit tensor cores (wgmma m64n256k16, or n128), 128x256 or 128x128 block, a warp that copies and two warpgroups of "
    "64 rows, depth 64, four stages of tensor copies";

namespace wgmma_product_detail {

/// Extents of a tile, whose columns are a parameter, and of what a box has along the rows of its matrix and a warpgroup
/// along those of C.
constexpr int kRows = 128, kDepth = 64, kBox = 64, kStages = 4, kTerms = 16, kGroupRows = 64;
constexpr int kGroupThreads = 128, kConsumers = kRows / kGroupRows, kThreads = (1 + kConsumers) * kGroupThreads;
constexpr int kConsumerThreads = kConsumers * kGroupThreads, kConsumerWarps = kConsumerThreads / 32;
/// Blocks of rows that take the same columns one after another.
constexpr int kGroupedBlocks = 8;
/// With this pad of a row of C the stores of a warp access 32 different banks.
constexpr int kOutputPad = 8;
/// Named barriers: of all consumers, and of each.
constexpr unsigned kAllConsumers = 1, kFirstConsumer = 2;

template <class T, int count>
struct alignas(count * sizeof(T)) Elements {
  T at[count];
};

/// An operand's tile of a stage. K-major: one box of `rows` by kDepth terms. MN-major (transposed): boxes of kDepth
/// terms by kBox rows of the operand, one after another.
template <class S, bool transposed, int rows>
struct Operand {
  static constexpr int kBytes = rows * kDepth * sizeof(S), kBoxBytes = kBox * kDepth * sizeof(S);
  static constexpr unsigned kBoxRows = transposed ? kDepth : rows;
  static_assert(kBox * sizeof(S) == hopper::kRowBytes && kDepth * sizeof(S) == hopper::kRowBytes);

  /// Starts the copy of the rows of the operand from `row` and the terms from `term`.
  __device__ static void copy(unsigned char* tile, const hopper::TensorMap& map, hopper::Barrier& barrier, int row,
                              int term) {
    if constexpr (transposed)
      for (int i = 0; i < rows; i += kBox) hopper::copy_box(tile + i / kBox * kBoxBytes, map, barrier, row + i, term);
    else hopper::copy_box(tile, map, barrier, term, row);
  }
  /// Describes the rows from `row`, a multiple of kBox, and kTerms terms from `term`.
  __device__ static std::uint64_t described(const unsigned char* tile, int row, int term) {
    if constexpr (transposed)
      return hopper::descriptor(tile + row / kBox * kBoxBytes + term * hopper::kRowBytes, kBoxBytes,
                                hopper::kSwizzleBytes);
    else return hopper::descriptor(tile + row * hopper::kRowBytes + term * sizeof(S), 0, hopper::kSwizzleBytes);
  }
};

/// Stores the rows of `held` that are in C to its rows from row0; `thread` of kGroupThreads.
template <int columns, class S, class Out>
__device__ inline void store_rows(const ProductOf<S, Out>& p, const Out* held, int row0, int column0, int thread) {
  constexpr int kWord = 16 / sizeof(Out), kWordsPerRow = columns / kWord, kPitch = columns + kOutputPad;
  const bool aligned = rows_start_at(p.c, p.c_ld, 16);
  for (int number = thread; number < kGroupRows * kWordsPerRow; number += kGroupThreads) {
    const int row = row0 + number / kWordsPerRow, column = number % kWordsPerRow * kWord;
    if (!aligned || row >= p.m || column0 + column > p.n - kWord) continue;
    *reinterpret_cast<Elements<Out, kWord>*>(p.c + row * p.c_ld + column0 + column) =
        *reinterpret_cast<const Elements<Out, kWord>*>(held + number / kWordsPerRow * kPitch + column);
  }
  // The rest of each row: all of it if C is not aligned.
  const int inside = min(p.n - column0, columns), rest = aligned ? inside - inside % kWord : 0;
  for (int column = rest + thread; column < inside; column += kGroupThreads)
    for (int row = 0; row < kGroupRows && row0 + row < p.m; ++row)
      p.c[(row0 + row) * p.c_ld + column0 + column] = held[row * kPitch + column];
}

/// Stage s is full once its bytes have arrived, and empty once all warps of the consumers have multiplied them. The
/// first thread of the block copies; its warpgroup's registers go to the others.
template <int columns, bool a_transposed, bool b_transposed, class S, class Out, class Epilogue>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_product_kernel(ProductOf<S, Out> p, const __grid_constant__ hopper::TensorMap a_map,
                         const __grid_constant__ hopper::TensorMap b_map, Epilogue epilogue) {
  // A is [k,m] if transposed, B is [n,k] if transposed: MN-major means rows of k.
  using A = Operand<S, a_transposed, kRows>;
  using B = Operand<S, !b_transposed, columns>;
  constexpr int kStageBytes = A::kBytes + B::kBytes, kPitch = columns + kOutputPad;
  static_assert(kStages * kStageBytes >= kRows * kPitch * static_cast<int>(sizeof(Out)), "C must fit");
  ASSAY_SHARED(hopper::Barrier, full, [kStages]);
  ASSAY_SHARED(hopper::Barrier, empty, [kStages]);
  unsigned char* const stages = hopper::boxes_of_block();
  const auto a_stage = [&](int tile) { return stages + tile % kStages * kStageBytes; };
  const auto b_stage = [&](int tile) { return a_stage(tile) + A::kBytes; };
  // Blocks that run at the same time share rows of A and of B in the second-level cache: columns of a few blocks.
  const int number = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int of_group = kGroupedBlocks * static_cast<int>(gridDim.x), first_block = number / of_group * kGroupedBlocks;
  const int grouped = min(static_cast<int>(gridDim.y) - first_block, kGroupedBlocks);
  const int row0 = (first_block + number % of_group % grouped) * kRows;
  const int column0 = number % of_group / grouped * columns;
  const int tiles = (p.k + kDepth - 1) / kDepth, thread = static_cast<int>(threadIdx.x) % kGroupThreads;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::initialize(full[stage], 1);
      hopper::initialize(empty[stage], kConsumerWarps);
    }
    hopper::fence_proxy_async();
  }
  __syncthreads();

  if (threadIdx.x < kGroupThreads) {
    hopper::release_registers<40>();
    if (threadIdx.x > 0) return;
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kStages;
      hopper::wait(empty[stage], static_cast<unsigned>(tile / kStages + 1) % 2);
      hopper::arrive_expecting(full[stage], kStageBytes);
      A::copy(a_stage(tile), a_map, full[stage], row0, tile * kDepth);
      B::copy(b_stage(tile), b_map, full[stage], column0, tile * kDepth);
    }
    return;
  }

  hopper::take_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / kGroupThreads - 1, y = consumer * kGroupRows;
  const int warp = thread / 32, lane = thread % 32;
  float sums[columns / 2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    hopper::wait(full[stage], static_cast<unsigned>(tile / kStages) % 2);
    hopper::fence_products(sums);
#pragma unroll
    for (int q = 0; q < kDepth; q += kTerms)
      hopper::multiply<S, a_transposed, !b_transposed>(sums, A::described(a_stage(tile), y, q),
                                                       B::described(b_stage(tile), 0, q), tile + q > 0);
    hopper::commit_products();
    // The products of the previous tile are complete.
    hopper::wait_products<1>();
    if (tile > 0 && lane == 0) hopper::arrive(empty[(tile - 1) % kStages]);
  }
  hopper::complete_products(sums);

  // Stages become C: no warp reads operands any more.
  Out* const held = reinterpret_cast<Out*>(stages) + y * kPitch;
  hopper::named_barrier(kAllConsumers, kConsumerThreads);
  const int first = 16 * warp + lane / 4;
#pragma unroll
  for (int j = 0; j < columns / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const int row = first + e / 2 * 8, column = 8 * j + lane % 4 * 2;
      Elements<Out, 2> two;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = sums[4 * j + e + i];
        if (row0 + y + row < p.m && column0 + column + i < p.n)
          sum = epilogue(sum, row0 + y + row, column0 + column + i);
        store(two.at[i], sum);
      }
      *reinterpret_cast<Elements<Out, 2>*>(held + row * kPitch + column) = two;
    }
  hopper::named_barrier(kFirstConsumer + static_cast<unsigned>(consumer), kGroupThreads);
  store_rows<columns>(p, held, row0 + y, column0, thread);
}

template <int columns, bool a_transposed, bool b_transposed, class S, class Out, class Epilogue>
void launch_blocks(const ProductOf<S, Out>& p, const Epilogue& epilogue, Device& device) {
  using A = Operand<S, a_transposed, kRows>;
  using B = Operand<S, !b_transposed, columns>;
  const auto a_map =
      hopper::tensor_map(p.a, a_transposed ? p.k : p.m, a_transposed ? p.m : p.k, p.a_ld, A::kBoxRows, device);
  const auto b_map =
      hopper::tensor_map(p.b, b_transposed ? p.n : p.k, b_transposed ? p.k : p.n, p.b_ld, B::kBoxRows, device);
  const LaunchShape shape{dim3(blocks_for(p.n, columns), blocks_for(p.m, kRows)), dim3(kThreads),
                          kStages * (A::kBytes + B::kBytes) + hopper::kSwizzleBytes};
  hopper::launch_asynchronous(&wgmma_product_kernel<columns, a_transposed, b_transposed, S, Out, Epilogue>, shape,
                              device, p, a_map, b_map, epilogue);
}

/// Returns the multiprocessors of the device.
inline unsigned multiprocessors() {
  static const unsigned count = [] {
    int found = 0;
    return cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess && found > 0
               ? static_cast<unsigned>(found)
               : 1U;
  }();
  return count;
}

}  // namespace wgmma_product_detail

/// c[i,j] = epilogue(sum_p a[i,p] * b[p,j]), rounded once to Out. Tensor cores form the sums (mma_arithmetic); error as
/// of mma_product_with. Blocks have 256 columns if there are as many blocks as multiprocessors, else 128; the bits are
/// the same. Reads each element of A n/256 times and of B m/128 times. Throws Unavailable unless A and B satisfy
/// refuse_boxes and the device has compute capability 9.0. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix
/// Multiply-Accumulate Instructions"; Thakkar et al., CUTLASS 3, for the division of work among warpgroups.
template <bool a_transposed, bool b_transposed, class S, class Out, class Epilogue>
void wgmma_product_with(const ProductOf<S, Out>& p, const Epilogue& epilogue, Device& device) {
  namespace detail = wgmma_product_detail;
  hopper::need_hopper("wgmma_product", device);
  for (const auto& why :
       {hopper::refuse_boxes("the left factor", p.a, p.a_ld), hopper::refuse_boxes("the right factor", p.b, p.b_ld)})
    if (why) throw Unavailable("wgmma_product", *why);
  const bool wide = p.n > 128 && blocks_for(p.m, detail::kRows) * blocks_for(p.n, 256) >= detail::multiprocessors();
  if (wide) detail::launch_blocks<256, a_transposed, b_transposed>(p, epilogue, device);
  else detail::launch_blocks<128, a_transposed, b_transposed>(p, epilogue, device);
}

template <bool a_transposed, bool b_transposed, class S, class Out = S>
void wgmma_product(const ProductOf<S, Out>& p, Device& device) {
  wgmma_product_with<a_transposed, b_transposed>(p, Plain{}, device);
}

/// Returns why these kernels take no such factors.
template <class S, AnyView V>
std::optional<std::string> refuse_factors(const V& a, const V& b) {
  if (auto why = hopper::refuse_device()) return why;
  if (auto why = hopper::refuse_boxes("the left factor", static_cast<const S*>(a.data()), leading_dimension(a)))
    return why;
  return hopper::refuse_boxes("the right factor", static_cast<const S*>(b.data()), leading_dimension(b));
}

/// Cases without gaps whose dims at `at`, the lengths of rows of A and B, are multiples of eight.
template <int... at>
const Limits& rows_of_whole_boxes() {
  static const Limits limits = [] {
    Limits made;
    made.refuse = [](std::span<const Index> dims, std::span<const double>) -> std::optional<std::string> {
      if (((dims[at] % 8 == 0) && ...)) return std::nullopt;
      return "rows of a factor must have a multiple of eight elements if no gaps are between them";
    };
    made.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t) {
      ((dims[at] = dims[at] < 8 ? (dims[at] + 7) / 8 * 8 : dims[at] / 8 * 8), ...);
      return true;
    };
    made.dense = made.aligned = true;  // most drawn gaps and offsets are no multiples of 16 bytes
    return made;
  }();
  return limits;
}

/// Completes the registry entry of a kernel of this file: it comes before that of mma_product.cuh.
template <class S, int... at>
Kernel wgmma_kernel(Kernel kernel, std::function<std::optional<std::string>(const Call&)> refuse) {
  kernel.arithmetic = mma_arithmetic<S>();
  kernel.refuse = [grid = std::move(kernel.refuse), refuse = std::move(refuse)](const Call& call) {
    auto why = grid(call);
    return why ? why : refuse(call);
  };
  kernel.limits = &rows_of_whole_boxes<at...>();
  kernel.priority = 2;
  return kernel;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
