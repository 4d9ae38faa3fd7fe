// The order of a kernel's additions as a tree over its terms, revealed by black-box probes (after Xie et al., FPRev,
// USENIX ATC 2025).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify::audit {

/// A leaf (term >= 0), or a node that adds its children: two, or more at once (tensor cores).
struct Tree {
  Index term = -1;
  std::vector<Tree> children{};

  bool leaf() const { return children.empty(); }
};

/// Returns the number of terms, out of n, under the lowest node that terms i and j share: 2 to n.
using Under = std::function<Index(Index i, Index j)>;

/// Returns the tree over n terms, with n - 1 queries if they are added one by one and about n log n at most. Empty if
/// the answers fit no tree: further queries for random pairs must agree with it.
std::optional<Tree> reveal(Index n, const Under& under);

/// Returns the number of additions on the longest path from a term to the sum.
Index depth(const Tree& tree);
/// Returns the largest number of children of any node.
Index widest(const Tree& tree);
/// Returns the number of terms under the lowest node that i and j share.
Index under(const Tree& tree, Index i, Index j);
/// Returns "((0 1) 2)": children in the order of their first terms.
std::string canonical(const Tree& tree);
/// Returns eight hexadecimal digits of the canonical form's hash.
std::string hash(const Tree& tree);
/// Returns "sequential", "pairwise", "4 interleaved sums, sequential, added pairwise", "blocks of 16, ...".
std::string words(const Tree& tree);

}  // namespace assay::falsify::audit
