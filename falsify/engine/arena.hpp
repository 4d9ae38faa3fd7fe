// Shared memory in which tensors meet a kernel: written by the driver, used by the worker, checked by the
// driver again. Around every tensor stand sentinels (unique finite values: a NaN guard would hide a NaN
// written over it) or inaccessible pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "falsify/engine/case.hpp"
#include "falsify/engine/inputs.hpp"
#include "runtime/call.hpp"

namespace assay::falsify {

/// What outputs hold before the kernel runs; each element differs from its neighbours.
enum class Poison { finite, nan };

/// Values of outputs before the call in place of poison, and which outputs may not change.
struct Preset {
  std::vector<std::vector<float>> values{};  ///< by tensor, dense; empty: poison
  std::vector<bool> frozen{};                ///< by tensor: the kernel must not touch it; empty: none is
};

/// One tensor in the arena. All offsets and sizes in bytes from the arena's base.
struct Placed {
  /// Whole pages that belong to the tensor: elements, padding, sentinels.
  struct Piece {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
    bool operator==(const Piece&) const = default;
  };

  std::size_t region = 0;        ///< first byte of the region that belongs to this tensor
  std::size_t region_bytes = 0;
  std::size_t data = 0;          ///< element (0, ..., 0)
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;
  bool output = false;           ///< its elements may change
  bool fence_before = false;     ///< the page before the region is inaccessible while the kernel runs
  bool fence_after = false;
  std::size_t pieces = 1;        ///< above 1: only pages around so many groups of rows belong to the tensor (far_rows)
  std::size_t piece_step = 0;    ///< bytes from one group of rows to the next
  std::size_t piece_bytes = 0;   ///< from the first to the last byte of a group's elements

  /// Piece i of the region, in the order of addresses.
  Piece piece(std::size_t i) const;
};

/// A mapping shared with workers forked later. Pages cost memory once touched.
class Arena {
 public:
  /// Maps `at_best` bytes where the system grants that many addresses, else `bytes`.
  explicit Arena(std::size_t bytes, std::size_t at_best = 0);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The tensors of one call laid out in an arena.
class Stage {
 public:
  /// Lays out the problem and fills it; throws Unavailable if the arena cannot hold it. With `only_far`, far_rows lays out that
  /// tensor so, and the others tight. `most_bytes`: of a region with far rows, which are as far apart as that allows.
  Stage(Arena& arena, const Problem& problem, const Case& c, Poison poison, Preset preset = {},
        std::optional<std::size_t> only_far = {}, std::size_t most_bytes = SIZE_MAX);
  ~Stage();
  Stage(Stage&&) = default;

  std::span<const Placed> tensors() const { return placed_; }
  /// Values of a tensor now, dense and row-major.
  std::vector<float> read(int tensor) const;
  /// One sentence if anything outside the outputs changed: a sentinel, a gap between rows, an input.
  /// Overwrites the tensors: read outputs before, and ask once.
  std::optional<std::string> damage() const;
  /// No output has an element that changed; there are such elements.
  bool untouched() const;
  /// One sentence if anything was written since damage() found nothing. Needs no problem any more.
  std::optional<std::string> late_damage() const;

 private:
  std::byte* at(const Placed& placed) const { return arena_.base() + placed.data; }
  /// Every element gets its value, of those in dense row-major order, or a poison of its own.
  void fill(const Placed& placed, const std::vector<float>& values);
  void poison_all(const Placed& placed);
  /// The first word of a tensor's region that is not its sentinel.
  std::optional<std::size_t> written_word(const Placed& placed) const;
  void place(Placed& placed, const TensorInfo& info, const Case& c, Random& random, std::size_t& cursor);
  /// Lays the tensor out with rows far apart, behind `cursor`. False: it has too few rows or too many, or there is no room.
  bool place_far(Placed& placed, std::size_t most_bytes, Random& random, std::size_t& cursor) const;

  /// An element, by its offset from element 0, that does not hold the bits that it held before the call.
  struct Changed {
    Index offset;
    std::uint32_t held, now;
  };
  /// The bits of an element before the call; E: Elements of its type.
  template <class E>
  std::uint32_t held_bits(std::size_t tensor, Index offset, Index dense) const;
  std::optional<Changed> changed_element(std::size_t tensor) const;

  Arena& arena_;
  const Problem& problem_;
  Preset preset_;
  Poison poison_;
  const OpDescriptor& op_;
  std::vector<Placed> placed_;
  std::uint64_t key_;
};

}  // namespace assay::falsify
