// State of the rewritten engine in a test, set by the environment before anything else is initialized.
//
// ASSAY_ENGINE_MUTANT=N   the mutant N = site * 16 + variant; 0, or unset, is the unmutated engine
// ASSAY_ENGINE_REACHED=F  no mutant; F, a file of 32 bits for each site, records the variants that the test reaches (0:
// the
//                         site, for any types)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "falsify/mutation/source/mutate.hpp"

namespace assay_mutate {

constinit State state;

int chosen(std::uint32_t site, std::uint32_t applicable) {
  if (state.mask != 0) return static_cast<int>(state.variant);
  state.reached[site] |= applicable | 1U;
  return 0;
}

void never_ends() { std::abort(); }

namespace {

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "engine mutants: %s\n", what);
  _exit(2);
}

__attribute__((constructor(101))) void choose() {
  if (const char* const file = std::getenv("ASSAY_ENGINE_REACHED")) {
    const int opened = open(file, O_RDWR | O_CLOEXEC);
    struct stat info {};
    if (opened < 0 || fstat(opened, &info) != 0) refuse("the file of ASSAY_ENGINE_REACHED cannot be opened");
    void* const bytes =
        mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    if (bytes == MAP_FAILED) refuse("the file of ASSAY_ENGINE_REACHED cannot be mapped");
    close(opened);
    state.reached = static_cast<std::uint32_t*>(bytes);
    state.mask = 0;
    return;
  }
  const char* const text = std::getenv("ASSAY_ENGINE_MUTANT");
  const unsigned long number = text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
  state.site = static_cast<std::uint32_t>(number / kVariants);
  state.variant = static_cast<std::uint32_t>(number % kVariants);
  // Site 0 does not exist, so that no comparison of sites holds.
}

}  // namespace
}  // namespace assay_mutate
