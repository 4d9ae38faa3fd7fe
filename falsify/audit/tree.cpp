#include "falsify/audit/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "falsify/engine/random.hpp"

namespace assay::falsify::audit {
namespace {

/// Collects the terms under a node, in order.
void collect(const Tree& tree, std::vector<Index>& terms) {
  if (tree.leaf()) terms.push_back(tree.term);
  for (const Tree& child : tree.children) collect(child, terms);
}
std::vector<Index> terms_of(const Tree& tree) {
  std::vector<Index> terms;
  collect(tree, terms);
  std::ranges::sort(terms);
  return terms;
}

Tree join(Tree left, Tree right) {
  Tree node;
  node.children.push_back(std::move(left));
  node.children.push_back(std::move(right));
  return node;
}

/// A tree over some of the terms, and the number of all terms under its root.
struct Part {
  Tree tree;
  Index size = 1;
};

/// Groups the other terms by the lowest node that they share with the first term. Each group forms a tree of its own; a
/// group whose root is that same node is added all at once.
Part build(const std::vector<Index>& terms, const Under& under) {
  Part part{{terms.front(), {}}, 1};
  std::map<Index, std::vector<Index>> met;
  for (std::size_t j = 1; j < terms.size(); ++j) met[under(terms.front(), terms[j])].push_back(terms[j]);
  for (const auto& [size, others] : met) {
    Part beside = build(others, under);
    if (beside.size == size) {
      beside.tree.children.insert(beside.tree.children.begin(), std::move(part.tree));
      part.tree = std::move(beside.tree);
    } else {
      part.tree = join(std::move(part.tree), std::move(beside.tree));
    }
    part.size = size;
  }
  return part;
}

/// True if every node holds as many terms as measured.
bool adds_up(const Tree& tree, const Under& measured) {
  if (tree.leaf()) return true;
  const auto count = static_cast<Index>(terms_of(tree).size());
  const Index first = terms_of(tree.children[0]).front(), second = terms_of(tree.children[1]).front();
  return measured(first, second) == count &&
         std::ranges::all_of(tree.children, [&](const Tree& child) { return adds_up(child, measured); });
}

/// True if every node but the lowest adds single terms to one sum.
bool is_chain(const Tree& tree) {
  if (tree.leaf()) return true;
  const auto inner = std::ranges::count_if(tree.children, [](const Tree& child) { return !child.leaf(); });
  return inner <= 1 && std::ranges::all_of(tree.children, [](const Tree& child) { return is_chain(child); });
}

/// Lists the terms of a chain from the lowest node up.
void along(const Tree& tree, std::vector<Index>& order) {
  if (tree.leaf()) return order.push_back(tree.term);
  for (const Tree& child : tree.children)
    if (!child.leaf()) along(child, order);
  for (const Tree& child : tree.children)
    if (child.leaf()) order.push_back(child.term);
}

bool is_balanced(const Tree& tree) {
  if (tree.leaf()) return true;
  if (tree.children.size() != 2) return false;
  const std::size_t left = terms_of(tree.children[0]).size(), right = terms_of(tree.children[1]).size();
  return std::max(left, right) - std::min(left, right) <= 1 && is_balanced(tree.children[0]) &&
         is_balanced(tree.children[1]);
}

/// Returns the tree above the largest subtrees that are chains, with these as its leaves.
Tree above_chains(const Tree& tree, std::vector<const Tree*>& chains) {
  if (is_chain(tree)) {
    chains.push_back(&tree);
    return {static_cast<Index>(chains.size()) - 1, {}};
  }
  Tree node;
  for (const Tree& child : tree.children) node.children.push_back(above_chains(child, chains));
  return node;
}

std::string shape_of_chain(const Tree& chain) {
  std::vector<Index> order;
  along(chain, order);
  const std::string at_once = widest(chain) > 2 ? fmt::format(", {} at once", widest(chain)) : "";
  if (order.size() < 3) return "sequential" + at_once;
  // The lowest two terms have no order.
  if (std::is_sorted(order.begin() + 2, order.end()) && std::max(order[0], order[1]) < order[2])
    return "sequential" + at_once;
  std::ranges::reverse(order);
  if (std::is_sorted(order.begin(), order.end() - 2) &&
      *(order.end() - 3) < std::min(*(order.end() - 2), *(order.end() - 1)))
    return "sequential from the last" + at_once;
  return "sequential in another order" + at_once;
}

/// Returns the step between neighbouring terms if it is constant, otherwise 0.
Index step_of(const std::vector<Index>& terms) {
  const Index step = terms.size() < 2 ? 1 : terms[1] - terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i)
    if (terms[i] - terms[i - 1] != step) return 0;
  return step;
}

/// True if the tree is a running sum of blocks: one inner child is the sum so far and the other a chain.
bool runs_over_blocks(const Tree& tree) {
  if (is_chain(tree)) return true;
  const auto is_sum = [](const Tree& t) { return !is_chain(t); };
  return std::ranges::count_if(tree.children, is_sum) <= 1 &&
         std::ranges::all_of(tree.children, [&](const Tree& t) { return !is_sum(t) || runs_over_blocks(t); });
}

std::string shape_above(const Tree& tree) {
  return is_balanced(tree)                          ? "pairwise"
         : is_chain(tree) || runs_over_blocks(tree) ? "one after another"
                                                    : "by a tree of its own";
}

}  // namespace

std::optional<Tree> reveal(Index n, const Under& under) {
  std::vector<Index> all;
  for (Index i = 0; i < n; ++i) all.push_back(i);
  std::map<std::pair<Index, Index>, Index> known;
  const Under remembered = [&](Index i, Index j) {
    const auto [at, added] = known.try_emplace({std::min(i, j), std::max(i, j)}, 0);
    if (added) at->second = under(i, j);
    return at->second;
  };
  const Part whole = build(all, remembered);
  if (!adds_up(whole.tree, remembered)) return std::nullopt;
  Random random(static_cast<std::uint64_t>(n));
  for (Index pair = 0; pair < 2 * n; ++pair) {
    const Index i = random.between(0, n - 1), j = random.between(0, n - 1);
    if (i != j && audit::under(whole.tree, i, j) != under(j, i)) return std::nullopt;
  }
  return whole.tree;
}

Index depth(const Tree& tree) {
  Index deepest = 0;
  for (const Tree& child : tree.children) deepest = std::max(deepest, 1 + depth(child));
  return deepest;
}

Index widest(const Tree& tree) {
  auto most = static_cast<Index>(tree.children.size());
  for (const Tree& child : tree.children) most = std::max(most, widest(child));
  return most;
}

Index under(const Tree& tree, Index i, Index j) {
  for (const Tree& child : tree.children) {
    const std::vector<Index> terms = terms_of(child);
    const bool has_i = std::ranges::binary_search(terms, i), has_j = std::ranges::binary_search(terms, j);
    if (has_i && has_j) return under(child, i, j);
    if (has_i || has_j) break;
  }
  return static_cast<Index>(terms_of(tree).size());
}

std::string canonical(const Tree& tree) {
  if (tree.leaf()) return fmt::to_string(tree.term);
  std::map<Index, std::string> children;
  for (const Tree& child : tree.children) children[terms_of(child).front()] = canonical(child);
  std::string text;
  for (const auto& [first, child] : children) text += (text.empty() ? "(" : " ") + child;
  return text + ")";
}

std::string hash(const Tree& tree) { return fmt::format("{:08x}", derive(0, canonical(tree)) >> 32); }

std::string words(const Tree& tree) {
  if (tree.leaf()) return "one term";
  if (is_balanced(tree) && terms_of(tree).size() > 3) {
    const Tree* lowest = &tree;
    while (!lowest->children[0].leaf() && terms_of(*lowest).size() > 3) lowest = &lowest->children[0];
    const Index apart = step_of(terms_of(*lowest));
    return apart > 1 ? fmt::format("pairwise, from terms {} apart", apart) : "pairwise";
  }
  if (is_chain(tree)) return shape_of_chain(tree);
  std::vector<const Tree*> chains;
  const Tree top = above_chains(tree, chains);
  std::size_t least = terms_of(tree).size(), most = 0;
  bool neighbours = true, interleaved = true;
  std::string inside;
  for (const Tree* chain : chains) {
    const std::vector<Index> terms = terms_of(*chain);
    const Index step = step_of(terms);
    neighbours = neighbours && step == 1;
    interleaved = interleaved && step >= 1 && (step > 1 || terms.size() == 1);
    least = std::min(least, terms.size()), most = std::max(most, terms.size());
    const std::string shape = terms.size() < 3 && widest(*chain) < 3 ? "" : shape_of_chain(*chain);
    if (!shape.empty() && inside != shape) inside = inside.empty() ? shape : "in several orders";
  }
  const std::string size = least == most ? fmt::to_string(most) : fmt::format("{} to {}", least, most);
  const std::string which = neighbours    ? fmt::format("blocks of {}", size)
                            : interleaved ? fmt::format("{} interleaved sums of {}", chains.size(), size)
                                          : fmt::format("{} sums of {}", chains.size(), size);
  return fmt::format("{}{}, added {}", which, inside.empty() ? "" : ", " + inside, shape_above(top));
}

}  // namespace assay::falsify::audit
