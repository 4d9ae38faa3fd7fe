// The library side of rewritten kernels: the state of the chosen variant, and the kernels registered in this library.
#include <csignal>
#include <cstdlib>

#include "falsify/mutation/source/mutate.hpp"
#include "runtime/registry.hpp"

namespace assay_mutate {

State state;

int chosen(std::uint32_t site, std::uint32_t applicable) {
  if (state.mask != 0) return static_cast<int>(state.variant);
  state.reached[site] |= applicable;
  return 0;
}

void never_ends() {
  raise(SIGXCPU);
  std::abort();
}

}  // namespace assay_mutate

extern "C" __attribute__((visibility("default"))) assay_mutate::State* assay_schemata_state() {
  return &assay_mutate::state;
}
/// Searches this library's own registry: the library is linked with a runtime of its own.
extern "C" __attribute__((visibility("default"))) const assay::Kernel* assay_schemata_kernel(const char* id) {
  for (const assay::Kernel& k : assay::kernels())
    if (k.id == id) return &k;
  return nullptr;
}
