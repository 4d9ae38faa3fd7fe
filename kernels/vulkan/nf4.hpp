// The codebook as push constants, for the launchers of NF4 kernels.
#pragma once

#include <algorithm>

#include "core/nf4.hpp"
#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// The codebook in the layout of the push constants.
struct Nf4Codebook {
  float entry[16];
};
inline Nf4Codebook nf4_codebook() {
  Nf4Codebook codebook;
  std::ranges::copy(kNf4, codebook.entry);
  return codebook;
}

}  // namespace assay::vulkan
