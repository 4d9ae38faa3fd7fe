#include "serve/transfer.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

#include "runtime/registry.hpp"

namespace assay::contract {
namespace {

using Bytes = std::vector<std::byte>;

/// Calls f(address, count) for each run of contiguous elements, in row-major order.
template <class F>
void for_each_run(const Tensor& tensor, const F& f) {
  if (tensor.shape.size() == 0) return;
  const int rank = tensor.shape.rank();
  const bool dense = rank > 0 && (tensor.strides[rank - 1] == 1 || tensor.shape[rank - 1] == 1);
  const std::size_t run = dense ? static_cast<std::size_t>(tensor.shape[rank - 1]) : 1;
  const int outer = dense ? rank - 1 : rank;
  Shape at;
  for (int axis = 0; axis < outer; ++axis) at.push_back(0);
  for (;;) {
    Index offset = 0;
    for (int axis = 0; axis < outer; ++axis) offset += at[axis] * tensor.strides[axis];
    f(static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(offset) * size_of(tensor.dtype),
      run * size_of(tensor.dtype));
    int axis = outer - 1;
    for (; axis >= 0 && ++at[axis] == tensor.shape[axis]; --axis) at[axis] = 0;
    if (axis < 0) return;
  }
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.size()) * size_of(tensor.dtype);
}

Bytes gathered(const Tensor& tensor) {
  Bytes dense(bytes_of(tensor));
  std::size_t done = 0;
  for_each_run(tensor, [&](const std::byte* run, std::size_t bytes) {
    std::memcpy(dense.data() + done, run, bytes);
    done += bytes;
  });
  return dense;
}

void scatter(const Bytes& dense, const Tensor& tensor) {
  std::size_t done = 0;
  for_each_run(tensor, [&](std::byte* run, std::size_t bytes) {
    std::memcpy(run, dense.data() + done, bytes);
    done += bytes;
  });
}

}  // namespace

void run_with_copies(const OpDescriptor& op, const Kernel& kernel, const Call& host, Device& device) {
  if (device.host_visible()) return kernel.run(host, device);
  Call call = host;
  std::vector<Buffer> memory;
  for (std::size_t t = 0; t < host.tensors.size(); ++t) {
    const Tensor& from = host.tensors[t];
    const Buffer& buffer = memory.emplace_back(device.allocate(bytes_of(from)));
    if (op.tensors[t].role != Role::out) device.upload(buffer.address(), gathered(from).data(), buffer.bytes());
    call.tensors[t].data = buffer.address();
    call.tensors[t].strides = row_major_strides(from.shape);
  }
  kernel.run(call, device);
  device.synchronize();
  std::vector<Bytes> results(host.tensors.size());
  for (std::size_t t = 0; t < results.size(); ++t) {
    if (op.tensors[t].role == Role::in) continue;
    results[t].resize(memory[t].bytes());
    device.download(results[t].data(), memory[t].address(), memory[t].bytes());
  }
  for (std::size_t t = 0; t < results.size(); ++t)
    if (op.tensors[t].role != Role::in) scatter(results[t], host.tensors[t]);
}

}  // namespace assay::contract
