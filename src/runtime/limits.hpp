// Restrictions of a kernel that supports only some calls or outputs of its contract.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/shape.hpp"

namespace assay {

/// Cases are drawn within these limits (falsify/engine/admit.hpp).
struct Limits {
  struct Fixed {
    int tensor = 0;  ///< integer tensor whose elements all have this value
    std::function<double(std::span<const Index> dims, std::span<const double> params)> value{};
  };
  /// Returns whether the kernel does not take every call.
  bool restricts() const { return refuse || !fixed.empty(); }
  /// Returns whether the kernel gives this output.
  bool gives(int output) const { return std::ranges::find(absent, output) == absent.end(); }

  /// Returns why the kernel takes no call with these dims and params.
  std::function<std::optional<std::string>(std::span<const Index> dims, std::span<const double> params)> refuse{};
  /// Changes dims and params into ones that the kernel takes; the result depends on the arguments alone. Returns false
  /// if it finds none.
  std::function<bool(std::vector<Index>& dims, std::vector<double>& params, std::uint64_t seed)> repair{};
  std::vector<int> listed{};  ///< dims restricted to a few values
  std::vector<Fixed> fixed{};
  bool dense = false, aligned = false;           ///< tensors without gaps; on boundaries of 64 bytes
  bool near = false;                             ///< every offset of an element is below 2^31
  std::vector<int> absent{};                     ///< outputs that the kernel does not give and must not touch
  std::vector<std::pair<int, int>> starts_as{};  ///< outputs that hold an input before the call (in place)
  std::vector<int> zeroed{};                     ///< outputs that hold zeros before the call (the kernel adds to them)
  std::vector<std::string> rejects{};  ///< tensors, params and dims: forbidden values are refused, no memory touched
};

}  // namespace assay
