// The matrix product that linear layers and LoRA are built from, described independently of any back end.
#pragma once

#include <algorithm>

#include "core/view.hpp"

namespace assay {

/// scale op(A) · op(B): one more product in the sums of an AffineProduct, all float32.
struct ProductTerm {
  StorageView a{};
  bool a_transposed = false;
  StorageView b{};
  bool b_transposed = false;
  float scale = 1;
};

/// C = scale op(A) · op(B) + addend for C [m,n], op(A) [m,k], op(B) [k,n] with rows of unit stride. A, B and the addend
/// are of one storage format, C of the same or of float32; sums are float32 and rounded once, at the store. C shares no
/// memory with A or B. k = 0 gives C = addend. Products of layers in 16 bits with adapters in float32 (lora.hpp) have A
/// and B of two formats, or a second term; only products in 16 bits take these.
struct AffineProduct {
  StorageView a;
  bool a_transposed = false;  ///< A is stored [k,m]
  StorageView b;
  bool b_transposed = false;  ///< B is stored [n,k]
  StorageView c;
  float scale = 1;
  /// Shape [m,n] (may be C itself) or [1,n] (broadcast to every row). A default or empty view stands for 0.
  StorageView addend{};
  ProductTerm second{};  ///< added before C is rounded, with a sum of its own length; a default view stands for none

  Index m() const { return c.dim(0); }
  Index n() const { return c.dim(1); }
  Index k() const { return a.dim(a_transposed ? 0 : 1); }
  bool has_second() const { return second.a.rank() == 2; }
  Index second_k() const { return has_second() ? second.a.dim(second.a_transposed ? 0 : 1) : 0; }
  bool adds() const { return addend.rank() == 2 && addend.dim(0) > 0; }
  /// Returns the row stride of the addend; 0 broadcasts its only row.
  Index addend_step() const { return addend.dim(0) == 1 ? 0 : addend.stride(0); }
};

struct ProductExtents {
  Index m, k, n;
};

/// Returns the extents of the largest product in a call of linear or of a LoRA operation (linear.hpp, lora.hpp).
template <class Args>
ProductExtents largest_products(const Args& args) {
  if constexpr (!requires { args.s; }) return {args.out, args.r, args.in};
  else if constexpr (!requires { args.r; }) return {args.s, args.in, args.out};
  else if constexpr (requires { args.dy; })
    return {std::max({args.s, args.out, args.r}), std::max({args.s, args.out, args.r}), std::max(args.in, args.r)};
  else return {args.s, std::max(args.in, args.r), std::max(args.out, args.r)};
}

}  // namespace assay
