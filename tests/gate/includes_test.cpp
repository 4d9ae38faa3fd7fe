// Includes found in tokens: those followed, those left to the system, and those rejected as unknown; and digests that
// do not depend on paths.
#include "falsify/gate/includes.hpp"

#include <gtest/gtest.h>

namespace assay::falsify {
namespace {

using Set = std::set<std::string>;

/// Returns the edges of kernels/cpu/a.cpp with this text, in a tree with some files.
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
  for (const char* outside : {"../../tests/a.inc", "../../../a.inc", "tests/a.inc", "../tests/a.inc", "ci/a.inc"}) {
    EXPECT_EQ(unknown(std::string("#include \"") + outside + "\"\n").size(), 1U) << outside;
    EXPECT_EQ(unknown(std::string("#if __has_include(\"") + outside + "\")\n#endif\n").size(), 1U) << outside;
  }
  EXPECT_EQ(unknown("#include <../tests/a.inc>\n#if __has_include(\"core/new.hpp\")\n#endif\n").size(), 1U);
}

TEST(Includes, ByOtherSpellingsAreRefused) {
  const auto refused = [](const std::string& text) {
    return edges_of(text, {{"kernels/cpu/b.hpp", ""}, {"kernels/cpu/b.json", ""}}).unknown.size() == 1;
  };
  for (const char* text : {"%:include \"b.hpp\"\n",
                           "/**/ %: include <core/sum.hpp>\n",
                           "#include_next <core/sum.hpp>\n",
                           "#import \"b.hpp\"\n",
                           "#embed \"b.hpp\"\n",
                           "import \"b.hpp\";\n",
                           "export import <core/sum.hpp>;\n",
                           "import b;\n",
                           "#if __has_include(CHOSEN)\n#endif\n",
                           "#if __has_embed(\"b.hpp\")\n#endif\n",
                           "asm(\".incbin \\\"b.hpp\\\"\");\n",
                           "asm(\".inc\" \"bin \\\"b\\\"\");\n",
                           "asm(\".inc\\x62in b\");\n",
                           "__asm__(R\"(.incbin \"b\")\");\n",
                           "__asm volatile(\".include \\\"b\\\"\" ::: \"memory\");\n",
                           "asm(TEXT);\n",
                           "#define A asm\n",
                           "#define S(x) #x\nconst char* a = S(.incbin \"b\");\n",
                           "#pragma GCC pch_preprocess \"b\"\n",
                           "_Pragma(\"GCC pch_preprocess \\\"b\\\"\")\n",
                           "\?\?=include \"b.hpp\"\n",
                           "// a\?\?/\n#include <vector>\n",
                           "int x = __LINE__;\n",
                           "const char* x = __FILE__;\n",
                           "auto x = std::source_location::current();\n",
                           "#if __INCLUDE_LEVEL__\n#endif\n",
                           "x;\r#include <vector>\n",
                           "// a \\ \n#include <vector>\n",
                           "#include \"b.json\"\n"})
    EXPECT_TRUE(refused(text)) << text;
  for (const char* text :
       {"int important; x = import;\n", "import = 1;\n", "asm volatile(\"nop\" : \"=r\"(x));\n",
        "#define M(a) asm(\"m\" a \".f\" : : )\n",
        "#ifdef __has_include\n#if __has_include(<vector>) && defined(__has_include)\n#endif\n#endif\n",
        "// #include WHAT\n/* .incbin */\n", "R\"(\n#include WHAT\n)\";\n"})
    EXPECT_EQ(edges_of(text).unknown, std::vector<std::string>{}) << text;
}

TEST(Includes, OfWhatIsThereAreSeenInTheQuestion) {
  EXPECT_EQ(edges_of("#if __has_include(\"core/sum.hpp\")\n#endif\n").files, Set{"src/core/sum.hpp"});
}

/// Returns the digest of kernels/cpu/a.cpp in a tree of these files.
std::string digest(std::map<std::string, std::string, std::less<>> files,
                   const std::string& path = "kernels/cpu/a.cpp") {
  Tree tree;
  tree.files = std::move(files);
  return Includes(tree).digest(path);
}

TEST(Digests, HoldNoPath) {
  const std::string before =
      digest({{"kernels/cpu/a.cpp", "#include \"b.hpp\"\nconst char* s = \"kernels/cpu/b.hpp\";"},
              {"kernels/cpu/b.hpp", "int b;"}});
  EXPECT_EQ(before, digest({{"kernels/cpu/a.cpp", "#include \"core/c.hpp\"\nconst char* s = \"src/core/c.hpp\";"},
                            {"src/core/c.hpp", "int  b; // c"}}));
  EXPECT_NE(before, digest({{"kernels/cpu/a.cpp", "#include \"b.hpp\"\nconst char* s = \"kernels/cpu/b.hpp\";"},
                            {"kernels/cpu/b.hpp", "int c;"}}));
}

TEST(Digests, TellWhichFileIsIncludedWhere) {
  const auto two = [](const char* first, const char* second) {
    return digest(
        {{"kernels/cpu/a.cpp", std::string("#include \"") + first + "\"\nint x;\n#include \"" + second + "\"\n"},
         {"kernels/cpu/b.hpp", "#include \"one.hpp\"\n"},
         {"kernels/cpu/c.hpp", "#include \"two.hpp\"\n"},
         {"kernels/cpu/one.hpp", "1"},
         {"kernels/cpu/two.hpp", "2"}});
  };
  EXPECT_NE(two("b.hpp", "c.hpp"), two("c.hpp", "b.hpp")) << "two that differ in what they include alone";
  EXPECT_NE(digest({{"kernels/cpu/a.cpp", "#include <vector>\n"}}),
            digest({{"kernels/cpu/a.cpp", "#include <list>\n"}}));
}

TEST(Digests, OfCirclesDoNotDependOnTheWayIn) {
  Tree tree;
  tree.files = {{"kernels/cpu/a.hpp", "#pragma once\n#include \"b.hpp\"\n"},
                {"kernels/cpu/b.hpp", "#pragma once\n#include \"a.hpp\"\n1"},
                {"kernels/cpu/s.cpp", "#define HWY_TARGET_INCLUDE \"kernels/cpu/s.cpp\"\n#include \"s.cpp\"\n"}};
  Includes one(tree), other(tree);
  const std::string a = one.digest("kernels/cpu/a.hpp"), b = one.digest("kernels/cpu/b.hpp");
  EXPECT_EQ(other.digest("kernels/cpu/b.hpp"), b);
  EXPECT_EQ(other.digest("kernels/cpu/a.hpp"), a);
  EXPECT_FALSE(one.digest("kernels/cpu/s.cpp").empty());
}

TEST(Digests, SeeAFileThatAppears) {
  const std::string text = "#if __has_include(\"core/new.hpp\")\n#endif\n#include <x/y.h>\n";
  EXPECT_NE(digest({{"kernels/cpu/a.cpp", text}}), digest({{"kernels/cpu/a.cpp", text}, {"src/core/new.hpp", ""}}));
  EXPECT_NE(digest({{"kernels/cpu/a.cpp", text}}), digest({{"kernels/cpu/a.cpp", text}, {"src/x/y.h", ""}}))
      << "one that takes the system's place";
}

TEST(Digests, OfBuildFilesHoldTheSourcesThatTheyNameByContent) {
  const auto build = [](const char* name, const char* content) {
    return digest({{"src/core/CMakeLists.txt", std::string("add_library(x ") + name + ")"},
                   {std::string("src/core/") + name, content}},
                  "src/core/CMakeLists.txt");
  };
  EXPECT_EQ(build("a.cpp", "1"), build("b.cpp", "1 // c"));
  EXPECT_NE(build("a.cpp", "1"), build("a.cpp", "2"));
}

TEST(Includes, OfGeneratedFilesLeadToWhatTheyAreMadeFrom) {
  EXPECT_EQ(edges_of("#include \"ops/scale.hpp\"\n", {{"contracts/scale.yaml", ""}}).files,
            Set{"contracts/scale.yaml"});
  EXPECT_EQ(edges_of("#include \"scale_obligations.hpp\"\n", {{"contracts/scale.yaml", ""}}).files,
            Set{"contracts/scale.yaml"});
  const std::map<std::string, std::string, std::less<>> shaders = {
      {"kernels/vulkan/s.comp",
       "// two\n#pragma shaders s_64 W=64 /* narrow */; s_128 W=128 S_256=1\n#define X s_256\n"},
      {"kernels/vulkan/t.comp", "#pragma shaders t\nvoid s_64();\n"}};
  const auto made_of = [&](const std::string& shader) {
    return edges_of("#include \"shaders/" + shader + ".hpp\"\n", shaders).files;
  };
  EXPECT_EQ(made_of("s_64"), Set{"kernels/vulkan/s.comp"});
  EXPECT_EQ(made_of("s_128"), Set{"kernels/vulkan/s.comp"});
  EXPECT_EQ(made_of("t"), Set{"kernels/vulkan/t.comp"});
  EXPECT_EQ(made_of("S_256"), Set{}) << "a definition, not a shader";
  EXPECT_EQ(made_of("s_256"), Set{});
}

TEST(Includes, OfHeadersLeadToTheirDefinitions) {
  Tree tree;
  tree.files = {{"kernels/cpu/one.hpp", ""},
                {"kernels/cpu/one.cpp", ""},
                {"kernels/cpu/two_one.cpp", "#include \"kernels/cpu/one.hpp\"\n"},
                {"kernels/cpu/user.cpp", "#include \"kernels/cpu/one.hpp\"\nconst KernelRegistration row{};\n"}};
  EXPECT_EQ(Includes(tree).of("kernels/cpu/one.hpp").files, (Set{"kernels/cpu/one.cpp", "kernels/cpu/two_one.cpp"}));
  // A source that was separated from its header, or renamed.
  tree.files = {
      {"falsify/properties/shared/tools.hpp", ""},
      {"falsify/properties/shared/rows.cpp", "#include \"falsify/properties/shared/tools.hpp\"\n"},
      {"falsify/properties/scale.cpp", "#include \"falsify/properties/shared/tools.hpp\"\n"},
      {"contracts/scale.yaml", ""},
      {"falsify/properties/shared/other.cpp",
       "#include \"falsify/properties/shared/other.hpp\"\n#include \"falsify/properties/shared/tools.hpp\"\n"},
      {"falsify/properties/shared/other.hpp", ""}};
  EXPECT_EQ(Includes(tree).of("falsify/properties/shared/tools.hpp").files, Set{"falsify/properties/shared/rows.cpp"});
}

}  // namespace
}  // namespace assay::falsify
