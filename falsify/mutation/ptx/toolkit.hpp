// The CUDA Toolkit's programs that read PTX out of a program and assemble it.
#pragma once

#include <string>
#include <vector>

namespace assay::falsify::ptx {

/// All PTX that this program carries, a file each. Throws Unavailable where cuobjdump is missing or fails.
std::vector<std::string> embedded();

struct Assembled {
  std::string cubin;  ///< machine code; empty where it does not assemble
  std::string why;    ///< then: ptxas's first complaint
};
/// For a compute capability, such as 90. Throws Unavailable where ptxas is missing.
Assembled assemble(const std::string& text, int capability);

}  // namespace assay::falsify::ptx
