// Shrinks a failing case to the smallest one.
#pragma once

#include <rapidcheck/Shrinkable.h>

#include <chrono>
#include <functional>
#include <span>

#include "falsify/engine/case.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

/// True if the obligation fails on the case.
using Fails = std::function<bool(const Case&)>;

struct Shrunk {
  Case smallest;
  int tried = 0;  ///< cases run while shrinking
  double seconds = 0;
  bool complete = true;  ///< false if the time ran out first
};

/// Shrinks dims first: RapidCheck's shrinks; if these end with all dims up to 4, every smaller combination of dims with
/// every strategy and layout, for a second at most; then values toward 0, 1 and small integers, with the dims fixed.
/// Dims that are `given` (CampaignOptions::dims) stay.
Shrunk shrink(const OpDescriptor& op, const ObligationInfo& obligation, const rc::Shrinkable<Case>& failing,
              const Kernel& kernel, const Fails& fails, std::chrono::milliseconds budget,
              std::span<const Index> given = {});

}  // namespace assay::falsify
