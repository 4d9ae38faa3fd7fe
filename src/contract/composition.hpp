// Calls composed from calls: the `by:` texts of gradients, and dims that follow from shapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/descriptor.hpp"

namespace assay::contract {

/// "matmul_nt(dc, b)": an operation and the names of the tensors that it reads, in order.
struct Composition {
  std::string_view op;
  std::vector<std::string_view> arguments;

  explicit Composition(std::string_view text);
};

/// Position, among the tensors, of the composed call's output that is the gradient of `input`: the one called d<input>,
/// or the only one. Throws InputError where there is neither.
std::size_t gradient_output(const OpDescriptor& composed, std::string_view input);

/// Finds the dims of a call from shapes of its tensors. Every function throws InputError, placed at `where`, on a
/// contradiction.
class DimBinding {
 public:
  DimBinding(const OpDescriptor& op, std::string where);

  /// Tensor `t` has this shape: its rank is the contract's, and extents that the contract writes as the name of a dim
  /// are that dim.
  void shape(int t, const Shape& shape);
  void dim(std::string_view name, Index extent);
  std::optional<Index> operator[](std::size_t dim) const { return extents_[dim]; }
  /// All dims, once every given shape is what the contract makes of them.
  std::vector<Index> dims() const;

 private:
  void bind(std::size_t dim, Index extent, const std::string& by);

  const OpDescriptor& op_;
  std::string where_;
  std::vector<std::optional<Index>> extents_;
  std::vector<std::string> bound_by_;
  std::vector<std::pair<int, Shape>> given_;
};

/// A dim by its position, with an extent.
struct BoundDim {
  std::size_t dim;
  Index extent;
};

/// Dims of a composed call that no tensor it reads has as an extent of its own, where the call computes the gradient of
/// the operation's tensor `input`. Those of `op`_backward are the operation's own of the same name; others follow from
/// the gradient's shape, the input's.
std::vector<BoundDim> free_dims(const OpDescriptor& composed, const OpDescriptor& op, std::span<const Index> dims,
                                std::size_t input);

}  // namespace assay::contract
