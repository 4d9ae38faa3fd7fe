// CPU kernels on several threads: the bits of one thread, in products and attention large enough to be divided.
#include <cblas.h>
#include <gtest/gtest.h>

#include <array>

#include "kernels/cpu/threads.hpp"
#include "runtime/registry.hpp"
#include "tests/bench/host_call.hpp"

namespace assay {
namespace {

using bench::Dims;
using bench::HostCall;
using Bytes = std::vector<std::byte>;

std::vector<Bytes> outputs(const Kernel& kernel, const Dims& dims, int threads) {
  const OpDescriptor& op = operation(kernel.op);
  HostCall call(op, dims, kernel.storage);
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(threads);
  kernel.run(call.call, device(Backend::cpu));
  openblas_set_num_threads(before);
  std::vector<Bytes> of;
  for (std::size_t t = 0; t < call.memory.size(); ++t)
    if (op.tensors[t].role != Role::in) of.push_back(std::move(call.memory[t]));
  return of;
}

TEST(Threads, GiveTheBitsOfOne) {
  int tried = 0;
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != Backend::cpu || kernel.role != KernelRole::kernel) continue;
    const bool product = kernel.id.find("/highway_tiled") != std::string_view::npos &&
                         (kernel.op.starts_with("matmul") || kernel.op == "linear"),
               attention = kernel.id.find("/highway") != std::string_view::npos &&
                           (kernel.op == "attention" || kernel.op == "attention_backward");
    if (!product && !attention) continue;
    ++tried;
    // Parts of several heights and widths, and fewer parts than threads; terms in two blocks of the matrix unit.
    std::vector<Dims> shapes{{{"batch", 1}, {"s", 300}, {"t", 330}, {"kv_heads", 3}, {"heads", 6}, {"d", 72}},
                             {{"batch", 2}, {"s", 900}, {"t", 700}, {"kv_heads", 1}, {"heads", 1}, {"d", 40}}};
    if (product) {
      shapes.clear();
      for (const auto& [m, k, n] :
           {std::array<Index, 3>{77, 1100, 301}, {301, 1100, 77}, {11, 60000, 31}, {100, 250, 700}})
        shapes.push_back(kernel.op == "linear" ? Dims{{"s", m}, {"in", k}, {"out", n}, {"biases", 1}}
                                               : Dims{{"m", m}, {"k", k}, {"n", n}});
    }
    for (const Dims& dims : shapes) {
      const std::vector<Bytes> one = outputs(kernel, dims, 1);
      for (const int threads : {2, 3, 5, 64}) {
        const std::vector<Bytes> many = outputs(kernel, dims, threads);
        for (std::size_t t = 0; t < one.size(); ++t)
          EXPECT_TRUE(one[t] == many[t]) << kernel.id << ", output " << t << ", " << threads << " threads";
      }
    }
  }
  EXPECT_EQ(tried, 18);
}

TEST(Threads, ShareOutEveryItemOnce) {
  for (const Index count : {1, 5, 31, 32, 33, 1000}) {
    for (const Index unit : {1, 12, 32}) {
      for (const Index threads : {1, 2, 7, 64}) {
        Index next = 0;
        for (Index t = 0; t < threads; ++t) {
          const auto [begin, end] = cpu::share(count, unit, t, threads);
          EXPECT_EQ(begin, next);
          EXPECT_TRUE(begin == count || begin % unit == 0);
          next = end;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

}  // namespace
}  // namespace assay
