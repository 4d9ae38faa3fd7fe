// The order of copies to boxes and of products that read them. A copy or a product may run at any time between its
// start and the end of a wait for it, so that drawn orders show few mistakes. Here every thread carries what it knows
// to be complete: it learns from its own waits, and from other threads through barriers. An operation must know those
// before it on the same rows to be complete. Internal to the execution model.
#pragma once

#include <cstddef>
#include <optional>
#include <source_location>
#include <vector>

namespace assay::cuda_host {

/// Numbers of operations that are known to be complete: products of each warp, phases of each mbarrier.
class Known {
 public:
  void learn(std::size_t source, unsigned count);
  void learn(const Known& other);
  unsigned of(std::size_t source) const { return source < counts_.size() ? counts_[source] : 0; }

 private:
  std::vector<unsigned> counts_;
};

/// An operation that another needs and does not know to be complete.
struct Unknown {
  std::optional<std::size_t> warp;  ///< of products; nullopt: a copy
  std::source_location site;
};

/// Who copies to and reads the rows of 128 bytes of a block's dynamic shared memory.
class Boxes {
 public:
  Boxes() = default;
  Boxes(std::size_t warps, std::size_t rows) : warps_(warps), rows_(rows), reads_(warps * rows) {}

  /// A source of Known: mbarrier number n of the block. Warps are the sources before these.
  std::size_t barrier(std::size_t n) const { return warps_ + n; }

  /// Starts a copy to a row, complete with phase number `phase` of `barrier`. Returns what the issuing thread needs and does not know.
  std::optional<Unknown> copy(std::size_t row, std::size_t barrier, unsigned phase, const Known& known,
                              std::source_location site);
  /// Starts product number `product` of a warp, which reads a row. Returns what the issuing thread needs and does not know.
  std::optional<Unknown> read(std::size_t row, std::size_t warp, unsigned product, const Known& known,
                              std::source_location site);

 private:
  struct Copied {
    std::size_t barrier = 0;
    unsigned phases = 0;  ///< complete when so many phases are; 0: never copied to
    std::source_location site;
  };
  struct Read {
    unsigned products = 0;  ///< complete when so many products are
    std::source_location site;
  };
  bool arrived(const Copied& copied, const Known& known) const { return known.of(copied.barrier) >= copied.phases; }

  std::size_t warps_ = 0;
  std::vector<Copied> rows_;
  std::vector<Read> reads_;  ///< [row][warp]: the last of each
};

}  // namespace assay::cuda_host
