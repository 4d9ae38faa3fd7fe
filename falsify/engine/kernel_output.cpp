#include "falsify/engine/kernel_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kLongestLine = 4096;

void write_to_standard_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // no reader is left
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

KernelOutput::KernelOutput() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Unavailable("worker process", std::string("pipe failed: ") + std::strerror(errno));
  ours_ = ends[0], theirs_ = ends[1];
  fcntl(ours_, F_SETFL, O_NONBLOCK);
}

KernelOutput::~KernelOutput() {
  forward_output();
  if (!line_.empty()) print(line_);
  close_theirs();
  if (ours_ >= 0) close(ours_);
}

void KernelOutput::close_theirs() {
  if (theirs_ >= 0) close(theirs_);
  theirs_ = -1;
}

void KernelOutput::forward_output() {
  char buffer[65536];
  if (ours_ < 0) return;
  const ssize_t n = read(ours_, buffer, sizeof buffer);  // read once: do not wait for endless output
  if (n == 0) close(ours_), ours_ = -1;
  if (n <= 0) return;
  line_.append(buffer, static_cast<std::size_t>(n));
  std::size_t begin = 0;
  for (std::size_t end; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
    print(std::string_view(line_).substr(begin, end - begin));
  line_.erase(0, begin);
  if (line_.size() > kLongestLine) print(line_), line_.clear();
}

void KernelOutput::print(std::string_view line) {
  if (printed_ > kMost) return;
  std::string text = "kernel: " + std::string(line) + "\n";
  std::replace_if(
      text.begin(), text.end() - 1, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  printed_ += text.size();
  if (printed_ > kMost) text = "kernel: (what it prints from here on is left out)\n";
  write_to_standard_error(text);
}

}  // namespace assay::falsify
