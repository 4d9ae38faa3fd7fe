// Other programs: git, ssh-keygen, those of the CUDA Toolkit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::falsify {

struct Finished {
  int code = 0;  ///< exit code; 128 and the signal's number where one ended it
  std::string out;
  std::string err;

  /// The first line of what it complained about.
  std::string complaint() const { return err.substr(0, err.find('\n')); }
};

/// Runs a program of the search path to its end, without a shell, with `input` as its standard input. Throws
/// Unavailable, with `remedy`, where there is no such program.
Finished run_program(const std::vector<std::string>& command, std::string_view input, const std::string& remedy);

}  // namespace assay::falsify
