// What a process in the sandbox prints. It goes through a pipe, so that the process holds no descriptor of the judge's own
// streams: it could rewind or cut a file there, or forge a line of the report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::falsify {

class KernelOutput {
 public:
  /// Bytes of one process that are passed on.
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  /// Opens the pipe. Throws Unavailable.
  KernelOutput();
  ~KernelOutput();
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  int ours() const { return ours_; }  ///< to be polled; -1 once nothing more can come
  int theirs() const { return theirs_; }
  /// Once the process has been started.
  void close_theirs();
  /// Passes on to standard error the lines that are there, each marked as the kernel's and without control characters.
  void pass_on();

 private:
  void print(std::string_view line);

  int ours_ = -1, theirs_ = -1;
  std::string line_;  ///< its end has not come yet
  std::size_t printed_ = 0;
};

}  // namespace assay::falsify
