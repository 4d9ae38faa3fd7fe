// Includes found in text: what is followed, what is left to the system, and what is owned up to as unknown.
#include "falsify/gate/includes.hpp"

#include <gtest/gtest.h>

namespace assay::falsify {
namespace {

using Set = std::set<std::string>;

/// Edges of kernels/cpu/a.cpp with this text, in a tree with some files.
Edges edges_of(const std::string& text, std::map<std::string, std::string, std::less<>> others = {}) {
  Tree tree;
  tree.files = std::move(others);
  tree.files["kernels/cpu/a.cpp"] = text;
  tree.files["src/core/sum.hpp"] = "";
  return Includes(tree).of("kernels/cpu/a.cpp");
}

TEST(Includes, OfTheRepositoryAreFollowedWhereverTheyAre) {
  EXPECT_EQ(edges_of("#include \"core/sum.hpp\"\n").files, Set{"src/core/sum.hpp"});
  EXPECT_EQ(edges_of("  #  include <core/sum.hpp>  // why\n").files, Set{"src/core/sum.hpp"});
  EXPECT_EQ(edges_of("/* a */ #include \"core/sum.hpp\"\n").files, Set{"src/core/sum.hpp"});
  EXPECT_EQ(edges_of("#include \\\n \"core/sum.hpp\"\n").files, Set{"src/core/sum.hpp"});
  EXPECT_EQ(edges_of("#if 0\n#include \"b.hpp\"\n#endif", {{"kernels/cpu/b.hpp", ""}}).files, Set{"kernels/cpu/b.hpp"});
  EXPECT_EQ(edges_of("#include \"../vulkan/b.hpp\"\n", {{"kernels/vulkan/b.hpp", ""}}).files,
            Set{"kernels/vulkan/b.hpp"});
  EXPECT_EQ(edges_of("#define HWY_TARGET_INCLUDE \"kernels/cpu/b.cpp\"\n", {{"kernels/cpu/b.cpp", ""}}).files,
            Set{"kernels/cpu/b.cpp"});
}

TEST(Includes, OfLibrariesAreNotOurs) {
  const Edges edges = edges_of("#include <vector>\n#include \"hwy/highway.h\"\n#include <fmt/format.h>\n");
  EXPECT_TRUE(edges.files.empty());
  EXPECT_TRUE(edges.unknown.empty());
}

TEST(Includes, ThatCannotBeFollowedAreSaid) {
  const auto unknown = [](const std::string& text) { return edges_of(text).unknown; };
  EXPECT_EQ(unknown("\n#include CHOSEN\n"), std::vector<std::string>{"kernels/cpu/a.cpp:2: #include CHOSEN"});
  EXPECT_EQ(unknown("#include \"core/gone.hpp\"\n").size(), 1U);
  EXPECT_EQ(unknown("#include <core/gone.hpp>\n").size(), 1U);
  EXPECT_EQ(unknown("#include \"gone.hpp\"\n").size(), 1U);
  EXPECT_EQ(unknown("#include \"ops/gone.hpp\"\n").size(), 1U);
  EXPECT_EQ(unknown("#include \"shaders/gone.hpp\"\n").size(), 1U);
  EXPECT_EQ(unknown("#include \"open.hpp\n").size(), 1U);
}

TEST(Includes, OfGeneratedFilesLeadToWhatTheyAreMadeFrom) {
  EXPECT_EQ(edges_of("#include \"ops/scale.hpp\"\n", {{"contracts/scale.yaml", ""}}).files,
            Set{"contracts/scale.yaml"});
  EXPECT_EQ(edges_of("#include \"scale_obligations.hpp\"\n", {{"contracts/scale.yaml", ""}}).files,
            Set{"contracts/scale.yaml"});
  const std::map<std::string, std::string, std::less<>> shaders = {
      {"kernels/vulkan/s.cmake",
       "foreach(w 64 128)\n  assay_add_shader(target s.comp s_${w}_wide W=${w})\nendforeach()\n"},
      {"kernels/vulkan/t.cmake", "assay_add_shader(target t.comp t)\n"}};
  EXPECT_EQ(edges_of("#include \"shaders/s_64_wide.hpp\"\n", shaders).files,
            (Set{"kernels/vulkan/s.cmake", "kernels/vulkan/s.comp"}));
  EXPECT_EQ(edges_of("#include \"shaders/t.hpp\"\n", shaders).files,
            (Set{"kernels/vulkan/t.cmake", "kernels/vulkan/t.comp"}));
}

TEST(Includes, OfHeadersLeadToTheirDefinitions) {
  Tree tree;
  tree.files = {{"kernels/cpu/one.hpp", ""},
                {"kernels/cpu/one.cpp", ""},
                {"kernels/cpu/two_one.cpp", "#include \"kernels/cpu/one.hpp\"\n"},
                {"kernels/cpu/user.cpp", "#include \"kernels/cpu/one.hpp\"\nconst KernelRegistration row{};\n"}};
  EXPECT_EQ(Includes(tree).of("kernels/cpu/one.hpp").files, (Set{"kernels/cpu/one.cpp", "kernels/cpu/two_one.cpp"}));
}

}  // namespace
}  // namespace assay::falsify
