// Calls of any operation on dense host memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"
#include "kernels/storage.hpp"

namespace assay::bench {

using Dims = std::map<std::string_view, Index>;

/// Dense tensors of a call: reals are uniform in [-1, 1), integers the `t` of attention, or 0.
struct HostCall {
  std::vector<std::vector<std::byte>> memory;
  Call call;

  HostCall(const OpDescriptor& op, const Dims& dims, DType storage) {
    for (const DimInfo& dim : op.dims) call.dims.push_back(dims.at(dim.name));
    for (const ParamInfo& param : op.params)
      call.params.push_back(param.choices.empty() ? param.typical : param.choices[0]);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const TensorInfo& info : op.tensors) {
      const Shape shape = info.shape(call.dims);
      const DType dtype = info.storage ? storage : info.dtype;
      const auto size = static_cast<std::size_t>(shape.size());
      std::vector<std::byte>& bytes = memory.emplace_back(size * size_of(dtype));
      if (dtype == DType::i32) {
        const auto value = static_cast<std::int32_t>(info.name == "lengths" ? dims.at("t") : 0);
        std::fill_n(reinterpret_cast<std::int32_t*>(bytes.data()), size, value);
      } else {
        with_storage(dtype, [&]<class S>(S) {
          for (std::size_t i = 0; i < size; ++i) reinterpret_cast<S*>(bytes.data())[i] = narrow<S>(uniform(random));
        });
      }
      call.tensors.push_back({dtype, bytes.data(), shape, row_major_strides(shape)});
    }
  }
};

}  // namespace assay::bench
