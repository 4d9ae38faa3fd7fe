// Shared memory for the tensors of a call: the driver writes it, the worker's kernel uses it, the driver checks it
// afterwards. Every tensor is surrounded by sentinels or inaccessible pages. Sentinels are unique finite values: a NaN
// sentinel would hide a NaN written over it.
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

/// Contents of outputs before the kernel runs; each element differs from its neighbours.
enum class Poison { finite, nan };

/// Initial values of outputs in place of poison, and the outputs that may not change.
struct Preset {
  std::vector<std::vector<float>> values{};  ///< by tensor, dense; empty: poison
  std::vector<bool> frozen{};                ///< by tensor: the kernel must not write it; empty: no tensor is frozen
};

/// One tensor in the arena. All offsets and sizes in bytes from the arena's base.
struct Placed {
  /// Whole pages that belong to the tensor: elements, padding, sentinels.
  struct Piece {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
    bool operator==(const Piece&) const = default;
  };

  std::size_t region = 0;  ///< first byte of the region that belongs to this tensor
  std::size_t region_bytes = 0;
  std::size_t data = 0;  ///< element (0, ..., 0)
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;
  bool output = false;        ///< its elements may change
  bool guard_before = false;  ///< the page before the region is inaccessible while the kernel runs
  bool guard_after = false;
  /// above 1: the tensor owns only the pages around this number of row groups (far_rows)
  std::size_t pieces = 1;
  std::size_t piece_step = 0;   ///< bytes from one group of rows to the next
  std::size_t piece_bytes = 0;  ///< from the first to the last byte of a group's elements

  /// Piece i of the region, in the order of addresses.
  Piece piece(std::size_t i) const;
};

/// A mapping shared with workers forked later. Pages cost memory once touched.
class Arena {
 public:
  /// Maps `at_best` bytes where the system grants that much address space, else `bytes`.
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
  /// Lays out and fills the problem; throws Unavailable if the arena cannot hold it. With `only_far`, far_rows applies
  /// to that tensor alone and the others are tight. `most_bytes` limits a region with far rows; rows lie as far apart
  /// as the limit allows.
  Stage(Arena& arena, const Problem& problem, const Case& c, Poison poison, Preset preset = {},
        std::optional<std::size_t> only_far = {}, std::size_t most_bytes = SIZE_MAX);
  ~Stage();
  Stage(Stage&&) = default;

  std::span<const Placed> tensors() const { return placed_; }
  /// Returns the current values of a tensor, dense and row-major.
  std::vector<float> read(int tensor) const;
  /// Returns one sentence if anything outside the outputs changed: a sentinel, a gap between rows, an input. Overwrites
  /// the tensors: read outputs first, and call it once.
  std::optional<std::string> damage() const;
  /// True if the outputs have elements and none of these changed.
  bool untouched() const;
  /// Returns one sentence if anything was written after damage() found nothing. Does not use the problem.
  std::optional<std::string> late_damage() const;

 private:
  std::byte* at(const Placed& placed) const { return arena_.base() + placed.data; }
  /// Stores the values, in dense row-major order, or a poison of its own in every element.
  void fill(const Placed& placed, const std::vector<float>& values);
  void poison_all(const Placed& placed);
  /// Returns the index of the first word in a tensor's region that differs from its sentinel.
  std::optional<std::size_t> written_word(const Placed& placed) const;
  void place(Placed& placed, const TensorInfo& info, const Case& c, Random& random, std::size_t& cursor);
  /// Lays the tensor out behind `cursor` with rows far apart. Returns false if it has too few or too many rows, or if
  /// the arena has no room.
  bool place_far_rows(Placed& placed, const TensorInfo& info, std::size_t most_bytes, Random& random,
                      std::size_t& cursor) const;

  /// An element, by its offset from element 0, whose bits differ from those before the call.
  struct Changed {
    Index offset;
    std::uint32_t held, now;
  };
  /// Returns the bits of an element before the call; E: Elements of its type.
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
