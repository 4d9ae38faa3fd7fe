// CPU kernels on several threads: the bits of one thread, in products and attention large enough to be divided.
#include <cblas.h>
#include <gtest/gtest.h>

#include <random>

#include "contract/descriptor.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay {
namespace {

using Bytes = std::vector<std::byte>;

/// The outputs of a call on dense tensors: reals are normal, integers `whole`.
std::vector<Bytes> outputs(const Kernel& kernel, const std::vector<Index>& dims, std::int32_t whole, int threads) {
  const OpDescriptor& op = operation(kernel.op);
  Call call{.dims = dims, .params = {}, .tensors = {}};
  for (const ParamInfo& param : op.params)
    call.params.push_back(param.choices.empty() ? param.typical : param.choices[0]);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Bytes> memory;
  for (const TensorInfo& info : op.tensors) {
    const Shape shape = info.shape(dims);
    const DType dtype = info.storage ? kernel.storage : info.dtype;
    const auto size = static_cast<std::size_t>(shape.size());
    Bytes& bytes = memory.emplace_back(size * size_of(dtype));
    if (dtype == DType::i32) {
      std::fill_n(reinterpret_cast<std::int32_t*>(bytes.data()), size, info.name == "lengths" ? whole : 0);
    } else {
      with_storage(dtype, [&]<class S>(S) {
        for (std::size_t i = 0; i < size; ++i) reinterpret_cast<S*>(bytes.data())[i] = narrow<S>(normal(random));
      });
    }
    call.tensors.push_back({dtype, bytes.data(), shape, row_major_strides(shape)});
  }
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(threads);
  kernel.run(call, device(Backend::cpu));
  openblas_set_num_threads(before);
  std::vector<Bytes> of;
  for (std::size_t t = 0; t < memory.size(); ++t)
    if (op.tensors[t].role != Role::in) of.push_back(std::move(memory[t]));
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
    using Dims = std::vector<Index>;
    const std::vector<Dims> shapes =
        product ? std::vector<Dims>{{77, 1100, 301}, {301, 1100, 77}, {11, 60000, 31}, {100, 250, 700}}
                : std::vector<Dims>{{1, 300, 330, 3, 6, 72}, {2, 900, 700, 1, 1, 40}};
    for (Dims dims : shapes) {
      if (kernel.op == "linear") dims.push_back(1);  // a bias
      const auto whole = static_cast<std::int32_t>(dims[2]);
      const std::vector<Bytes> one = outputs(kernel, dims, whole, 1);
      for (const int threads : {2, 3, 5, 64}) {
        const std::vector<Bytes> many = outputs(kernel, dims, whole, threads);
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
