// The order in which a kernel adds: a tree over its terms, found from outside (after Xie et al., FPRev, USENIX ATC 2025).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.hpp"

namespace assay::falsify::audit {

/// A leaf (term >= 0), or a node at which its children are added: two of them, or more at once (tensor cores).
struct Tree {
  Index term = -1;
  std::vector<Tree> children{};

  bool leaf() const { return children.empty(); }
};

/// How many of all n terms lie under the lowest node that terms i and j share: 2 to n.
using Under = std::function<Index(Index i, Index j)>;

/// The tree over n terms, from n - 1 questions where they are added one by one to about n log n. Empty where the answers are
/// those of no tree: further ones, about pairs drawn at random, must agree with it.
std::optional<Tree> reveal(Index n, const Under& under);

/// Additions on the longest way from a term to the sum.
Index depth(const Tree& tree);
/// Most children of any node.
Index widest(const Tree& tree);
/// Terms under the lowest node that i and j share.
Index under(const Tree& tree, Index i, Index j);
/// "((0 1) 2)": children in the order of their first terms.
std::string canonical(const Tree& tree);
/// Eight hexadecimal digits of the canonical form.
std::string hash(const Tree& tree);
/// "sequential", "pairwise", "4 interleaved sums, sequential, added pairwise", "blocks of 16, ...".
std::string words(const Tree& tree);

}  // namespace assay::falsify::audit
