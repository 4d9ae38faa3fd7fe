// Processes that do not exit, and signals that end a run.
#include "system/child_process.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "system/interrupt.hpp"

namespace assay::falsify::child_process_test {
namespace {

/// A traced process and its child that cannot be killed, as a driver may keep one; the system lets both exit once their
/// tracer does.
TEST(ChildProcess, WhatDoesNotEndIsLeftToEnd) {
  using std::chrono::steady_clock;
  int to_test[2], to_tracer[2];
  ASSERT_EQ(pipe(to_test) + pipe(to_tracer), 0);
  const auto tell = [](int pipe, pid_t pid) { return write(pipe, &pid, sizeof pid) == sizeof pid; };
  const auto told = [](int pipe) {
    pid_t pid = 0;
    return read(pipe, &pid, sizeof pid) == sizeof pid ? pid : -1;
  };
  const pid_t parent = fork_process();
  if (parent == 0) {
    prctl(PR_SET_DUMPABLE, 1);  // the engine's processes are not dumpable
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    tell(to_tracer[1], getpid());
    for (;;) pause();
  }
  const pid_t tracer = fork_process();
  if (tracer == 0) {
    for (int process = 0; process < 2; ++process) {
      const pid_t pid = told(to_tracer[0]);
      tell(to_test[1], ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? pid : -1);
    }
    for (;;) pause();
  }
  const pid_t traced[] = {told(to_test[0]), told(to_test[0])};
  for (const int end : {to_test[0], to_test[1], to_tracer[0], to_tracer[1]}) close(end);
  if (std::ranges::find(traced, -1) != std::end(traced)) {
    end_process(tracer);
    end_process(parent);
    GTEST_SKIP() << "this system lets no process trace another";
  }
  auto begin = steady_clock::now();
  const int status = end_process(parent);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_GE(steady_clock::now() - begin, kToEnd);
  EXPECT_LT(steady_clock::now() - begin, 3 * kToEnd / 2);
  for (const pid_t pid : traced) EXPECT_EQ(kill(pid, 0), 0);
  begin = steady_clock::now();
  end_orphans();
  EXPECT_LT(steady_clock::now() - begin, kToEnd / 2) << "it was waited for again";
  end_process(tracer);
  const auto alive = [](pid_t pid) { return kill(pid, 0) == 0; };
  for (begin = steady_clock::now(); std::ranges::any_of(traced, alive) && steady_clock::now() - begin < kToEnd;
       usleep(1000))
    end_orphans();
  EXPECT_TRUE(std::ranges::none_of(traced, alive)) << "it has ended and was not waited for";
}

TEST(ChildProcess, WhatItStartedEndsWithIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork_process();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      setsid();
      const pid_t self = getpid();
      static_cast<void>(!write(ends[1], &self, sizeof self));
    }
    for (;;) pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  for (const int end : ends) close(end);
  end_process(child);
  const bool gone = kill(grandchild, 0) == -1 && errno == ESRCH;
  EXPECT_TRUE(gone);
  if (!gone) kill(grandchild, SIGKILL);
}

TEST(Signals, EndARunOnlyWhileTheyAreCaught) {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);  // background jobs of a shell ignore SIGINT
  EXPECT_FALSE(ends_run(SIGTERM));
  {
    const CatchSignals caught;
    EXPECT_TRUE(ends_run(SIGTERM));
    EXPECT_TRUE(ends_run(SIGINT));
    EXPECT_FALSE(ends_run(SIGSEGV));
    EXPECT_FALSE(ends_run(0));
  }
  EXPECT_FALSE(ends_run(SIGTERM));
  const CatchSignals caught;
  restore_signals();
  EXPECT_FALSE(ends_run(SIGTERM));
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << signal;
  }
}

}  // namespace
}  // namespace assay::falsify::child_process_test
