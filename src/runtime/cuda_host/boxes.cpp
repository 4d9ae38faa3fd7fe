#include "runtime/cuda_host/boxes.hpp"

#include <algorithm>

namespace assay::cuda_host {

void Known::learn(std::size_t source, unsigned count) {
  if (source >= counts_.size()) counts_.resize(source + 1);
  counts_[source] = std::max(counts_[source], count);
}

void Known::learn(const Known& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t s = 0; s < other.counts_.size(); ++s) counts_[s] = std::max(counts_[s], other.counts_[s]);
}

std::optional<Unknown> Boxes::copy(std::size_t row, std::size_t barrier, unsigned phase, const Known& known,
                                   std::source_location site) {
  Copied& copied = rows_[row];
  if (!arrived(copied, known)) return Unknown{std::nullopt, copied.site};
  for (std::size_t w = 0; w < warps_; ++w)
    if (const Read& read = reads_[row * warps_ + w]; known.of(w) < read.products) return Unknown{w, read.site};
  copied = {barrier, phase + 1, site};
  // Who knows of this copy knows of the reads before it.
  std::fill_n(reads_.begin() + static_cast<std::ptrdiff_t>(row * warps_), warps_, Read{});
  return std::nullopt;
}

std::optional<Unknown> Boxes::read(std::size_t row, std::size_t warp, unsigned product, const Known& known,
                                   std::source_location site) {
  const Copied& copied = rows_[row];
  if (!arrived(copied, known)) return Unknown{std::nullopt, copied.site};
  reads_[row * warps_ + warp] = {product + 1, site};
  return std::nullopt;
}

}  // namespace assay::cuda_host
