// Runs other programs: git, ssh-keygen, the tools of the CUDA Toolkit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Finished {
  int code = 0;  ///< exit code; 128 plus the signal's number if killed by a signal
  std::string out;
  std::string err;

  /// Returns the first line of standard error.
  std::string complaint() const { return err.substr(0, err.find('\n')); }
};

/// Runs a program of the search path to its end, without a shell, with `input` as its standard input. Throws
/// Unavailable, with `remedy`, if there is no such program.
Finished run_program(const std::vector<std::string>& command, std::string_view input, const std::string& remedy);

}  // namespace assay
