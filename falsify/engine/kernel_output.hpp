// Output of a sandboxed process, forwarded through a pipe: with a descriptor of the judge's own streams the process
// could rewind or truncate a file, or forge a line of the report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::falsify {

class KernelOutput {
 public:
  /// Bytes of one process that are forwarded.
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  /// Opens the pipe. Throws Unavailable.
  KernelOutput();
  ~KernelOutput();
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  int ours() const { return ours_; }  ///< to poll; -1 once no more output can come
  int theirs() const { return theirs_; }
  /// Closes the child's end, after the fork.
  void close_theirs();
  /// Forwards available lines to standard error, marked as the kernel's and without control characters.
  void forward_output();

 private:
  void print(std::string_view line);

  int ours_ = -1, theirs_ = -1;
  std::string line_;  ///< incomplete
  std::size_t printed_ = 0;
};

}  // namespace assay::falsify
