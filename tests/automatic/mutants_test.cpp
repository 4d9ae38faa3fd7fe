// Every mutant has a class, and every listed fault is a mutant of each back end in the build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/registry.hpp"

namespace assay::falsify::mutants_test {
namespace {

namespace fs = std::filesystem;

TEST(Mutants, EachHasAClass) {
  for (const Kernel& k : kernels())
    if (k.role == KernelRole::mutant) {
      EXPECT_FALSE(k.fault_class.empty()) << k.id;
    }
}

TEST(Mutants, EachFaultOfTheListsIsOne) {
  std::set<std::string> known, backends;
  for (const Kernel& k : kernels()) {
    if (k.role == KernelRole::mutant) known.emplace(k.id);
    backends.emplace(name(k.backend));
  }
  std::size_t faults = 0;
  for (const auto& entry : fs::directory_iterator(ASSAY_SOURCE "/falsify/mutation/faults")) {
    std::ifstream list(entry.path());
    std::string id, only, op, backend;
    const auto expect = [&] {
      for (const std::string& own : backend == "cuda" ? std::set<std::string>{"cuda", "cuda-host"} : std::set{backend})
        if (!id.empty() && backends.contains(own) && (only.empty() || only == own)) {
          EXPECT_TRUE(known.contains("mutant/" + own + "/" + op + "/" + id)) << entry.path() << ": " << id;
          ++faults;
        }
      id.clear(), only.clear();
    };
    for (std::string line; std::getline(list, line);) {
      if (line.starts_with("- id: ")) expect(), id = line.substr(6, line.find(' ', 6) - 6);
      if (line.starts_with("  only: ")) only = line.substr(8, line.find(' ', 8) - 8);
      if (line.starts_with("  kernel: ")) {  // op/backend/algorithm
        const std::size_t first = line.find('/'), second = line.find('/', first + 1);
        op = line.substr(10, first - 10), backend = line.substr(first + 1, second - first - 1);
      }
    }
    expect();
  }
  EXPECT_GT(faults, 1000U);
}

}  // namespace
}  // namespace assay::falsify::mutants_test
