// Y = X · Wᵀ, W in Q4_K super-blocks: launches the variants of q4_k_matmul_nt.comp and q4_k_matmul_nt_few.comp. y
// shares no memory with the others, and rows of blocks begin at multiples of 4 bytes (the contract's clauses). Error:
// at most k*u*sum|x||w| and the flushed subnormals. k = 0 writes zeros.
#include "ops/q4_k_matmul_nt.hpp"

#include "kernels/vulkan/product.hpp"
#include "kernels/vulkan/q4_k.hpp"
#include "kernels/vulkan/rows.hpp"
#include "shaders/q4_k_matmul_nt_few16.hpp"
#include "shaders/q4_k_matmul_nt_few4.hpp"
#include "shaders/q4_k_matmul_nt_naive16.hpp"
#include "shaders/q4_k_matmul_nt_tiled64.hpp"

namespace assay::vulkan::of_q4_k_matmul_nt {
namespace {

using ops::Q4KMatmulNtArgs;

/// A workgroup computes tile x tile outputs, or those of four rows of W for tile = 0.
void run(const Shader& shader, Index tile, const Q4KMatmulNtArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.blocks), bind(target, args.y)};
  const ProductPush push{u32(args.m),
                         u32(args.k),
                         u32(args.n),
                         bindings[0].first,
                         step(args.x, 0),
                         bindings[1].first,
                         word_step(args.blocks),
                         bindings[2].first,
                         step(args.y, 0)};
  const bool few = tile == 0;
  const std::array constants{vectors(args.x, bindings[0]) & (few ? 1U : vectors(args.y, bindings[2]))};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, few ? kRowsOfGroup : tile), few ? 1 : groups(args.m, tile), 1}});
}

void naive16(const Q4KMatmulNtArgs& args, Device& device) { run(shaders::q4_k_matmul_nt_naive16, 16, args, device); }

/// Largest numbers of rows of X for which W is read once.
constexpr Index kFewest = 4, kFew = 16;

void by_rows(const Q4KMatmulNtArgs& args, Device& device) {
  if (args.m <= kFewest) run(shaders::q4_k_matmul_nt_few4, 0, args, device);
  else if (args.m <= kFew) run(shaders::q4_k_matmul_nt_few16, 0, args, device);
  else run(shaders::q4_k_matmul_nt_tiled64, 64, args, device);
}

template <Index tile>
std::optional<std::string> refuse(const Q4KMatmulNtArgs& args) {
  if (auto why = vulkan::refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_tiles(args.m, args.k, args.n, tile)) return why;
  return refuse_large(args.x, args.y);
}

const KernelRegistration naive16_kernel{{.id = "q4_k_matmul_nt/vulkan/naive16",
                                         .arithmetic = kShaderArithmetic,
                                         .summary = kNaive16,
                                         .run = &run_typed<Q4KMatmulNtArgs, &naive16>,
                                         .refuse = &refuse_typed<Q4KMatmulNtArgs, &refuse<16>>,
                                         .automatic_above = kProductVolume}};
const KernelRegistration by_rows_kernel{preferred(
    varying_with_batch({.id = "q4_k_matmul_nt/vulkan/by_rows",
                        .arithmetic = kShaderArithmetic,
                        .summary = "up to 16 rows: 64 invocations a row of W, which is read once; more: 64x64 "
                                   "tiles, decoded into shared memory",
                        .run = &run_typed<Q4KMatmulNtArgs, &by_rows>,
                        .refuse = &refuse_typed<Q4KMatmulNtArgs, &refuse<64>>,
                        .automatic_above = kProductVolume}))};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_matmul_nt
