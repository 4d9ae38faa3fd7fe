#include "runtime/cuda_host/hopper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/half.hpp"
#include "runtime/cuda_host/block.hpp"
#include "runtime/cuda_host/block_sum.hpp"
#include "runtime/cuda_host/boxes.hpp"

namespace assay::cuda_host {
namespace {

constexpr int kLanes = warpSize, kWarpRows = 16, kMostDepth = 16, kMostColumns = 256;
constexpr unsigned kChunk = 16, kSwizzledRow = 128, kDepthBytes = 2 * kChunk;  // of the terms of a product

struct Mbarrier {
  const std::uint64_t* address;
  unsigned count, pending;  ///< arrivals of a phase, and those that are missing
  std::int64_t bytes = 0;   ///< expected and not yet copied; below 0 if copies came first
  unsigned phase = 0;       ///< number of the running phase
  bool known_to_copies = false;
  unsigned initialized_by;
  std::source_location site;
  std::size_t number;         ///< in the order of initialization
  Known arriving, completed;  ///< known to the threads that have arrived, in the running phase and before
};

struct Copy {
  void* shared;
  unsigned address;
  HostTensorMap map;
  std::uint64_t* barrier;
  std::array<int, 4> at;
  std::source_location site;
};

struct Sleeper {
  Thread* thread;
  const void* on;  ///< what it waits for
};

struct NamedBarrier {
  unsigned threads = 0, arrived = 0, generation = 0;
  Known known;  ///< to threads that have arrived
};

/// Sums of a warp, which the model holds while products are in flight.
struct Sums {
  std::array<float*, kLanes> of_lane{};
  unsigned held = 0;         ///< lanes whose registers the model has taken
  unsigned returned = 0;     ///< lanes that have got results
  std::size_t products = 0;  ///< in flight
  int columns = 0;
  std::vector<float> values;  ///< [kWarpRows][columns]
};

struct Product {
  WgmmaOperands operands;
  std::size_t sums;
  std::array<const unsigned*, kLanes> a_registers{};
  unsigned issued = 0;  ///< lanes
  unsigned group;
};

struct LaneOfWgmma {
  std::size_t issued = 0;
  unsigned groups = 0;  ///< committed
  bool fenced = false;
};

struct WarpOfWgmma {
  std::deque<Product> products;  ///< in flight
  std::size_t complete = 0;      ///< products before these
  std::deque<Sums> sums;
  std::array<LaneOfWgmma, kLanes> lanes{};
  std::vector<std::size_t> issued_at_commit;  ///< products, by group
  bool late = false;                          ///< products are performed by waits alone, until the next one
};

/// Asynchronous operations of the running block, and the barriers that they complete on.
struct State {
  std::uint64_t block = 0;
  unsigned window = 0;  ///< address of dynamic shared memory
  /// Dynamic shared memory as asynchronous operations see it: without stores of threads that no fence has followed.
  std::vector<std::byte> seen;
  std::vector<Mbarrier> barriers;
  std::vector<Copy> copies;
  std::vector<Sleeper> sleepers;
  std::array<NamedBarrier, 16> named;
  std::vector<WarpOfWgmma> warps;
  std::size_t barriers_initialized = 0;
  Boxes boxes;
  std::vector<Known> known;  ///< to each thread
  unsigned seen_ready = 0;   ///< rank of a thread that could run when last looked for
};

State last_state;

State& here() {
  State& state = last_state;
  if (state.block != block_serial) {
    std::vector<std::byte> seen = std::move(state.seen);
    state = {};
    state.block = block_serial;
    const auto* const memory = static_cast<const std::byte*>(block().shared());
    seen.assign(memory, memory + block().shared_bytes());
    state.seen = std::move(seen);
    // At least 1 KiB is taken on devices, for the system.
    state.window = 1024 + 128 * static_cast<unsigned>(draw() >> 61);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    state.warps.resize((threads + kLanes - 1) / kLanes);
    state.known.resize(threads);
    state.boxes = Boxes(state.warps.size(), (block().shared_bytes() + kSwizzledRow - 1) / kSwizzledRow);
  }
  return state;
}

Known& own_knowledge() { return here().known[block().current().rank]; }

/// Fails the kernel with what describe() returns. Nothing of the abandoned stack may own memory.
template <class Describe>
[[noreturn]] void fail_with(const char* code, Describe describe, std::source_location site) {
  static std::string text;
  text = describe();
  fail(code, text.c_str(), site);
}

std::string text(const std::source_location& site) {
  const std::string_view file = site.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), site.line());
}

/// Fills memory that an operation in flight will write with garbage: half of the time without a NaN, which a kernel may
/// repair by computing a row anew.
void spoil(void* memory, std::size_t bytes) {
  if (draw() >> 63) return poison(memory, bytes);
  // Numbers of either sign, below 2 in each of the formats.
  const auto word = static_cast<std::uint32_t>(draw() >> 32 & 0x8fff8fffU) | 0x30003000U;
  auto* at = static_cast<std::byte*>(memory);
  for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) std::memcpy(at, &word, sizeof word);
}

Thread* thread_of(unsigned rank) {
  Block& b = block();
  return b.lane(rank - b.current().rank / warpSize * warpSize);
}

/// Makes a waiting thread of any warp ready: a block releases lanes of the running thread's warp.
void wake(Thread& thread) {
  if (thread.state == Thread::State::ready) return;
  Thread& self = block().current();
  const unsigned own = std::exchange(self.rank, thread.rank);
  block().release(1U << thread.rank % warpSize);
  self.rank = own;
}

void wake_all(const void* waited_for) {
  auto& sleepers = here().sleepers;
  for (std::size_t i = 0; i < sleepers.size();)
    if (sleepers[i].on == waited_for) {
      wake(*sleepers[i].thread);
      sleepers[i] = sleepers.back();
      sleepers.pop_back();
    } else {
      ++i;
    }
}

/// Returns whether a thread other than the running one can run.
bool another_can_run() {
  State& state = here();
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, self = block().current().rank;
  for (unsigned tried = 0; tried < threads; ++tried) {
    const unsigned rank = (state.seen_ready + tried) % threads;
    if (rank == self || thread_of(rank)->state != Thread::State::ready) continue;
    state.seen_ready = rank;
    return true;
  }
  return false;
}

Mbarrier& barrier_at(const std::uint64_t* barrier, std::source_location site) {
  for (Mbarrier& known : here().barriers)
    if (known.address == barrier) return known;
  fail("mbarrier", "a barrier that no thread has initialized", site);
}

/// Names a barrier by the order of initialization.
std::string name(const Mbarrier& barrier) {
  return fmt::format("barrier {} of those initialized (count {}, {})", barrier.number, barrier.count,
                     text(barrier.site));
}

void end_phase_if_complete(Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.count;
  ++barrier.phase;
  barrier.completed.learn(std::exchange(barrier.arriving, {}));
  wake_all(barrier.address);
}

unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7U) << 4; }

/// Returns the 16 bytes at a 32-bit address, at their swizzled place.
std::byte* chunk_at(unsigned address, std::source_location site) {
  const unsigned offset = swizzled(address) - here().window;
  if (offset > block().shared_bytes() - kChunk || block().shared_bytes() < kChunk)
    fail_with(
        "illegal address",
        [&] {
          return fmt::format("an operand or a box at address {}, outside of the {} bytes of dynamic shared memory",
                             address, block().shared_bytes());
        },
        site);
  return static_cast<std::byte*>(block().shared()) + offset;
}

/// Starts an operation on the row of 128 bytes at an address: fails the kernel if start(row) returns an Unknown.
template <class Start>
void start_on_row(unsigned address, const char* operation, std::source_location site, Start start) {
  const auto offset = chunk_at(address, site) - static_cast<const std::byte*>(block().shared());
  const std::optional<Unknown> before = start(static_cast<std::size_t>(offset) / kSwizzledRow);
  if (!before) return;
  fail_with(
      "race on shared memory",
      [&] {
        const std::string other =
            before->warp ? fmt::format("products of warp {} that read", *before->warp) : "copy to";
        return fmt::format("no wait or barrier orders this {} after the {} its box ({})", operation, other,
                           text(before->site));
      },
      site);
}

std::byte* seen_at(const std::byte* chunk) {
  return here().seen.data() + (chunk - static_cast<const std::byte*>(block().shared()));
}

/// Returns 16 bytes of an operand.
const std::byte* operand_at(unsigned address, std::source_location site) {
  const std::byte* const chunk = chunk_at(address, site);
  if (std::memcmp(chunk, seen_at(chunk), kChunk) != 0)
    fail("wgmma", "a thread has stored to an operand, and no fence.proxy.async lies before the product", site);
  return chunk;
}

void perform(const Copy& copy) {
  const HostTensorMap& map = copy.map;
  const std::int64_t per_chunk = kChunk / map.element_bytes;
  const auto inside = [&](std::size_t axis, std::int64_t i) {
    return i >= 0 && i < static_cast<std::int64_t>(map.extents[axis]);
  };
  const bool matrix_inside = inside(2, copy.at[2]) && inside(3, copy.at[3]);
  const auto bytes_to = [&](std::size_t axis, std::int64_t i) {
    return i * static_cast<std::int64_t>(map.step_bytes[axis - 1]);
  };
  const std::int64_t to_matrix = bytes_to(2, copy.at[2]) + bytes_to(3, copy.at[3]);
  for (unsigned r = 0; r < map.box_rows; ++r) {
    const std::int64_t row = std::int64_t{copy.at[1]} + r;
    const bool row_inside = matrix_inside && inside(1, row);
    const unsigned to = copy.address + r * kSwizzledRow;
    for (unsigned c = 0; c < map.box_columns / per_chunk; ++c) {
      std::byte* const chunk = chunk_at(to + c * kChunk, copy.site);
      const std::int64_t column = copy.at[0] + c * per_chunk;
      std::int64_t from = 0, end = 0;  // elements of the chunk that the tensor has
      if (row_inside) {
        from = std::clamp<std::int64_t>(-column, 0, per_chunk);
        end = std::clamp<std::int64_t>(static_cast<std::int64_t>(map.extents[0]) - column, from, per_chunk);
      }
      if (end - from < per_chunk) std::memset(chunk, 0, kChunk);
      if (end > from)
        std::memcpy(chunk + from * map.element_bytes,
                    map.address + to_matrix + bytes_to(1, row) + (column + from) * map.element_bytes,
                    static_cast<std::size_t>(end - from) * map.element_bytes);
      std::memcpy(seen_at(chunk), chunk, kChunk);
    }
  }
  Mbarrier& barrier = barrier_at(copy.barrier, copy.site);
  barrier.bytes -= std::int64_t{map.box_columns} * map.element_bytes * map.box_rows;
  end_phase_if_complete(barrier);
}

/// Performs one copy of those in flight.
void perform_any() {
  auto& copies = here().copies;
  std::swap(copies[block().random().below(copies.size())], copies.back());
  const Copy copy = copies.back();
  copies.pop_back();
  perform(copy);
}

/// Wakes a sleeper, which performs copies in turn; returns false if no thread sleeps.
bool wake_for_copies() {
  auto& sleepers = here().sleepers;
  if (sleepers.empty()) return false;
  std::swap(sleepers[block().random().below(sleepers.size())], sleepers.back());
  Thread& thread = *sleepers.back().thread;
  sleepers.pop_back();
  wake(thread);
  return true;
}

/// Waits until done(). While copies are in flight, some waiting thread stays awake to perform them, however often the
/// seed lets others run first.
template <class Done, class Describe>
void wait_until(const void* on, Done done, Describe describe, std::source_location site) {
  State& state = here();
  Thread& self = block().current();
  while (!done()) {
    const bool others = another_can_run();
    if (!state.copies.empty() && (!others || draw() >> 63 || !wake_for_copies())) {
      perform_any();
      continue;
    }
    if (!others && state.copies.empty()) fail_with("deadlock", describe, site);
    state.sleepers.push_back({&self, on});
    block().wait(Thread::State::barrier, site);
    std::erase_if(state.sleepers, [&](const Sleeper& sleeper) { return sleeper.thread == &self; });
  }
}

// Products. Arithmetic is that of wmma.cpp, whose loops are for the shapes of single warps.

constexpr int kStep = 8;  ///< columns that are computed together

int element_bytes(MmaInputs inputs) { return inputs == MmaInputs::tf32 ? 4 : 2; }
/// Terms of a product.
int depth_of(MmaInputs inputs) { return static_cast<int>(kDepthBytes) / element_bytes(inputs); }

/// The right operand [depth][columns] as floats.
struct RightOperand {
  int columns = 0;
  MmaInputs inputs{};
  bool transposed = false;
  std::vector<std::byte> raw;  ///< as read
  std::vector<float> values;
  int nonzero = 0;  ///< columns from here on are zeros, a multiple of eight
  bool finite = false;
};

struct Factors {
  float a[kWarpRows][kMostDepth];
  int depth;
  bool a_finite;
  const RightOperand* b;
  float* d;  ///< [kWarpRows][columns]
  double floor;
};

struct Multiply {
  ASSAY_INLINE static void run(const Factors& f) {
    const int columns = f.b->columns;
    const bool inputs_finite = f.a_finite && f.b->finite;
    // Zeros outside of the matrices change no sum, unless they meet an Inf or NaN.
    const int used = inputs_finite ? f.b->nonzero : columns;
    for (int k = 0; k < f.depth; k += kBlock)
      for (int j = 0; j < used; j += kStep) {
        float b[kBlock][kStep];  // copies, which cannot share memory with sums
        for (int q = 0; q < kBlock; ++q) std::memcpy(b[q], f.b->values.data() + (k + q) * columns + j, sizeof b[q]);
        for (int i = 0; i < kWarpRows; ++i) {
          float a[kBlock], d[kStep];
          std::memcpy(a, f.a[i] + k, sizeof a);
          const bool zeros = a[0] == 0 && a[1] == 0 && a[2] == 0 && a[3] == 0;
          if (zeros && inputs_finite) continue;
          std::memcpy(d, f.d + i * columns + j, sizeof d);
          if (inputs_finite && finite(d, kStep)) {
            add_block(d, a, b, f.floor);
          } else {
            for (int n = 0; n < kStep; ++n)
              for (int q = 0; q < kBlock; ++q) d[n] = d[n] + a[q] * b[q][n];
          }
          std::memcpy(f.d + i * columns + j, d, sizeof d);
        }
      }
  }
};

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void on_avx512(const Factors& f) {
  Multiply::run(f);
}
[[gnu::target("avx2")]] void on_avx2(const Factors& f) { Multiply::run(f); }
#endif
void on_any(const Factors& f) { Multiply::run(f); }

void multiply(const Factors& f) {
#if defined(__x86_64__)
  static const auto chosen = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") ? &on_avx512
                             : __builtin_cpu_supports("avx2")                                         ? &on_avx2
                                                                                                      : &on_any;
  chosen(f);
#else
  on_any(f);
#endif
}

/// Returns the element at an address as tensor cores read it: they drop the low 13 bits of a float32.
float value(MmaInputs inputs, const void* at) {
  if (inputs == MmaInputs::tf32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return std::bit_cast<float>(bits & 0xffffe000U);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return inputs == MmaInputs::f16 ? widen(Half{bits}) : widen(BFloat16{bits});
}

/// A matrix descriptor (PTX ISA, "Matrix Descriptor Format").
struct Descriptor {
  unsigned start, leading, stride;

  Descriptor(std::uint64_t bits, std::source_location site)
      : start(static_cast<unsigned>(bits & 0x3fffU) << 4), leading(static_cast<unsigned>(bits >> 16 & 0x3fffU) << 4),
        stride(static_cast<unsigned>(bits >> 32 & 0x3fffU) << 4) {
    if (bits >> 62 != 1)
      fail("wgmma", "operands lie in boxes with 128-byte swizzle here, and a descriptor says otherwise", site);
    // Eight rows repeat the pattern; another place of its first one is said by the base offset, which no kernel uses.
    if ((bits >> 49 & 7U) != 0 || (start >> 7 & 7U) != 0)
      fail("misaligned address", "the eight rows of a swizzled operand must start at a multiple of 1024 bytes", site);
  }
  /// Address of the chunk along k at `bytes` of the terms of row i; K-major.
  unsigned along_k(int i, unsigned bytes) const {
    const auto row = static_cast<unsigned>(i);
    return start + row / 8 * stride + row % 8 * kSwizzledRow + bytes;
  }
  /// Address of eight rows from row i of element k, of 16 bits; MN-major.
  unsigned along_rows(int i, int k) const {
    const auto row = static_cast<unsigned>(i), column = static_cast<unsigned>(k);
    return start + row / 64 * leading + row % 64 * 2 + column / 8 * stride + column % 8 * kSwizzledRow;
  }
};

/// Reads the right operand. Warps read the same one in turn: it is converted only if it has changed.
const RightOperand& right_operand(const WgmmaOperands& o, std::source_location site) {
  static std::array<RightOperand, 64> kept;
  const Descriptor from(o.b, site);
  RightOperand& right = kept[from.start >> 5 & 63U];
  std::array<std::byte, kMostColumns * kDepthBytes> raw;
  std::byte* to = raw.data();
  const int depth = depth_of(o.inputs);
  if (o.b_transposed) {
    for (int k = 0; k < depth; ++k)
      for (int j = 0; j < o.columns; j += 8, to += kChunk)
        std::memcpy(to, operand_at(from.along_rows(j, k), site), kChunk);
  } else {
    for (int j = 0; j < o.columns; ++j)
      for (unsigned bytes = 0; bytes < kDepthBytes; bytes += kChunk, to += kChunk)
        std::memcpy(to, operand_at(from.along_k(j, bytes), site), kChunk);
  }
  const auto bytes = static_cast<std::size_t>(to - raw.data()), count = static_cast<std::size_t>(o.columns * depth);
  if (right.columns == o.columns && right.inputs == o.inputs && right.transposed == o.b_transposed &&
      std::memcmp(right.raw.data(), raw.data(), bytes) == 0)
    return right;
  right.columns = o.columns;
  right.inputs = o.inputs;
  right.transposed = o.b_transposed;
  right.raw.assign(raw.data(), to);
  right.values.resize(count);
  right.nonzero = 0;
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < o.columns; ++j) {
      const int at = o.b_transposed ? k * o.columns + j : j * depth + k;
      const float x = value(o.inputs, raw.data() + at * element_bytes(o.inputs));
      right.values[static_cast<std::size_t>(k * o.columns + j)] = x;
      if (x != 0) right.nonzero = std::max(right.nonzero, j / 8 * 8 + 8);
    }
  right.finite = finite(right.values.data(), static_cast<int>(count));
  return right;
}

/// Row and column of sum e of a lane in its warp's 16 rows.
int row_of(int lane, int e) { return lane / 4 + e / 2 % 2 * 8; }
int column_of(int lane, int e) { return e / 4 * 8 + lane % 4 * 2 + e % 2; }

void perform(WarpOfWgmma& warp, unsigned number, const Product& product, std::source_location site) {
  const WgmmaOperands& o = product.operands;
  Sums& sums = warp.sums[product.sums];
  Factors f{};
  f.depth = depth_of(o.inputs);
  if (o.a_registers != nullptr) {
    // A register holds one element of TF32, or two neighbours.
    const int bytes = element_bytes(o.inputs), held = 4 / bytes;
    for (int l = 0; l < kLanes; ++l)
      for (int e = 0; e < 4 * held; ++e)
        f.a[l / 4 + e / held % 2 * 8][(e / held / 2 * 4 + l % 4) * held + e % held] = value(
            o.inputs, reinterpret_cast<const std::byte*>(product.a_registers[static_cast<std::size_t>(l)]) + bytes * e);
  } else {
    const Descriptor from(o.a, site);
    const int first = static_cast<int>(number % 4) * kWarpRows;
    const int bytes = element_bytes(o.inputs), per_chunk = static_cast<int>(kChunk) / bytes;
    for (int i = 0; i < kWarpRows; i += o.a_transposed ? per_chunk : 1)
      for (int k = 0; k < f.depth; k += o.a_transposed ? 1 : per_chunk) {
        const std::byte* const chunk = operand_at(
            o.a_transposed ? from.along_rows(first + i, k) : from.along_k(first + i, static_cast<unsigned>(k * bytes)),
            site);
        for (int x = 0; x < per_chunk; ++x)
          (o.a_transposed ? f.a[i + x][k] : f.a[i][k + x]) = value(o.inputs, chunk + x * bytes);
      }
  }
  f.a_finite = finite(f.a[0], kWarpRows * kMostDepth);
  f.b = &right_operand(o, site);
  f.floor = o.inputs == MmaInputs::f16 ? 0x1p-14 : 0x1p-126;
  if (!o.accumulates) std::ranges::fill(sums.values, 0.0F);
  f.d = sums.values.data();
  multiply(f);
  --sums.products;
}

/// Starts product number `at` of a warp: the running thread must know that its operands have arrived.
void start(unsigned warp, std::size_t at, const WgmmaOperands& o, std::source_location site) {
  State& state = here();
  const Known& known = own_knowledge();
  const auto read = [&](const Descriptor& from, int first, int rows, bool transposed) {
    for (int i = first; i < first + rows; i += transposed ? 64 : 1)
      for (int k = 0, depth = depth_of(o.inputs); k < depth; k += transposed ? 1 : depth)
        start_on_row(transposed ? from.along_rows(i, k) : from.along_k(i, 0), "product", site, [&](std::size_t row) {
          return state.boxes.read(row, warp, static_cast<unsigned>(at), known, site);
        });
  };
  if (o.a_registers == nullptr)
    read(Descriptor(o.a, site), static_cast<int>(warp % 4) * kWarpRows, kWarpRows, o.a_transposed);
  read(Descriptor(o.b, site), 0, o.columns, o.b_transposed);
}

/// Performs the first `count` products in flight.
void perform_products(WarpOfWgmma& warp, unsigned number, std::size_t count, std::source_location site) {
  for (; count > 0; --count) {
    perform(warp, number, warp.products.front(), site);
    warp.products.pop_front();
    ++warp.complete;
  }
}

/// Calls visit(element of sums.values, register) for each sum of a lane.
template <class Visit>
void visit_sums(Sums& sums, int lane, Visit visit) {
  float* const registers = sums.of_lane[static_cast<std::size_t>(lane)];
  for (int e = 0; e < sums.columns / 2; ++e)
    visit(sums.values[static_cast<std::size_t>(row_of(lane, e) * sums.columns + column_of(lane, e))], registers[e]);
}

/// Takes the registers of a lane.
void take(Sums& sums, int lane, bool fenced, std::source_location site) {
  const unsigned bit = 1U << lane;
  if (sums.held & bit) return;
  if (!fenced) {
    bool changed = (sums.returned & bit) == 0;
    visit_sums(sums, lane, [&](float held, float now) {
      changed = changed || std::bit_cast<std::uint32_t>(held) != std::bit_cast<std::uint32_t>(now);
    });
    if (changed)
      fail("wgmma", "a product adds to registers that the thread has written since its last wgmma.fence", site);
  }
  visit_sums(sums, lane, [](float& held, float now) { held = now; });
  spoil(sums.of_lane[static_cast<std::size_t>(lane)], static_cast<std::size_t>(sums.columns) / 2 * sizeof(float));
  sums.held |= bit;
}

std::size_t sums_of(WarpOfWgmma& warp, int lane, float* registers, int columns) {
  for (std::size_t s = 0; s < warp.sums.size(); ++s)
    if (warp.sums[s].of_lane[static_cast<std::size_t>(lane)] == registers && warp.sums[s].columns == columns) return s;
  Sums& added = warp.sums.emplace_back();
  added.columns = columns;
  added.values.resize(static_cast<std::size_t>(kWarpRows * columns));
  return warp.sums.size() - 1;
}

bool same(const WgmmaOperands& x, const WgmmaOperands& y) {
  return x.inputs == y.inputs && x.columns == y.columns && x.a == y.a && x.b == y.b &&
         (x.a_registers == nullptr) == (y.a_registers == nullptr) && x.a_transposed == y.a_transposed &&
         x.b_transposed == y.b_transposed && x.accumulates == y.accumulates;
}

unsigned number_of_warp() { return block().current().rank / warpSize; }

struct Wait {
  unsigned groups;
  std::source_location site;
};

/// The lanes of a warp wait.
void complete_groups(void* const operands[warpSize], unsigned /*mask*/) {
  const Wait& wait = *static_cast<const Wait*>(operands[0]);
  const unsigned number = number_of_warp();
  WarpOfWgmma& warp = here().warps[number];
  for (int l = 0; l < kLanes; ++l) {
    const auto& lane = warp.lanes[static_cast<std::size_t>(l)];
    if (lane.issued != warp.lanes[0].issued || lane.groups != warp.lanes[0].groups ||
        static_cast<const Wait*>(operands[l])->groups != wait.groups)
      fail("warp divergence", "lanes have issued other products, or wait for other groups, than lane 0", wait.site);
  }
  const unsigned groups = warp.lanes[0].groups;
  std::size_t due = 0;
  while (due < warp.products.size() && warp.products[due].group + wait.groups < groups) ++due;
  perform_products(warp, number, due, wait.site);
  if (groups > wait.groups)
    for (unsigned l = 0; l < kLanes; ++l)
      here().known[number * kLanes + l].learn(number,
                                              static_cast<unsigned>(warp.issued_at_commit[groups - wait.groups - 1]));
  for (Sums& sums : warp.sums) {
    if (sums.products > 0 || sums.held == 0) continue;
    for (int l = 0; l < kLanes; ++l) visit_sums(sums, l, [](float held, float& now) { now = held; });
    sums.returned = ~0U;
    sums.held = 0;
    for (LaneOfWgmma& lane : warp.lanes) lane.fenced = false;  // it may write what it has got
  }
  warp.late = draw() >> 63 != 0;
}

NamedBarrier& named(unsigned id, unsigned threads, std::source_location site) {
  if (id >= 16 || threads == 0 || threads % warpSize != 0)
    fail("barrier", "a named barrier has a number below 16, for a multiple of 32 threads", site);
  NamedBarrier& barrier = here().named[id];
  if (barrier.arrived > 0 && barrier.threads != threads)
    fail_with(
        "barrier",
        [&] {
          return fmt::format("threads wait for {} and for {} threads at barrier {}", barrier.threads, threads, id);
        },
        site);
  barrier.threads = threads;
  barrier.known.learn(own_knowledge());
  return barrier;
}

/// Counts the running thread; returns whether it is the last.
bool ends_generation(NamedBarrier& barrier) {
  if (++barrier.arrived < barrier.threads) return false;
  barrier.arrived = 0;
  ++barrier.generation;
  wake_all(&barrier);
  return true;
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, unsigned count, std::source_location site) {
  if (count == 0) fail("mbarrier", "a barrier for no arrival", site);
  State& state = here();
  std::erase_if(state.barriers, [&](const Mbarrier& known) { return known.address == barrier; });
  state.barriers.push_back({.address = barrier,
                            .count = count,
                            .pending = count,
                            .initialized_by = block().current().rank,
                            .site = site,
                            .number = state.barriers_initialized++,
                            .arriving = {},
                            .completed = {}});
}

void mbarrier_arrive(std::uint64_t* barrier, std::source_location site) {
  Mbarrier& at = barrier_at(barrier, site);
  if (at.pending == 0)
    fail_with(
        "mbarrier",
        [&] {
          return fmt::format("phase {} of {} has all arrivals, and waits for {} bytes", at.phase, name(at), at.bytes);
        },
        site);
  at.arriving.learn(own_knowledge());
  --at.pending;
  end_phase_if_complete(at);
}

void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes, std::source_location site) {
  barrier_at(barrier, site).bytes += bytes;
  mbarrier_arrive(barrier, site);
}

void mbarrier_wait(std::uint64_t* barrier, unsigned parity, std::source_location site) {
  (void)barrier_at(barrier, site);
  wait_until(
      barrier, [&] { return (barrier_at(barrier, site).phase & 1U) != (parity & 1U); },
      [&] {
        const Mbarrier& at = barrier_at(barrier, site);
        return fmt::format(
            "no thread can run: this one waits for the end of a phase of parity {} of {}, whose phase {} lacks {} "
            "arrivals and {} bytes",
            parity & 1U, name(at), at.phase, at.pending, at.bytes);
      },
      site);
  const Mbarrier& at = barrier_at(barrier, site);
  own_knowledge().learn(at.completed);
  own_knowledge().learn(here().boxes.barrier(at.number), at.phase);
}

void fence_proxy_async() {
  const unsigned self = block().current().rank;
  // Shows what all threads have stored until now, not only this one.
  if (auto& seen = here().seen; !seen.empty()) std::memcpy(seen.data(), block().shared(), seen.size());
  for (Mbarrier& barrier : here().barriers)
    if (barrier.initialized_by == self) barrier.known_to_copies = true;
}

HostTensorMap tensor_map(const HostTensorMap& map, int axes) {
  const auto refuse = [](const std::string& why) {
    throw DeviceError("cuTensorMapEncodeTiled", "cudaErrorInvalidValue", why);
  };
  constexpr std::uint64_t kLargestExtent = std::uint64_t{1} << 32, kLargestStep = std::uint64_t{1} << 40;
  if (reinterpret_cast<std::uintptr_t>(map.address) % kChunk != 0)
    refuse("the tensor must start at a multiple of 16 bytes");
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(axes); ++axis)
    if (map.extents[axis] == 0 || map.extents[axis] > kLargestExtent)
      refuse(fmt::format("axis {} has {} elements; 1 to 2^32 are allowed", axis, map.extents[axis]));
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(axes); ++axis)
    if (const std::uint64_t step = map.step_bytes[axis - 1]; step % kChunk != 0 || step >= kLargestStep)
      refuse(fmt::format("axis {} has steps of {} bytes; multiples of 16 below 2^40 are allowed", axis, step));
  if (map.box_rows == 0 || map.box_rows > 256)
    refuse(fmt::format("a box has {} rows; 1 to 256 are allowed", map.box_rows));
  return map;
}

void copy_box(void* shared, const HostTensorMap& map, std::uint64_t* barrier, std::array<int, 4> at,
              std::source_location site) {
  State& state = here();
  const unsigned address = shared_address(shared);
  if (address % 128 != 0) fail("misaligned address", "a box needs 128 bytes of alignment", site);
  const Mbarrier& full = barrier_at(barrier, site);
  if (!full.known_to_copies)
    fail("mbarrier", "no fence.proxy.async has followed the initialization of the barrier of a copy", site);
  for (unsigned r = 0; r < map.box_rows; ++r) {
    for (unsigned c = 0; c < kSwizzledRow / kChunk; ++c) (void)chunk_at(address + r * kSwizzledRow + c * kChunk, site);
    start_on_row(address + r * kSwizzledRow, "copy", site, [&](std::size_t row) {
      return state.boxes.copy(row, state.boxes.barrier(full.number), full.phase, own_knowledge(), site);
    });
  }
  spoil(shared, std::size_t{map.box_rows} * kSwizzledRow);
  std::memcpy(seen_at(static_cast<std::byte*>(shared)), shared, std::size_t{map.box_rows} * kSwizzledRow);
  state.copies.push_back({shared, address, map, barrier, at, site});
  if (draw() >> 62 == 0) perform_any();
  if (!state.copies.empty()) wake_for_copies();
}

unsigned shared_address(const void* pointer) {
  const auto offset = static_cast<const std::byte*>(pointer) - static_cast<const std::byte*>(block().shared());
  return here().window + static_cast<unsigned>(offset);
}

void wgmma(const WgmmaOperands& operands, float* registers, std::source_location site) {
  if (operands.inputs == MmaInputs::tf32 && (operands.a_transposed || operands.b_transposed))
    fail("wgmma", "operands of TF32 are K-major", site);
  const unsigned number = number_of_warp();
  const auto l = static_cast<int>(lane());
  WarpOfWgmma& warp = here().warps[number];
  LaneOfWgmma& self = warp.lanes[static_cast<std::size_t>(l)];
  const std::size_t at = self.issued++ - warp.complete;
  if (at == warp.products.size()) {
    Product added{.operands = operands, .sums = sums_of(warp, l, registers, operands.columns), .group = self.groups};
    ++warp.sums[added.sums].products;
    warp.products.push_back(added);
  }
  Product& product = warp.products[at];
  if (!same(product.operands, operands) || product.group != self.groups)
    fail("warp divergence", "the lanes of a warp give a product other operands", site);
  Sums& sums = warp.sums[product.sums];
  auto& own = sums.of_lane[static_cast<std::size_t>(l)];
  if (own != nullptr && own != registers)
    fail("warp divergence", "the lanes of a warp give a product other sums", site);
  own = registers;
  take(sums, l, self.fenced, site);
  product.a_registers[static_cast<std::size_t>(l)] = operands.a_registers;
  product.issued |= 1U << l;
  if (product.issued != ~0U) return;
  // The last lane has issued it.
  start(number, warp.complete + at, operands, site);
  if (!warp.late && draw() >> 63) perform_products(warp, number, at + 1, site);
}

void wgmma_fence() { here().warps[number_of_warp()].lanes[lane()].fenced = true; }

void wgmma_commit() {
  WarpOfWgmma& warp = here().warps[number_of_warp()];
  LaneOfWgmma& self = warp.lanes[lane()];
  if (self.groups++ == warp.issued_at_commit.size()) warp.issued_at_commit.push_back(self.issued);
}

void wgmma_wait(unsigned groups, std::source_location site) {
  Wait wait{groups, site};
  together(~0U, &complete_groups, &wait, site);
}

void named_barrier(unsigned id, unsigned threads, std::source_location site) {
  NamedBarrier& barrier = named(id, threads, site);
  if (!ends_generation(barrier))
    wait_until(
        &barrier, [&, generation = barrier.generation] { return barrier.generation != generation; },
        [&] {
          return fmt::format("no thread can run: {} of {} threads wait at named barrier {}", barrier.arrived, threads,
                             id);
        },
        site);
  own_knowledge().learn(barrier.known);
}

void arrive_at_named_barrier(unsigned id, unsigned threads, std::source_location site) {
  ends_generation(named(id, threads, site));
}

void share_known() {
  if (last_state.block != block_serial) return;  // nothing has begun
  Known all;
  for (const Known& known : last_state.known) all.learn(known);
  std::ranges::fill(last_state.known, all);
}

void share_known(unsigned mask) {
  if (last_state.block != block_serial) return;
  const auto each = [&](auto visit) {
    Known* const lanes = &last_state.known[std::size_t{number_of_warp()} * kLanes];
    for (unsigned left = mask; left != 0; left &= left - 1) visit(lanes[std::countr_zero(left)]);
  };
  Known all;
  each([&](const Known& known) { all.learn(known); });
  each([&](Known& known) { known = all; });
}

void end_asynchronous_thread() {
  State& state = here();
  const WarpOfWgmma& warp = state.warps[number_of_warp()];
  if (warp.complete < warp.lanes[lane()].issued) fail("wgmma", "a thread exits while its products are in flight", {});
  if (another_can_run()) return;
  // The last thread that could run: others wait for copies, or in vain.
  while (!state.copies.empty() && !another_can_run()) {
    if (state.sleepers.empty()) fail("mbarrier", "the block ends while copies to its memory are in flight", {});
    perform_any();
  }
  if (!state.sleepers.empty() && !another_can_run()) wake_for_copies();  // to state what it waits for
}

}  // namespace assay::cuda_host
