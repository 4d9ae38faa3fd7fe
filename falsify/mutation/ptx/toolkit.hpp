// The CUDA Toolkit's programs that extract PTX from a program and assemble it.
#pragma once

#include <string>
#include <vector>

namespace assay::falsify::ptx {

/// Returns all PTX embedded in this program, one text per file. Throws Unavailable if cuobjdump is missing or fails.
std::vector<std::string> embedded();

struct Assembled {
  std::string cubin;  ///< machine code; empty if it does not assemble
  std::string why;    ///< ptxas's first error in that case
};
/// Assembles for a compute capability, such as 90. Throws Unavailable if ptxas is missing.
Assembled assemble(const std::string& text, int capability);

}  // namespace assay::falsify::ptx
