#include "cli/kernel_lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <unordered_set>

#include "system/child_exit.hpp"
#include "system/child_process.hpp"

namespace assay::cli {
namespace {

/// How the engine marks the lines of kernels (falsify/engine/kernel_output.hpp).
constexpr std::string_view kMark = "kernel: ";
/// Distinct lines that are remembered, and printed.
constexpr std::size_t kDistinct = 1000;

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // no reader is left
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// Passes everything but lines of kernels on as it comes: a progress line has no end.
class Filter {
 public:
  explicit Filter(bool quiet) : quiet_(quiet) {}

  void take(std::string_view text) {
    for (const char c : text) {
      line_ += c;
      if (c == '\n') end_line();
    }
    if (!is_of_kernel()) write_all(STDERR_FILENO, line_), written_ = written_ || !line_.empty(), line_.clear();
  }

  void finish() {
    if (!line_.empty()) end_line();
    if (more_ > 0) write_all(STDERR_FILENO, fmt::format("{}... {} more\n", kMark, more_));
  }

 private:
  /// Returns true if the line so far is a line of a kernel, or the beginning of its mark.
  bool is_of_kernel() const {
    const std::size_t n = std::min(line_.size(), kMark.size());
    return !written_ && std::string_view(line_).substr(0, n) == kMark.substr(0, n);
  }

  void end_line() {
    const bool of_kernel = is_of_kernel() && line_.size() >= kMark.size();
    if (!of_kernel) write_all(STDERR_FILENO, line_);
    else if (!quiet_ && seen_.size() < kDistinct && seen_.insert(line_).second) write_all(STDERR_FILENO, line_);
    else if (!quiet_) ++more_;
    line_.clear();
    written_ = false;
  }

  bool quiet_;
  bool written_ = false;  ///< the beginning of the line has been passed on
  std::string line_;
  std::unordered_set<std::string> seen_;
  std::size_t more_ = 0;
};

[[noreturn]] void run_filter(int input, bool quiet) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);  // it ends with its input
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  Filter filter(quiet);
  char buffer[65536];
  while (true) {
    const ssize_t n = read(input, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filter.take(std::string_view(buffer, static_cast<std::size_t>(n)));
  }
  filter.finish();
  leave(0);
}

}  // namespace

KernelLines::KernelLines(bool quiet) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  std::fflush(stdout);
  std::fflush(stderr);
  standard_error_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  try {
    if (standard_error_ >= 0) filter_ = fork_process();
  } catch (const std::exception&) {  // without a process more, everything is printed
    close(standard_error_);
    standard_error_ = -1;
  }
  if (filter_ == 0) {
    close(ends[1]);
    run_filter(ends[0], quiet);
  }
  if (filter_ > 0) dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
  close(ends[1]);
}

KernelLines::~KernelLines() {
  if (filter_ <= 0) return;
  constexpr int kEnd = 2000;  // milliseconds: a process that a kernel left behind may hold the pipe open
  std::fflush(stderr);
  dup2(standard_error_, STDERR_FILENO);
  close(standard_error_);
  has_ended(filter_, kEnd);
  await_counts(filter_);
  end_process(filter_);
}

}  // namespace assay::cli
