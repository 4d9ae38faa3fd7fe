// The operands of products with a matrix in NF4 codes.
#pragma once

#include <cstdint>

#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/gemm.hpp"

namespace assay::cpu {

/// W [n, k] as codes and scales.
struct Nf4Operand {
  Index n, k;
  Rows<const std::uint8_t> codes;
  Rows<const float> absmax;
};

/// Args: the arguments of an operation with n, k, codes and absmax.
template <class Args>
Nf4Operand nf4_operand(const Args& args) {
  return {args.n, args.k, rows_of(args.codes), rows_of(args.absmax)};
}

}  // namespace assay::cpu
