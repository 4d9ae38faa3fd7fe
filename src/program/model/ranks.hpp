// Ranks: processes that train one model together, each on samples of its own.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "program/model/training.hpp"

namespace assay::program {

/// A rank has ended, so that nothing more can be exchanged with it.
struct RankLost : std::runtime_error {
  RankLost(int of, bool says, const std::string& sentence) : std::runtime_error(sentence), rank(of), speaks(says) {}
  int rank;
  bool speaks;  ///< of the ranks that are left, this one reports it
};

/// Copies between the devices of ranks, in whose memory the pointers are. Each returns when its results may be read.
class DeviceLink {
 public:
  DeviceLink() = default;
  virtual ~DeviceLink() = default;
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  /// Rank r gets the r-th piece of every rank's vector, one rank's behind the other's. The last pieces may be shorter.
  virtual void all_to_all(std::span<const float> vector, float* parts, std::size_t piece) = 0;
  /// Every rank gets the pieces of all ranks as one vector.
  virtual void all_gather(const float* own, std::span<float> vector, std::size_t piece) = 0;
};

/// The calls below are made by all ranks, in the same order; each throws RankLost.
class Ranks {
 public:
  Ranks() = default;
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Its number among the ranks of its host.
  virtual int local_rank() const = 0;

  /// Returns the text of every rank, in their order.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  /// Replaces vectors of one length by their sum. Each element is ((x[0] + x[1]) + x[2]) + ..., in float32 and in the
  /// order of ranks, so that every rank has the same bits.
  virtual void all_reduce(std::span<float> sums) = 0;
};

/// Adds up the gradients of all ranks, and the numbers of samples.
class AllReduce {
 public:
  /// With a link between the devices, reserves what the sum takes there; else gradients pass through the host.
  AllReduce(Ranks& ranks, Trainer& trainer, DeviceLink* link = nullptr);

  /// Throws InputError on every rank, before anything changes, unless all have the same number of elements.
  void operator()();

 private:
  void on_device(std::span<float> gradients);

  Ranks& ranks_;
  Trainer& trainer_;
  DeviceLink* link_;
  std::size_t piece_ = 0;
  std::unique_ptr<Session> sum_;  ///< of the parts of one piece, in the order of ranks
};

/// Elements of the piece of rank r, of a vector whose pieces have `piece` elements but for the last.
inline std::size_t piece_of(std::size_t elements, std::size_t piece, std::size_t r) {
  return std::min(elements, (r + 1) * piece) - std::min(elements, r * piece);
}

/// Makes `to` the sum of parts that lie one behind the other, in the order that Ranks::all_reduce promises.
inline void add_parts(std::span<float> to, const float* parts, std::size_t count) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = parts[i];
  for (std::size_t part = 1; part < count; ++part)
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += parts[part * to.size() + i];
}

/// The rank of a process that is alone, or that mpirun or srun has started with others (through MPI, in a module of its
/// own, so that a build without MPI differs in this alone). Where others were started and this build has no MPI, throws
/// Unavailable on rank 0 and RankLost on the others.
std::unique_ptr<Ranks> ranks_of_this_process();

/// The link between GPUs of which each rank sees its own alone, by NCCL (a module of its own). Null unless all ranks have it.
std::unique_ptr<DeviceLink> link_of_gpus(Ranks& ranks);

}  // namespace assay::program
