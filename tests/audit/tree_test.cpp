// Known orders of summation are recovered, and answers that fit no tree are reported.
#include "falsify/audit/tree.hpp"

#include <gtest/gtest.h>

#include "falsify/engine/random.hpp"

namespace assay::falsify::audit {
namespace {

Tree leaf(Index term) { return {term, {}}; }
Tree node(std::vector<Tree> children) { return {-1, std::move(children)}; }

Tree sequential(Index from, Index to, Index step = 1) {
  Tree sum = leaf(from);
  for (Index i = from + step; i < to; i += step) sum = node({sum, leaf(i)});
  return sum;
}
Tree pairwise(Index from, Index to) {
  if (to - from == 1) return leaf(from);
  return node({pairwise(from, (from + to) / 2), pairwise((from + to) / 2, to)});
}

/// Reveals a tree from its counts and expects the same tree.
Tree found(const Tree& tree, Index n) {
  const auto again = reveal(n, [&](Index i, Index j) { return under(tree, i, j); });
  EXPECT_TRUE(again.has_value());
  EXPECT_EQ(canonical(again.value_or(leaf(0))), canonical(tree));
  return again.value_or(leaf(0));
}

TEST(Tree, KnownOrdersAreNamed) {
  EXPECT_EQ(words(found(sequential(0, 64), 64)), "sequential");
  EXPECT_EQ(depth(sequential(0, 64)), 63);
  EXPECT_EQ(words(found(pairwise(0, 64), 64)), "pairwise");
  EXPECT_EQ(depth(pairwise(0, 64)), 6);
  Tree reversed = leaf(31);
  for (Index i = 30; i >= 0; --i) reversed = node({reversed, leaf(i)});
  EXPECT_EQ(words(found(reversed, 32)), "sequential from the last");
  const Tree lanes =
      node({node({sequential(0, 32, 4), sequential(1, 32, 4)}), node({sequential(2, 32, 4), sequential(3, 32, 4)})});
  EXPECT_EQ(words(found(lanes, 32)), "4 interleaved sums of 8, sequential, added pairwise");
  Tree blocks = sequential(0, 8);
  for (Index i = 8; i < 32; i += 8) blocks = node({blocks, sequential(i, i + 8)});
  EXPECT_EQ(words(found(blocks, 32)), "blocks of 8, sequential, added one after another");
  Tree cores = leaf(0);
  cores = node({leaf(0), leaf(1), leaf(2), leaf(3)});
  for (Index i = 4; i < 32; i += 4) cores = node({cores, leaf(i), leaf(i + 1), leaf(i + 2), leaf(i + 3)});
  EXPECT_EQ(words(found(cores, 32)), "sequential, 5 at once");
  EXPECT_EQ(widest(cores), 5);
}

TEST(Tree, RandomTreesAreFoundAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Index n = random.between(2, 40);
    std::vector<Tree> parts;
    for (Index i = 0; i < n; ++i) parts.push_back(leaf(i));
    while (parts.size() > 1) {
      std::vector<Tree> children;
      const std::size_t many = random.chance(0.2) ? 3 : 2;
      for (std::size_t c = 0; c < many && !parts.empty(); ++c) {
        const std::size_t at = random.below(parts.size());
        children.push_back(std::move(parts[at]));
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
      }
      parts.push_back(children.size() == 1 ? std::move(children[0]) : node(std::move(children)));
    }
    found(parts[0], n);
  }
}

TEST(Tree, DifferentTreesHaveDifferentHashes) {
  EXPECT_NE(hash(sequential(0, 64)), hash(pairwise(0, 64)));
  EXPECT_EQ(hash(node({leaf(0), leaf(1)})), hash(node({leaf(1), leaf(0)}))) << "addition commutes";
}

TEST(Tree, AnswersOfNoTreeAreTold) {
  const Tree tree = pairwise(0, 32);
  EXPECT_FALSE(reveal(32, [&](Index i, Index j) { return i + j == 7 ? Index{5} : under(tree, i, j); }));
  int asked = 0;  // another order in every run
  EXPECT_FALSE(reveal(32, [&](Index i, Index j) { return under(++asked % 2 == 0 ? tree : sequential(0, 32), i, j); }));
  Random random(1);
  EXPECT_FALSE(reveal(32, [&](Index, Index) { return random.between(2, 32); }));
}

}  // namespace
}  // namespace assay::falsify::audit
