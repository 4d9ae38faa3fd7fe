// `assay mutants --automatic`: mutants that change one instruction of a kernel.
#pragma once

#include <string>
#include <vector>

#include "falsify/mutation/study/study.hpp"

namespace assay::cli {

struct AutomaticOptions {
  std::vector<std::string> ops;  ///< empty: all
  std::string backend;           ///< empty: vulkan
  std::string kernel;            ///< empty: all
  std::string mutant;            ///< hash of the only mutant to run; empty: drawn mutants
  std::string report, screened;
  std::string accepted;    ///< file of accepted survivors; empty: none
  std::size_t sample = 0;  ///< 0: all mutants
  falsify::StudyOptions study;
  int jobs = 1;
  bool json = false, quiet = false;
};

/// Returns the exit code: kFalsified if a survivor is not equivalent as observed.
int run_automatic(const AutomaticOptions& options);

}  // namespace assay::cli
