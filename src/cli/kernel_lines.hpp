// Collapses the output of kernels under test, which the engine forwards to standard error line by line.
#pragma once

#include <sys/types.h>

namespace assay::cli {

/// While it lives, a process of its own stands between this one, with all that it starts, and standard error: it prints
/// each line of a kernel once and says how many more there were, or none at all if `quiet`. Everything else passes.
class KernelLines {
 public:
  explicit KernelLines(bool quiet);
  ~KernelLines();
  KernelLines(const KernelLines&) = delete;
  KernelLines& operator=(const KernelLines&) = delete;

 private:
  int standard_error_ = -1;  ///< the real one; -1: nothing stands between
  pid_t filter_ = -1;
};

}  // namespace assay::cli
