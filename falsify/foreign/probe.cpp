#include "falsify/foreign/probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assay/plugin.h"
#include "falsify/engine/kernel_output.hpp"
#include "system/child_exit.hpp"
#include "system/child_process.hpp"
#include "system/sandbox.hpp"

namespace assay::falsify {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongest = 4096;
/// The model's function that runs a grid, `assay::cuda_host::run(Grid const&)`: the library holds or imports it.
constexpr const char* kRunsGrids = "_ZN5assay9cuda_host3runERKNS0_4GridE";
/// Ends every answer: 'E', a problem, a newline and its remedy; or 'H' for cuda-host and 'L' for any other library, then
/// 'D' and declarations, or 'N' if nothing is declared.
constexpr char kEnd = '\0';

/// Makes the answer, in the child.
std::string answer(const plugin::Source& source) {
  try {
    const plugin::Library library(source.library);
    library.require(source.symbol);
    void* declares = library.find(source.symbol + "_declares");
    const char host = library.find(kRunsGrids) != nullptr ? 'H' : 'L';
    if (declares == nullptr) return fmt::format("{}N", host);
    const char* text = reinterpret_cast<assay_declares>(declares)();
    return fmt::format("{}D{}", host, std::string_view(text, strnlen(text, kLongest)));
  } catch (const InputError& e) {
    return fmt::format("E{}\n{}", e.problem, e.remedy);
  }
}

/// Reads up to the end mark, the end of the stream, the time limit or the length limit.
std::string receive(int pipe, KernelOutput& output, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string text;
  while (text.find(kEnd) == std::string::npos && text.size() < 2 * kLongest) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd fds[] = {{pipe, POLLIN, 0}, {output.ours(), POLLIN, 0}};
    if (left.count() <= 0 || poll(fds, 2, static_cast<int>(left.count())) == 0) break;
    if (fds[1].revents != 0) output.forward_output();
    if (fds[0].revents == 0) continue;
    char buffer[kLongest];
    const ssize_t n = read(pipe, buffer, sizeof buffer);
    if (n <= 0 && errno != EINTR) break;
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

void expect_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    throw InputError(path, fmt::format("cannot be read: {}", std::strerror(errno)),
                     "give the path of a shared library");
  if (!S_ISREG(info.st_mode)) throw InputError(path, "is not a file", "give the path of a shared library");
}

}  // namespace

Probed probe(const plugin::Source& source, std::chrono::milliseconds limit) {
  expect_file(source.library);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Unavailable("probe process", std::strerror(errno));
  KernelOutput output;
  const pid_t pid = fork_process();
  if (pid == 0) {
    enter_sandbox(ends[1], output.theirs(), Sandbox::host);
    const std::string text = answer(source);
    leave(write(ends[1], text.c_str(), text.size() + 1) < 0);
  }
  close(ends[1]);
  output.close_theirs();
  const std::string text = receive(ends[0], output, limit);
  close(ends[0]);
  const bool answered = text.find(kEnd) != std::string::npos;
  const bool hung = !answered && !has_ended(pid, 100);
  await_counts(pid);
  const int status = end_process(pid);
  if (hung)
    throw InputError(source.library, fmt::format("did not finish loading within {} ms", limit.count()),
                     "look at what its constructors do, or allow more with --limit");
  if (!answered)
    throw InputError(source.library,
                     WIFSIGNALED(status)
                         ? fmt::format("ended its process while it was loaded: signal {}", WTERMSIG(status))
                         : fmt::format("ended its process while it was loaded: status {}", WEXITSTATUS(status)),
                     "look at what its constructors do");
  const std::string said = text.substr(1, text.find(kEnd) - 1);
  if (text[0] != 'E') {
    Probed probed{.declares = {}, .of_cuda_host = text[0] == 'H'};
    if (said.starts_with('D')) probed.declares = said.substr(1);
    return probed;
  }
  const std::size_t line = said.find('\n');
  throw InputError(source.library, said.substr(0, line), line == std::string::npos ? "" : said.substr(line + 1));
}

}  // namespace assay::falsify
