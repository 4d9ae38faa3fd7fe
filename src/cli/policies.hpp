// `assay mutants --policies`: the same wrong kernels under other projects' rules.
#pragma once

#include <string>
#include <vector>

#include "falsify/policies/policy.hpp"

namespace assay::cli {

struct PolicyOptions {
  std::vector<std::string> ops;  ///< empty: all
  std::string backend;           ///< empty: the two that need no device, cpu and cuda-host
  bool automatic = false;        ///< automatic mutants in place of the hand-written ones
  std::size_t sample = 0;        ///< of them; 0: all
  std::string report;            ///< folder for policies.json
  falsify::policies::JudgeOptions judge;
  int jobs = 1;
  bool json = false, quiet = false;
};

/// Gives the exit code: kFalsified where our own row kills less than another, or rejects a right kernel.
int run_policies(const PolicyOptions& options);

}  // namespace assay::cli
