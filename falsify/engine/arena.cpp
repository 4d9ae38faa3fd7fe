#include "falsify/engine/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "core/errors.hpp"
#include "core/half.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWord = sizeof(float);
constexpr std::size_t kAlignment = 64;

/// Largest number of row groups of one tensor with far rows: each group is a mapping of its own in the worker.
constexpr Index kMaxPieces = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

/// Alignment in bytes of a tensor and of its padded rows. Devices read packed bytes as words.
std::size_t unit_of(DType dtype) { return dtype == DType::u8 ? kWord : size_of(dtype); }

/// A row: the innermost axis. Its first element's offset from element 0 and position in dense row-major order, how many
/// elements it has, and how far apart they lie.
struct Row {
  Index offset, dense, width, step;
};

template <class F>
void for_each_row(const Shape& shape, const Shape& strides, F f) {
  const Index n = shape.size();
  if (n == 0) return;
  const int inner = shape.rank() - 1;
  const Index width = inner < 0 ? 1 : shape[inner], step = inner < 0 ? 1 : strides[inner];
  Shape index = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) index[axis] = 0;
  for (Index dense = 0; dense < n; dense += width) {
    Index base = 0;
    for (int axis = 0; axis < inner; ++axis) base += index[axis] * strides[axis];
    f(Row{base, dense, width, step});
    for (int axis = inner - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) index[axis] = 0;
  }
}

/// Calls f(offset, position in dense order).
template <class F>
void for_each_element(const Row& row, F f) {
  if (row.step == 1)
    for (Index j = 0; j < row.width; ++j) f(row.offset + j, row.dense + j);
  else
    for (Index j = 0; j < row.width; ++j) f(row.offset + j * row.step, row.dense + j);
}

/// Returns the strides of a layout; with `any_strides`, inner strides above 1 and transposed storage too. Padded rows
/// are multiples of `unit` elements, pitched rows multiples of `line`. With three or more axes, any axis but the first
/// may have the gaps.
Shape draw_strides(const Shape& shape, Layout layout, bool any_strides, Index unit, Index line, Random& random) {
  Shape strides = row_major_strides(shape);
  if (layout == Layout::tight || layout == Layout::offset || layout == Layout::far_rows || shape.rank() == 0)
    return strides;
  const int inner = shape.rank() - 1;
  const bool spread = any_strides && (layout == Layout::mixed || shape.rank() == 1);
  const bool column_major = any_strides && layout == Layout::mixed && shape.rank() == 2 && random.chance(0.5);
  Index step = 1;
  if (spread && random.chance(0.5)) step = random.between(2, 3);
  const Index pad = unit * (random.chance(0.5) ? 1 : random.between(2, 20)),
              multiple = layout == Layout::pitched ? line : unit;
  const std::uint64_t gaps = inner < 2 ? 1 : 1 + random.below((std::uint64_t{1} << inner) - 1);
  for (int n = 0; n <= inner; ++n) {
    const int axis = column_major ? n : inner - n;
    strides[axis] = step;
    step *= std::max<Index>(shape[axis], 1);
    if ((gaps >> n & 1) != 0) step = (step + pad + multiple - 1) / multiple * multiple;
  }
  return strides;
}

/// Returns the bits that an element of this type stores for a representable value.
std::uint32_t bits_of(DType dtype, float x) {
  switch (dtype) {
    case DType::f32: return std::bit_cast<std::uint32_t>(x);
    case DType::f16: return to_half(x).bits;
    case DType::bf16: return to_bfloat16(x).bits;
    case DType::i32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(x));
    case DType::u8: return static_cast<std::uint32_t>(x) & 0xffu;
  }
  return 0;
}

float value_of(DType dtype, std::uint32_t bits) {
  switch (dtype) {
    case DType::f32: return std::bit_cast<float>(bits);
    case DType::f16: return widen(Half{static_cast<std::uint16_t>(bits)});
    case DType::bf16: return widen(BFloat16{static_cast<std::uint16_t>(bits)});
    case DType::i32: return static_cast<float>(static_cast<std::int32_t>(bits));
    case DType::u8: return static_cast<float>(bits);
  }
  return 0;
}

/// Returns a distinct NaN for each element; for types without NaN, bits that differ from the sentinels'.
std::uint32_t poison_bits(DType dtype, Index dense) {
  const auto i = static_cast<std::uint32_t>(dense);
  switch (dtype) {
    case DType::f32:
    case DType::i32: return 0x7fa00000u | (i & 0xfffffu);
    case DType::f16: return 0x7d00u | (i & 0xffu);
    case DType::bf16: return 0x7fa0u | (i & 0x1fu);
    case DType::u8: return 0xa5u ^ (i & 0xffu);
  }
  return 0;
}

template <DType type, class Unsigned>
struct Elements {
  static constexpr DType dtype = type;
  using Word = Unsigned;  ///< as wide as an element
};

/// Calls f with the elements' type as a constant, so that the loop over elements does not test it.
template <class F>
auto with_elements(DType dtype, F f) {
  switch (dtype) {
    case DType::f16: return f(Elements<DType::f16, std::uint16_t>{});
    case DType::bf16: return f(Elements<DType::bf16, std::uint16_t>{});
    case DType::i32: return f(Elements<DType::i32, std::uint32_t>{});
    case DType::u8: return f(Elements<DType::u8, std::uint8_t>{});
    case DType::f32: break;
  }
  return f(Elements<DType::f32, std::uint32_t>{});
}

template <class Word>
void put(std::byte* data, Index offset, std::uint32_t bits) {
  std::memcpy(data + static_cast<std::size_t>(offset) * sizeof(Word), &bits, sizeof(Word));  // little endian
}

template <class Word>
std::uint32_t get(const std::byte* data, Index offset) {
  Word bits;
  std::memcpy(&bits, data + static_cast<std::size_t>(offset) * sizeof(Word), sizeof(Word));
  return bits;
}

/// Returns the bits of a float near 2^100; the low bits depend on the word's index.
inline std::uint32_t sentinel(std::uint64_t key, std::size_t word) {
  return 0x71800000u | ((static_cast<std::uint32_t>(word) * 0x9e3779b1u ^ static_cast<std::uint32_t>(key)) >> 9);
}

static_assert(std::endian::native == std::endian::little);

/// The bits of a sentinel where an element of this width begins at `byte`: elements are aligned to their size, so that
/// none lies across two words.
template <class Word>
Word sentinel_at(std::uint64_t key, std::size_t byte) {
  return static_cast<Word>(sentinel(key, byte / kWord) >> 8 * (byte % kWord));
}

template <class Word>
void put_sentinels(std::byte* base, std::size_t data, std::uint64_t key, const Row& row) {
  const std::size_t first = data + static_cast<std::size_t>(row.offset) * sizeof(Word);
  if (row.step == 1 && sizeof(Word) == kWord) {
    constexpr std::uint32_t kBlock = 64;  // a constant count, so that the compiler takes vectors
    auto word = static_cast<std::uint32_t>(first / kWord);
    auto* words = reinterpret_cast<std::uint32_t*>(base + first);
    auto left = static_cast<std::size_t>(row.width);
    for (; left >= kBlock; left -= kBlock, words += kBlock, word += kBlock)
      for (std::uint32_t k = 0; k < kBlock; ++k) words[k] = sentinel(key, word + k);
    for (; left > 0; --left) *words++ = sentinel(key, word++);
    return;
  }
  for (Index j = 0; j < row.width; ++j) {
    const std::size_t byte = first + static_cast<std::size_t>(j * row.step) * sizeof(Word);
    put<Word>(base + byte, 0, sentinel_at<Word>(key, byte));
  }
}

}  // namespace

namespace {
/// Returns the values that a tensor holds before the call; null for poison.
const std::vector<float>* values_of(const Problem& problem, const Preset& preset, std::size_t tensor) {
  if (problem.op->tensors[tensor].role != Role::out) return &problem.values[tensor];
  return preset.values.empty() || preset.values[tensor].empty() ? nullptr : &preset.values[tensor];
}
}  // namespace

Arena::Arena(std::size_t bytes, std::size_t at_best) : bytes_(round_up(std::max(bytes, at_best), kPage)) {
  const auto map = [this] {
    return mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* mapped = map();
  if (mapped == MAP_FAILED && at_best > bytes) {
    bytes_ = round_up(bytes, kPage);
    mapped = map();
  }
  if (mapped == MAP_FAILED)
    throw Unavailable("shared memory", fmt::format("{} bytes could not be mapped: {}", bytes_, std::strerror(errno)));
  base_ = static_cast<std::byte*>(mapped);
}
Arena::~Arena() { munmap(base_, bytes_); }

Placed::Piece Placed::piece(std::size_t i) const {
  if (pieces == 1) return {region, region + region_bytes};
  const std::size_t begin = data + i * piece_step;
  return {(begin - kPage) / kPage * kPage, round_up(begin + piece_bytes + kPage, kPage)};
}

Stage::Stage(Arena& arena, const Problem& problem, const Case& c, Poison poison, Preset preset,
             std::optional<std::size_t> only_far, std::size_t most_bytes)
    : arena_(arena), problem_(problem), preset_(std::move(preset)), poison_(poison), op_(*problem.op),
      key_(derive(c.seed, poison == Poison::nan ? "nan" : "finite")) {
  Random random(derive(c.seed, "layout"));
  std::size_t cursor = 0;
  for (std::size_t t = 0; t < problem.values.size(); ++t) {
    const TensorInfo& info = problem.op->tensors[t];
    Placed placed;
    placed.shape = problem.shape(static_cast<int>(t));
    placed.dtype = problem.dtype(static_cast<int>(t));
    placed.output = info.role != Role::in && (preset_.frozen.empty() || !preset_.frozen[t]);
    const bool far = c.layout == Layout::far_rows && (!only_far || *only_far == t);
    if (!far || !place_far_rows(placed, info, most_bytes, random, cursor)) place(placed, info, c, random, cursor);
    placed_.push_back(placed);
    for (std::size_t i = 0; i < placed.pieces; ++i) {
      const Placed::Piece piece = placed.piece(i);
      put_sentinels<std::uint32_t>(arena_.base(), piece.begin, key_,
                                   {0, 0, static_cast<Index>(piece.size() / kWord), 1});
    }
    if (const std::vector<float>* values = values_of(problem, preset_, t)) fill(placed, *values);
    else if (poison == Poison::nan) poison_all(placed);
  }
}

Stage::~Stage() {
  // Release the pages of far rows: later cases do not use them again.
  for (const Placed& placed : placed_)
    for (std::size_t i = 0; placed.pieces > 1 && i < placed.pieces; ++i) {
      const Placed::Piece piece = placed.piece(i);
      madvise(arena_.base() + piece.begin, piece.size(), MADV_REMOVE);
    }
}

bool Stage::place_far_rows(Placed& placed, const TensorInfo& info, std::size_t most_bytes, Random& random,
                           std::size_t& cursor) const {
  const bool column_major = !info.unit_inner_stride && placed.shape.rank() == 2 && random.chance(0.5);
  Shape shape = placed.shape;
  if (column_major) std::swap(shape[0], shape[1]);
  const std::size_t size = size_of(placed.dtype);
  const auto unit = static_cast<Index>(unit_of(placed.dtype) / size);
  std::vector<int> axes;  // candidates: two or more groups of rows, and at most kMaxPieces
  Index groups = 1;
  for (int axis = 0; axis + 1 < shape.rank() && shape.size() > 0; ++axis) {
    groups *= shape[axis];
    if (groups > kMaxPieces) break;
    if (shape[axis] > 1) axes.push_back(axis);
  }
  if (axes.empty()) return false;
  const int far = axes[random.below(axes.size())];
  groups = 1;
  for (int axis = 0; axis <= far; ++axis) groups *= shape[axis];
  // Row distance beyond the range of signed or unsigned 32-bit indices.
  const Index reach = (Index{1} << (random.chance(0.5) ? 31 : 32)) + random.between(0, 4096);
  Shape strides = row_major_strides(shape);
  const Index inside = strides[far];
  strides[far] = (reach / (groups - 1) / unit + 1 + random.between(0, 64)) * unit;
  // Shaders index at most 2^30 elements; sentinel pages lie on both sides.
  const Index most =
      most_bytes == SIZE_MAX
          ? reach * 2
          : std::min(Index{1} << 30, static_cast<Index>((most_bytes - std::min(most_bytes, 4 * kPage)) / size));
  strides[far] = std::min(strides[far], std::max<Index>(most - inside, 0) / (groups - 1) / unit * unit);
  const auto apart = static_cast<std::size_t>(strides[far] - inside) * size;
  if (strides[far] < inside || apart < 4 * kPage) return false;  // pieces would meet
  for (int axis = far - 1; axis >= 0; --axis) strides[axis] = strides[axis + 1] * shape[axis + 1];
  if (column_major) std::swap(strides[0], strides[1]);
  Placed wide = placed;
  wide.strides = strides;
  wide.region = cursor + kPage;
  wide.data = round_up(wide.region + kPage, kAlignment);
  wide.pieces = static_cast<std::size_t>(groups);
  wide.piece_step = static_cast<std::size_t>(strides[column_major ? 1 - far : far]) * size;
  wide.piece_bytes = static_cast<std::size_t>(inside) * size;
  wide.region_bytes = wide.piece(wide.pieces - 1).end - wide.region;
  const std::size_t end = wide.region + wide.region_bytes + kPage;
  if (end > arena_.bytes()) return false;
  placed = wide;
  cursor = end;
  return true;
}

void Stage::fill(const Placed& placed, const std::vector<float>& values) {
  with_elements(placed.dtype, [&]<class E>(E) {
    for_each_row(placed.shape, placed.strides, [&, data = at(placed)](const Row& row) {
      for_each_element(row, [&](Index offset, Index dense) {
        put<typename E::Word>(data, offset, bits_of(E::dtype, values[static_cast<std::size_t>(dense)]));
      });
    });
  });
}

void Stage::poison_all(const Placed& placed) {
  with_elements(placed.dtype, [&]<class E>(E) {
    for_each_row(placed.shape, placed.strides, [&, data = at(placed)](const Row& row) {
      for_each_element(
          row, [&](Index offset, Index dense) { put<typename E::Word>(data, offset, poison_bits(E::dtype, dense)); });
    });
  });
}

void Stage::place(Placed& placed, const TensorInfo& info, const Case& c, Random& random, std::size_t& cursor) {
  const std::size_t unit = unit_of(placed.dtype), size = size_of(placed.dtype);
  const Layout layout =
      c.layout == Layout::own ? static_cast<Layout>(random.below(static_cast<std::uint64_t>(Layout::own))) : c.layout;
  placed.strides = draw_strides(placed.shape, layout, !info.unit_inner_stride, static_cast<Index>(unit / size),
                                static_cast<Index>(kAlignment / size), random);
  const View<float> view(nullptr, placed.shape, placed.strides);
  const std::size_t extent = static_cast<std::size_t>(view.extent()) * size;
  const bool offset = layout == Layout::offset || layout == Layout::mixed;
  const std::size_t shift = offset ? static_cast<std::size_t>(random.between(1, 15)) * unit : 0;
  placed.guard_before = c.placement == Placement::page_start;
  placed.guard_after = c.placement == Placement::page_end;
  placed.region = cursor + kPage;  // keep the preceding page free as a guard page
  if (c.placement == Placement::page_end) {
    placed.region_bytes = round_up(extent + kPage, kPage);
    placed.data = placed.region + placed.region_bytes - round_up(extent, unit);
  } else if (c.placement == Placement::page_start) {
    placed.region_bytes = round_up(extent + kPage, kPage);
    placed.data = placed.region;
  } else {
    placed.region_bytes = round_up(extent + shift + 2 * kPage, kPage);
    placed.data = round_up(placed.region + kPage, kAlignment) + shift;
  }
  cursor = placed.region + placed.region_bytes + kPage;
  if (cursor > arena_.bytes())
    throw Unavailable("this case",
                      fmt::format("its tensors need {} bytes and the arena has {}", cursor, arena_.bytes()));
}

std::vector<float> Stage::read(int tensor) const {
  const Placed& placed = placed_[static_cast<std::size_t>(tensor)];
  std::vector<float> values(static_cast<std::size_t>(placed.shape.size()));
  with_elements(placed.dtype, [&]<class E>(E) {
    for_each_row(placed.shape, placed.strides, [&, data = at(placed)](const Row& row) {
      for_each_element(row, [&](Index offset, Index dense) {
        values[static_cast<std::size_t>(dense)] = value_of(E::dtype, get<typename E::Word>(data, offset));
      });
    });
  });
  return values;
}

template <class E>
std::uint32_t Stage::held_bits(std::size_t tensor, Index offset, Index dense) const {
  const Placed& placed = placed_[tensor];
  if (const std::vector<float>* values = values_of(problem_, preset_, tensor))
    return bits_of(E::dtype, (*values)[static_cast<std::size_t>(dense)]);
  if (poison_ == Poison::nan) return static_cast<typename E::Word>(poison_bits(E::dtype, dense));
  return sentinel_at<typename E::Word>(key_, placed.data + static_cast<std::size_t>(offset) * sizeof(typename E::Word));
}

std::optional<std::string> Stage::damage() const {
  for (std::size_t t = 0; t < placed_.size(); ++t) {
    const Placed& placed = placed_[t];
    const std::string_view name = problem_.op->tensors[t].name;
    const std::size_t size = size_of(placed.dtype);
    if (!placed.output)
      if (const auto changed = changed_element(t))
        return fmt::format("{} {} was changed: element {} of its storage was {} and is now {}",
                           op_.tensors[t].role == Role::in ? "input" : "untouchable", name, changed->offset,
                           value_of(placed.dtype, changed->held), value_of(placed.dtype, changed->now));
    with_elements(placed.dtype, [&]<class E>(E) {
      for_each_row(placed.shape, placed.strides,
                   [&](const Row& row) { put_sentinels<typename E::Word>(arena_.base(), placed.data, key_, row); });
    });
    if (const auto w = written_word(placed)) {
      const auto distance = (static_cast<std::ptrdiff_t>(*w * kWord) - static_cast<std::ptrdiff_t>(placed.data)) /
                            static_cast<std::ptrdiff_t>(size);
      return fmt::format(
          "memory outside {} was written: element {} counted from its first ({} elements belong to it, "
          "leading stride {}) is now {}",
          name, distance, placed.shape.size(), placed.strides.rank() ? placed.strides[0] : 1,
          reinterpret_cast<const float*>(arena_.base())[*w]);
    }
  }
  return std::nullopt;
}

std::optional<Stage::Changed> Stage::changed_element(std::size_t tensor) const {
  const Placed& placed = placed_[tensor];
  std::optional<Changed> found;
  const std::vector<float>* const values = values_of(problem_, preset_, tensor);
  with_elements(placed.dtype, [&]<class E>(E) {
    for_each_row(placed.shape, placed.strides, [&, data = at(placed)](const Row& row) {
      if (found) return;
      if (values != nullptr) {
        std::uint32_t differ = 0;
        for_each_element(row, [&](Index offset, Index dense) {
          differ |= get<typename E::Word>(data, offset) ^ bits_of(E::dtype, (*values)[static_cast<std::size_t>(dense)]);
        });
        if (differ == 0) return;
      }
      for_each_element(row, [&](Index offset, Index dense) {
        const std::uint32_t held = held_bits<E>(tensor, offset, dense), now = get<typename E::Word>(data, offset);
        if (!found && now != held) found = Changed{offset, held, now};
      });
    });
  });
  return found;
}

bool Stage::untouched() const {
  bool any = false;
  for (std::size_t t = 0; t < placed_.size(); ++t) {
    if (!placed_[t].output || placed_[t].shape.size() == 0) continue;
    any = true;
    if (changed_element(t)) return false;
  }
  return any;
}

std::optional<std::size_t> Stage::written_word(const Placed& placed) const {
  const auto* words = reinterpret_cast<const std::uint32_t*>(arena_.base());
  constexpr std::uint32_t kBlock = 256;  // pieces are pages
  for (std::size_t i = 0; i < placed.pieces; ++i) {
    const Placed::Piece piece = placed.piece(i);
    for (std::size_t block = piece.begin / kWord; block < piece.end / kWord; block += kBlock) {
      std::uint32_t differ = 0;
      const auto first = static_cast<std::uint32_t>(block);
      for (std::uint32_t w = 0; w < kBlock; ++w) differ |= words[block + w] ^ sentinel(key_, first + w);
      for (std::size_t w = block; differ != 0 && w < block + kBlock; ++w)
        if (words[w] != sentinel(key_, w)) return w;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Stage::late_damage() const {
  for (std::size_t t = 0; t < placed_.size(); ++t)
    if (written_word(placed_[t]))
      return fmt::format("{} was written after the kernel had returned", op_.tensors[t].name);
  return std::nullopt;
}

}  // namespace assay::falsify
