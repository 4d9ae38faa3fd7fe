#include "system/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/errors.hpp"

namespace assay {
namespace {

/// The three pipes to the program, with the ends of both sides.
struct Pipes {
  std::array<int, 3> ours{-1, -1, -1};
  std::array<int, 3> theirs{-1, -1, -1};

  Pipes() {
    for (std::size_t stream = 0; stream < 3; ++stream) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) throw Unavailable("pipe", std::strerror(errno));
      ours[stream] = stream == 0 ? ends[1] : ends[0];
      theirs[stream] = stream == 0 ? ends[0] : ends[1];
    }
    fcntl(ours[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipes() {
    for (const int fd : ours) close_if_open(fd);
    for (const int fd : theirs) close_if_open(fd);
  }
  Pipes(const Pipes&) = delete;
  Pipes& operator=(const Pipes&) = delete;

  void close_theirs() {
    for (int& fd : theirs) close(fd), fd = -1;
  }
  void close_ours(std::size_t stream) { close(ours[stream]), ours[stream] = -1; }

 private:
  static void close_if_open(int fd) {
    if (fd >= 0) close(fd);
  }
};

pid_t start(const std::vector<std::string>& command, const Pipes& pipes, const std::string& remedy) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int stream = 0; stream < 3; ++stream)
    posix_spawn_file_actions_adddup2(&actions, pipes.theirs[static_cast<std::size_t>(stream)], stream);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Unavailable(command[0], std::string(std::strerror(error)) + "; " + remedy);
  return pid;
}

/// Writes as much of the rest as possible; returns false if nothing is left to write, or no reader is left.
bool feed(int fd, std::string_view& rest) {
  const ssize_t n = write(fd, rest.data(), rest.size());
  if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  return !rest.empty() && (n > 0 || errno == EAGAIN || errno == EINTR);
}

/// Reads the available text; returns false at the end.
bool drain(int fd, std::string& text) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

}  // namespace

Finished run_program(const std::vector<std::string>& command, std::string_view input, const std::string& remedy) {
  signal(SIGPIPE, SIG_IGN);  // if a program stops reading, write() reports an error instead
  Pipes pipes;
  const pid_t pid = start(command, pipes, remedy);
  pipes.close_theirs();
  if (input.empty()) pipes.close_ours(0);
  Finished done;
  while (pipes.ours[0] >= 0 || pipes.ours[1] >= 0 || pipes.ours[2] >= 0) {
    std::array<pollfd, 3> fds{{{pipes.ours[0], POLLOUT, 0}, {pipes.ours[1], POLLIN, 0}, {pipes.ours[2], POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0 && !feed(pipes.ours[0], input)) pipes.close_ours(0);
    if (fds[1].revents != 0 && !drain(pipes.ours[1], done.out)) pipes.close_ours(1);
    if (fds[2].revents != 0 && !drain(pipes.ours[2], done.err)) pipes.close_ours(2);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  done.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return done;
}

}  // namespace assay
