// Calls of every operation on random data, for benchmarks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string_view>
#include <vector>

#include "runtime/call.hpp"

namespace assay::bench {

/// A call with dense tensors and the memory behind them.
class OwnedCall {
 public:
  OwnedCall(std::vector<Index> dims, const std::vector<Shape>& shapes, std::vector<double> params = {}) {
    call_.dims = std::move(dims);
    call_.params = std::move(params);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const Shape& shape : shapes) {
      std::vector<float>& values = memory_.emplace_back(static_cast<std::size_t>(shape.size()));
      for (float& value : values) value = uniform(random_);
      call_.tensors.push_back({DType::f32, values.data(), shape, row_major_strides(shape)});
    }
  }

  /// Inserts a tensor of bytes.
  OwnedCall& with_bytes(std::size_t position, const Shape& shape, const std::vector<std::uint8_t>& bytes) {
    std::vector<float>& words = memory_.emplace_back((bytes.size() + 3) / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    call_.tensors.insert(call_.tensors.begin() + static_cast<std::ptrdiff_t>(position),
                         {DType::u8, words.data(), shape, row_major_strides(shape)});
    return *this;
  }

  const Call& get() const { return call_; }
  /// Replaces a tensor by packed bytes [shape], taken from the memory of its floats.
  void pack(std::size_t tensor, const Shape& shape) {
    call_.tensors[tensor] = {DType::u8, call_.tensors[tensor].data, shape, row_major_strides(shape)};
  }

  /// Makes all values of a tensor nonnegative.
  void magnitudes(std::size_t tensor) {
    for (float& x : memory_[tensor]) x = std::fabs(x);
  }

  /// Makes a tensor int32 with every element equal to `value`.
  OwnedCall& integers(std::size_t tensor, std::int32_t value) {
    for (float& x : memory_[tensor]) x = std::bit_cast<float>(value);
    call_.tensors[tensor].dtype = DType::i32;
    return *this;
  }

 private:
  std::mt19937 random_{1};
  std::deque<std::vector<float>> memory_;
  Call call_;
};

/// op is matmul, matmul_nt or matmul_tn.
inline OwnedCall product_call(std::string_view op, Index m, Index k, Index n) {
  const Shape a = op == "matmul_tn" ? Shape{k, m} : Shape{m, k};
  const Shape b = op == "matmul_nt" ? Shape{n, k} : Shape{k, n};
  return OwnedCall({m, k, n}, {a, b, Shape{m, n}});
}

}  // namespace assay::bench
