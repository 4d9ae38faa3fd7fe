// `assay mutants --policies`: tests the same wrong kernels under other projects' rules.
#pragma once

#include <string>
#include <vector>

#include "falsify/policies/policy.hpp"

namespace assay::cli {

struct PolicyOptions {
  std::vector<std::string> ops;  ///< empty: all
  std::string backend;           ///< empty: cpu and cuda-host, which need no device
  bool automatic = false;        ///< automatic mutants instead of the hand-written ones
  std::size_t sample = 0;        ///< number of automatic mutants; 0: all
  std::string report;            ///< folder for policies.json
  falsify::policies::JudgeOptions judge;
  int jobs = 1;
  bool json = false, quiet = false;
};

/// Returns the exit code: kFalsified if Assay's own row kills fewer mutants than another, or rejects a right kernel.
int run_policies(const PolicyOptions& options);

}  // namespace assay::cli
