// `assay mutants --automatic`: kernels made wrong one instruction at a time.
#pragma once

#include <string>
#include <vector>

#include "falsify/mutation/study/study.hpp"

namespace assay::cli {

struct AutomaticOptions {
  std::vector<std::string> ops;   ///< empty: all
  std::string backend;            ///< empty: vulkan
  std::string kernel;             ///< empty: all
  std::string mutant;             ///< hash of the only one to run; empty: those drawn
  std::string report, screened;
  std::string judged;             ///< file of judged holes; empty: none
  std::size_t sample = 0;         ///< 0: all mutants
  falsify::StudyOptions study;
  int jobs = 1;
  bool json = false, quiet = false;
};

/// Gives the exit code: kFalsified where a survivor is not equivalent as observed.
int run_automatic(const AutomaticOptions& options);

}  // namespace assay::cli
