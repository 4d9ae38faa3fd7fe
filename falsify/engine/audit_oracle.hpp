// The reference in fifty digits. A header of its own because the number type takes seconds to compile.
#pragma once

#include "core/digits50.hpp"
#include "falsify/engine/oracle.hpp"

namespace assay::falsify {

struct AuditOracle {
  ReferenceFn<Digits50> run = nullptr;
};

}  // namespace assay::falsify
