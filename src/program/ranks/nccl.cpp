// A link between GPUs by NCCL: one process a GPU. It moves numbers; Assay's own kernels add them up.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "program/model/ranks.hpp"

namespace assay::program {
namespace {

void expect(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) throw std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(result));
}
void expect(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(result));
}

class Nccl : public DeviceLink {
 public:
  explicit Nccl(Ranks& ranks) : rank_(ranks.rank()), size_(ranks.size()) {
    ncclUniqueId id{};
    if (rank_ == 0) expect(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string of_first = ranks.exchange(std::string(reinterpret_cast<const char*>(&id), sizeof id))[0];
    std::memcpy(&id, of_first.data(), sizeof id);
    expect(cudaSetDevice(0), "cudaSetDevice");  // each rank sees its own GPU alone
    expect(ncclCommInitRank(&comm_, size_, id, rank_), "ncclCommInitRank");
  }
  ~Nccl() override { ncclCommDestroy(comm_); }

  void all_to_all(std::span<const float> vector, float* parts, std::size_t piece) override {
    const std::size_t own = piece_of(vector.size(), piece, static_cast<std::size_t>(rank_));
    move([&](int r) {
      const auto at = static_cast<std::size_t>(r);
      send(vector.data() + std::min(vector.size(), at * piece), piece_of(vector.size(), piece, at), r);
      receive(parts + at * piece, own, r);
    });
  }
  void all_gather(const float* own, std::span<float> vector, std::size_t piece) override {
    const std::size_t count = piece_of(vector.size(), piece, static_cast<std::size_t>(rank_));
    move([&](int r) {
      const auto at = static_cast<std::size_t>(r);
      send(own, count, r);
      receive(vector.data() + std::min(vector.size(), at * piece), piece_of(vector.size(), piece, at), r);
    });
  }

 private:
  /// Behind all work of the device, on its default stream.
  template <class F>
  void move(const F& with) {
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    expect(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) with(r);
    expect(ncclGroupEnd(), "ncclGroupEnd");
    expect(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  void send(const float* from, std::size_t count, int to) {
    if (count > 0) expect(ncclSend(from, count, ncclFloat, to, comm_, nullptr), "ncclSend");
  }
  void receive(float* into, std::size_t count, int from) {
    if (count > 0) expect(ncclRecv(into, count, ncclFloat, from, comm_, nullptr), "ncclRecv");
  }

  int rank_, size_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace
}  // namespace assay::program

extern "C" assay::program::DeviceLink* assay_open_link(assay::program::Ranks* ranks) {
  return new assay::program::Nccl(*ranks);
}
