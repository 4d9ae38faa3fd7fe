// Wrong products whose launch is at fault.
#include <algorithm>
#include <utility>

#include "falsify/mutants/vulkan/product.hpp"
#include "ops/matmul.hpp"
#include "shaders/matmul_naive16.hpp"
#include "shaders/matmul_tiled64.hpp"

namespace assay::falsify::matmul_launch_mutants {
namespace {

namespace shaders = vulkan::shaders;

void floor_groups(ProductLaunch& launch) { launch.groups = {launch.push.n / 16, launch.push.m / 16, 1}; }
void swap_groups(ProductLaunch& launch) { std::swap(launch.groups[0], launch.groups[1]); }
void pack_rows_of_b(ProductLaunch& launch) { launch.push.b_ld = launch.push.n; }
void ignore_offset(ProductLaunch& launch) { launch.push.a_first = 0; }
void assume_alignment(ProductLaunch& launch) { launch.vector = {1}; }
void keep_first_k(ProductLaunch& launch) {
  static const std::uint32_t first_k = launch.push.k;
  launch.push.k = first_k;
}
/// As many rows as C's allocation holds.
void fill_capacity(ProductLaunch& launch) {
  const std::uint32_t width = std::max(launch.push.c_ld, launch.push.n);
  if (width == 0) return;
  launch.push.m = (launch.bindings[2].elements - launch.push.c_first) / width;
  launch.groups[1] = (launch.push.m + 15) / 16;
}

template <const Shader& shader, Index tile, void (*change)(ProductLaunch&)>
Kernel wrong(std::string_view id, std::string_view fault) {
  return launch_mutant<ops::MatmulArgs, shader, tile, change>("matmul", id, "falsify/mutants/vulkan/matmul_launch.cpp",
                                                              fault);
}

const KernelRegistration registrations[] = {
    KernelRegistration(wrong<shaders::matmul_naive16, 16, floor_groups>(
        "mutant/vulkan/matmul/edge_tiles_unwritten", "BUG 8: the number of tiles of C is rounded down")),
    KernelRegistration(wrong<shaders::matmul_naive16, 16, swap_groups>("mutant/vulkan/matmul/grid_swapped",
                                                                       "BUG 1: workgroups of m and n are exchanged")),
    KernelRegistration(wrong<shaders::matmul_naive16, 16, pack_rows_of_b>(
        "mutant/vulkan/matmul/ld_is_width", "BUG 39: B's leading dimension is taken to be its width")),
    KernelRegistration(wrong<shaders::matmul_naive16, 16, ignore_offset>(
        "mutant/vulkan/matmul/offset_ignored", "A is read from the start of its allocation, not of its view")),
    KernelRegistration(wrong<shaders::matmul_tiled64, 64, assume_alignment>(
        "mutant/vulkan/matmul/alignment_assumed", "vector loads and stores whatever the alignment")),
    KernelRegistration(wrong<shaders::matmul_naive16, 16, keep_first_k>(
        "mutant/vulkan/matmul/first_k_kept", "BUG 27: k is cached from the first call of the process")),
    KernelRegistration(wrong<shaders::matmul_naive16, 16, fill_capacity>(
        "mutant/vulkan/matmul/rows_from_capacity", "rows are counted from C's allocation instead of m")),
};

}  // namespace
}  // namespace assay::falsify::matmul_launch_mutants
