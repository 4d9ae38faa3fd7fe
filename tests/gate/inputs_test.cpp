// Inputs of verdicts that no fingerprint covers, and options of compilations, in builds made by hand.
#include "falsify/gate/inputs.hpp"

#include <gtest/gtest.h>

namespace assay::falsify {
namespace {

using Sentences = std::vector<std::string>;

const std::set<std::string> kHashed = {"kernels/cpu/a.cpp", "contracts/scale.yaml"};

std::string object_of(const std::string& library) { return "x/CMakeFiles/" + library + ".dir/a.cpp.o"; }

/// Returns the sentences about one object that read a file.
Sentences unseen_file(const std::string& file, bool current = true) {
  Build build;
  build.objects.push_back(
      {object_of("assay_kernels_cpu"), "assay_kernels_cpu", "", {"kernels/cpu/a.cpp", file}, current});
  return unseen_inputs(build, {}, kHashed);
}

Sentences unseen_symbols(const std::string& symbols) {
  Build build;
  build.symbols = symbols;
  return unseen_inputs(build, {}, kHashed);
}

TEST(Inputs, ThatTheGateHashesOrItsGeneratorsMakeAreSeen) {
  for (const char* file :
       {"kernels/cpu/a.cpp", "contracts/scale.yaml", "<build>/generated/ops/scale.hpp",
        "<build>/generated/scale_oracle.cpp", "<build>/generated/scale_obligations.hpp",
        "<build>/generated/ops/index.cpp", "<build>/generated/shaders/scale_rows.inc", "<build>/falsify/embedded.cpp"})
    EXPECT_EQ(unseen_file(file), Sentences()) << file;
}

TEST(Inputs, ThatNoHashCoversAreSaid) {
  for (const char* file :
       {"tests/kernels/factor.inc", "kernels/cpu/shim/cmath", "kernels/cpu/fast_exp.cpp",
        "<build>/generated/factor.hpp", "<build>/generated/ops/factor.hpp", "<build>/generated/factor_oracle.cpp",
        "<build>/generated/scale_table.hpp", "<build>/kernels/factor.hpp"}) {
    const Sentences said = unseen_file(file);
    ASSERT_EQ(said.size(), 1U) << file;
    EXPECT_TRUE(said.front().starts_with(std::string(file) + " is read to build " + object_of("assay_kernels_cpu")));
  }
  EXPECT_EQ(unseen_file("kernels/cpu/a.cpp", false).size(), 1U) << "an object that Ninja did not build";
  EXPECT_EQ(unseen_inputs({}, {{"scale", "scale/cpu/naive", Backend::cpu, "kernels/cpu/a.cpp"}}, kHashed).size(), 1U)
      << "a kernel that the build lacks";
}

TEST(Inputs, AreAlsoSymbols) {
  const std::string kernel = object_of("assay_kernels_cpu"), cli = object_of("assay_cli");
  EXPECT_EQ(
      unseen_symbols(kernel + ":                 U expf\n" + kernel + ":0000000000000000 T _ZN5assay1fEv\n" + cli +
                     ":                 U _ZN5assay1fEv\n" + cli + ":                 U fopen\n" + cli +
                     ":0000000000000000 W _ZNSt6vectorIiSaIiEED2Ev\n" + cli + ":0000000000000000 T _ZN5assay1gEv\n"),
      Sentences());
  const auto one = [](const std::string& symbols, const std::string& words) {
    const Sentences said = unseen_symbols(symbols);
    return said.size() == 1 && said.front().find(words) != std::string::npos;
  };
  EXPECT_TRUE(one(cli + ":0000000000000000 T expf\n", cli + " defines expf"));
  EXPECT_TRUE(one(cli + ":0000000000000000 W expf\n", cli + " defines expf"));
  EXPECT_TRUE(one(cli + ":0000000000000000 T _Znwm\n", cli + " defines _Znwm"));
  EXPECT_EQ(unseen_symbols(cli + ":0000000000000000 W _Znwm\n"), Sentences());
  EXPECT_TRUE(
      one(kernel + ":                 U _ZN5assay6factorEv\n" + cli + ":0000000000000000 T _ZN5assay6factorEv\n",
          kernel + " takes _ZN5assay6factorEv from " + cli));
  for (const char* reader : {"fopen", "open", "getenv", "_ZNSt13basic_filebufIcSt11char_traitsIcEEC1Ev",
                             "_ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode"})
    EXPECT_TRUE(one(kernel + ":                 U " + reader + "\n", kernel + " calls " + reader)) << reader;
}

TEST(Options, AreThoseOfALibraryAndOfObjectsThatDiffer) {
  Build build;
  build.link = "-O3";
  for (const char* name : {"a", "b", "c"})
    build.objects.push_back({"x/CMakeFiles/assay_engine.dir/" + std::string(name) + ".o", "assay_engine", "-O2", {}});
  build.objects[1].options = "-O2 -ffast-math";
  EXPECT_EQ(options_of(build), (Environment{{"options of assay_engine", "-O2"},
                                            {"options of assay_engine/b.o", "-O2 -ffast-math"},
                                            {"options of the link", "-O3"}}));
}

TEST(Options, AreComparedAsTheEnvironmentIs) {
  const Environment lock = {
      {"blas", "1"}, {"options of assay_kernels_cpu", "-O3 -fPIC"}, {"options of a_cpu/x.o", "-O1"}};
  const auto with = [](Environment entries, const char* name, const char* value) {
    entries[name] = value;
    return entries;
  };
  const Environment fast = with(lock, "options of assay_kernels_cpu", "-O3 -ffast-math");
  EXPECT_EQ(differing(lock, fast), Sentences{"options of assay_kernels_cpu"});
  EXPECT_NE(machine_sentence(lock, fast).find("options of assay_kernels_cpu are with -ffast-math without -fPIC"),
            std::string::npos);
  EXPECT_EQ(differing(lock, {{"options of a_cpu", ""}}), (Sentences{"options of a_cpu", "options of a_cpu/x.o"}));
  EXPECT_EQ(differing(lock, {{"blas", "1"}}), Sentences()) << "a gate without --build";
  EXPECT_EQ(changed_entries({{"blas", "1"}}, lock), Sentences()) << "options recorded for the first time";
  EXPECT_EQ(changed_entries(lock, fast), Sentences{"options of assay_kernels_cpu"});
  EXPECT_EQ(changed_entries(lock, {{"blas", "1"}}).size(), 2U);
  EXPECT_TRUE(touches("options of assay_kernels_cpu", Backend::cpu));
  EXPECT_FALSE(touches("options of assay_kernels_cpu/x.o", Backend::vulkan));
  EXPECT_FALSE(touches("options of assay_kernels_cuda_host", Backend::cuda));
  for (const Backend backend : kBackends) EXPECT_TRUE(touches("options of assay_engine", backend));
}

}  // namespace
}  // namespace assay::falsify
