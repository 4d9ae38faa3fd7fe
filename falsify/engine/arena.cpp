#include "falsify/engine/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWord = sizeof(float);
constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

/// Calls f(offset in elements from element 0, position in dense row-major order).
template <class F>
void for_each_element(const Shape& shape, const Shape& strides, F f) {
  const Index n = shape.size();
  if (n == 0) return;
  const int inner = shape.rank() - 1;
  const Index width = inner < 0 ? 1 : shape[inner], step = inner < 0 ? 1 : strides[inner];
  Shape index = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) index[axis] = 0;
  for (Index dense = 0; dense < n; dense += width) {
    Index base = 0;
    for (int axis = 0; axis < inner; ++axis) base += index[axis] * strides[axis];
    for (Index j = 0; j < width; ++j) f(base + j * step, dense + j);
    for (int axis = inner - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) index[axis] = 0;
  }
}

/// Strides of a layout; with `any_strides`, inner strides above 1 and transposed storage too.
Shape draw_strides(const Shape& shape, Layout layout, bool any_strides, Random& random) {
  Shape strides = row_major_strides(shape);
  if (layout == Layout::tight || layout == Layout::offset || shape.rank() == 0) return strides;
  const int inner = shape.rank() - 1;
  const bool spread = any_strides && (layout == Layout::mixed || shape.rank() == 1);
  const bool column_major = any_strides && layout == Layout::mixed && shape.rank() == 2 && random.chance(0.5);
  Index step = spread ? random.between(1, 3) : 1;
  const Index pad = random.chance(0.5) ? 1 : random.between(2, 20);
  for (int n = 0; n <= inner; ++n) {
    const int axis = column_major ? n : inner - n;
    strides[axis] = step;
    step = step * std::max<Index>(shape[axis], 1) + (n == 0 ? pad : 0);
  }
  return strides;
}

}  // namespace

float sentinel(std::uint64_t key, std::size_t word) {
  return std::bit_cast<float>(0x71800000u | static_cast<std::uint32_t>(scramble(key ^ word) & 0x7fffffu));
}

Arena::Arena(std::size_t bytes) : bytes_(round_up(bytes, kPage)) {
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Unavailable("shared memory", fmt::format("{} bytes could not be mapped: {}", bytes_, std::strerror(errno)));
  base_ = static_cast<std::byte*>(mapped);
}
Arena::~Arena() { munmap(base_, bytes_); }

Stage::Stage(Arena& arena, std::size_t first_byte, const Problem& problem, const Case& c, Poison poison)
    : arena_(arena), problem_(problem), key_(derive(c.seed, poison == Poison::nan ? "nan" : "finite")) {
  Random random(derive(c.seed, "layout"));
  std::size_t cursor = round_up(first_byte, kPage);
  for (std::size_t t = 0; t < problem.values.size(); ++t) {
    const TensorInfo& info = problem.op->tensors[t];
    Placed placed;
    placed.shape = problem.shape(static_cast<int>(t));
    placed.output = info.role == Role::out;
    place(placed, info, c, random, cursor);
    placed_.push_back(placed);
    const std::size_t first = placed.region / kWord;
    auto* words = reinterpret_cast<float*>(arena_.base());
    for (std::size_t w = first; w < first + placed.region_bytes / kWord; ++w) words[w] = sentinel(key_, w);
    float* data = at(placed);
    if (!placed.output) {
      for_each_element(placed.shape, placed.strides, [&](Index offset, Index dense) {
        data[offset] = problem.values[t][static_cast<std::size_t>(dense)];
      });
    } else if (poison == Poison::nan) {
      for_each_element(placed.shape, placed.strides, [&](Index offset, Index dense) {
        data[offset] = std::bit_cast<float>(0x7fa00000u | static_cast<std::uint32_t>(dense & 0xfffff));
      });
    }
  }
}

void Stage::place(Placed& placed, const TensorInfo& info, const Case& c, Random& random, std::size_t& cursor) {
  placed.strides = draw_strides(placed.shape, c.layout, !info.unit_inner_stride, random);
  const View<float> view(nullptr, placed.shape, placed.strides);
  const std::size_t extent = static_cast<std::size_t>(view.extent()) * kWord;
  const bool offset = c.layout == Layout::offset || c.layout == Layout::mixed;
  const std::size_t shift = offset ? static_cast<std::size_t>(random.between(1, 15)) * kWord : 0;
  placed.fence_before = c.placement == Placement::page_start;
  placed.fence_after = c.placement == Placement::page_end;
  placed.region = cursor + kPage;  // the page before stays free for a fence
  if (c.placement == Placement::page_end) {
    placed.region_bytes = round_up(extent + kPage, kPage);
    placed.data = placed.region + placed.region_bytes - extent;
  } else if (c.placement == Placement::page_start) {
    placed.region_bytes = round_up(extent + kPage, kPage);
    placed.data = placed.region;
  } else {
    placed.region_bytes = round_up(extent + shift + 2 * kPage, kPage);
    placed.data = round_up(placed.region + kPage, kAlignment) + shift;
  }
  cursor = placed.region + placed.region_bytes + kPage;
  if (cursor > arena_.bytes())
    throw Unavailable("this case", fmt::format("its tensors need {} bytes and the arena has {}", cursor, arena_.bytes()));
}

float* Stage::at(const Placed& placed) const { return reinterpret_cast<float*>(arena_.base() + placed.data); }

std::vector<float> Stage::read(int tensor) const {
  const Placed& placed = placed_[static_cast<std::size_t>(tensor)];
  std::vector<float> values(static_cast<std::size_t>(placed.shape.size()));
  const float* data = at(placed);
  for_each_element(placed.shape, placed.strides, [&](Index offset, Index dense) {
    values[static_cast<std::size_t>(dense)] = data[offset];
  });
  return values;
}

std::optional<std::string> Stage::damage() const {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  for (std::size_t t = 0; t < placed_.size(); ++t) {
    const Placed& placed = placed_[t];
    const std::string_view name = problem_.op->tensors[t].name;
    float* data = at(placed);
    std::optional<std::string> found;
    for_each_element(placed.shape, placed.strides, [&](Index offset, Index dense) {
      if (!placed.output && !found && bits(data[offset]) != bits(problem_.values[t][static_cast<std::size_t>(dense)]))
        found = fmt::format("input {} was changed: element {} of its storage was {} and is now {}", name, offset,
                            problem_.values[t][static_cast<std::size_t>(dense)], data[offset]);
      data[offset] = sentinel(key_, static_cast<std::size_t>(data + offset - reinterpret_cast<float*>(arena_.base())));
    });
    if (found) return found;
    const std::size_t first = placed.region / kWord;
    const auto* words = reinterpret_cast<const float*>(arena_.base());
    for (std::size_t w = first; w < first + placed.region_bytes / kWord; ++w)
      if (bits(words[w]) != bits(sentinel(key_, w))) {
        const auto distance = static_cast<std::ptrdiff_t>(w) - static_cast<std::ptrdiff_t>(placed.data / kWord);
        return fmt::format("memory outside {} was written: element {} counted from its first ({} elements belong to it, "
                           "leading stride {}) is now {}", name, distance, placed.shape.size(),
                           placed.strides.rank() ? placed.strides[0] : 1, words[w]);
      }
  }
  return std::nullopt;
}

}  // namespace assay::falsify
