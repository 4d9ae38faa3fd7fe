// Chooses between our tiles and OpenBLAS. The crossover was measured with tests/bench (OpenBLAS 0.3.21 with two
// threads, every one of its kernel sets that the machine could run).
#include <cblas.h>

#include <string_view>

#include "hwy/highway.h"
#include "kernels/cpu/gemm.hpp"

namespace assay::cpu {
namespace {

/// Largest volume m·k·n at which the tiles are faster than OpenBLAS on this machine.
///
/// OpenBLAS recognizes processors by model number; a processor newer than the library gets AVX2 kernels even if it has
/// AVX-512. OpenBLAS uses one thread up to 64³ and pays for distributing work to threads above.
Index tiled_volume() {
  const std::string_view core = openblas_get_corename();
  const bool theirs_avx512 = core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
  const bool ours_avx512 = (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
  if (theirs_avx512) return 24 * 24 * 24;  // from 32³ on the two are equal until OpenBLAS uses its threads
  if (ours_avx512 && openblas_get_num_threads() <= 2) return 256 * 256 * 256;
  return 64 * 64 * 64;
}

}  // namespace

void dispatch_gemm(const GemmCall& call) {
  static const Index limit = tiled_volume();
  if (call.m * call.k * call.n <= limit || openblas_refusal(call)) return tiled_gemm(call);
  openblas_gemm(call);
}

}  // namespace assay::cpu
