// What a kernel takes and gives of the calls that its contract admits, where that is not everything.
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

/// Cases are drawn so that they keep to it (falsify/engine/admit.hpp).
struct Limits {
  struct Fixed {
    int tensor = 0;  ///< of integers, all of which have this value
    std::function<double(std::span<const Index> dims, std::span<const double> params)> value{};
  };
  /// It takes not every call.
  bool restricts() const { return refuse || !fixed.empty(); }
  /// It gives this output.
  bool gives(int output) const { return std::ranges::find(absent, output) == absent.end(); }

  /// Why it takes no call with these dims and params.
  std::function<std::optional<std::string>(std::span<const Index> dims, std::span<const double> params)> refuse{};
  /// Changes them into some that it takes, which these and the seed alone decide. False: it found none.
  std::function<bool(std::vector<Index>& dims, std::vector<double>& params, std::uint64_t seed)> repair{};
  std::vector<int> listed{};  ///< dims of which it takes a few values
  std::vector<Fixed> fixed{};
  bool dense = false, aligned = false;           ///< tensors without gaps; on boundaries of 64 bytes
  bool near = false;                             ///< every offset of an element is below 2^31
  std::vector<int> absent{};                     ///< outputs that it does not give and must not touch
  std::vector<std::pair<int, int>> starts_as{};  ///< outputs that hold an input when they are handed over (in place)
  std::vector<int> zeroed{};           ///< outputs that hold zeros when they are handed over (it adds to them)
  std::vector<std::string> rejects{};  ///< tensors, params and dims whose forbidden values it refuses, touching nothing
};

}  // namespace assay
