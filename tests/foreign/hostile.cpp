// Kernels for the contract `scale` (y = alpha x) that compute y and then do something forbidden. Each must give a
// verdict and a complete report within the time allowed, and leave no process behind.
#include <assay/plugin.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

float* element(const DLTensor& t, int64_t i, int64_t j) {
  return static_cast<float*>(t.data) + i * t.strides[0] + j * t.strides[1];
}

/// y = alpha x, plus `error` unless it is 0: adding 0 would turn -0 into 0.
void scale(const assay_call* call, float error = 0) {
  const auto alpha = static_cast<float>(call->params[0]);
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) {
      const float product = alpha * *element(call->tensors[0], i, j);
      *element(call->tensors[1], i, j) = error == 0 ? product : product + error;
    }
}

volatile std::uintptr_t nowhere = 8;

/// Returns the address `bytes` past the end of y.
volatile float* behind(const assay_call* call, int64_t bytes) {
  const DLTensor& y = call->tensors[1];
  return element(y, y.shape[0] - 1, y.shape[1] - 1) + 1 + bytes / 4;
}
bool empty(const assay_call* call) { return call->dims[0] == 0 || call->dims[1] == 0; }

int overrun(const assay_call* call, int64_t bytes) {
  scale(call);
  if (!empty(call)) *behind(call, bytes) = 1;
  return ASSAY_DONE;
}

/// Sleeps under the process name by which the tests find leftover processes.
[[noreturn]] void stay() {
  prctl(PR_SET_NAME, "assay-hostile");
  prctl(PR_SET_PDEATHSIG, 0);
  for (;;) pause();
}

int recurse(int depth) {
  volatile char frame[1 << 16];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

/// Writes to every descriptor except the standard ones.
void answer_on_every_channel() {
  const char byte = 1;
  for (int fd = 3; fd < 1024; ++fd) static_cast<void>(!write(fd, &byte, 1));
}

/// Finds the mailbox shared with the engine: a few pages between two guard pages.
bool mailbox(char*& first, size_t& bytes) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512], access[8];
  unsigned long begin = 0, end = 0, inode = 0, inode_before = 0, length_before = 0;
  bool found = false, closed_before = false;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &begin, &end, access, &inode) != 4 ||
        strstr(line, "/dev/zero") == nullptr)
      continue;
    if (access[0] == 'r' && inode == inode_before && closed_before && length_before == 4096 &&
        end - begin <= 16 * 4096) {
      first = reinterpret_cast<char*>(begin);
      bytes = end - begin;
      found = true;
    }
    inode_before = inode, length_before = end - begin, closed_before = access[0] == '-';
  }
  if (maps != nullptr) fclose(maps);
  return found;
}

/// Reads or writes bytes at an address of another process; returns the number of bytes, or -1.
using Access = ssize_t (*)(pid_t, char* here, size_t bytes, unsigned long there, bool write);

ssize_t by_file(pid_t pid, char* here, size_t bytes, unsigned long there, bool write) {
  const int file = open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDWR);
  if (file < 0) return -1;
  const auto at = static_cast<off_t>(there);
  const ssize_t n = write ? pwrite(file, here, bytes, at) : pread(file, here, bytes, at);
  close(file);
  return n;
}
ssize_t by_call(pid_t pid, char* here, size_t bytes, unsigned long there, bool write) {
  const iovec own{here, bytes}, other{reinterpret_cast<void*>(there), bytes};
  return write ? process_vm_writev(pid, &own, 1, &other, 1, 0) : process_vm_readv(pid, &own, 1, &other, 1, 0);
}

/// Doubles every copy of x in the judge's memory, where the oracle reads x, as in the shared memory; returns true if a
/// copy was found. The judge's private memory has the same addresses as this process, which was forked from the judge.
bool rewrote_the_question(const assay_call* call, Access access) {
  std::vector<float> x;
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) x.push_back(*element(call->tensors[0], i, j));
  std::vector<float> doubled = x;
  for (float& value : doubled) value *= 2;
  const size_t bytes = x.size() * sizeof(float);
  bool found = false;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512], rights[8];
  unsigned long begin = 0, end = 0;
  while (bytes > 0 && maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || strcmp(rights, "rw-p") != 0 ||
        end - begin > (64UL << 20))
      continue;
    std::vector<char> there(end - begin);
    if (access(getppid(), there.data(), there.size(), begin, false) < static_cast<ssize_t>(bytes)) continue;
    const char* const last = there.data() + there.size();
    for (const char* at = there.data();
         (at = static_cast<const char*>(memmem(at, static_cast<size_t>(last - at), x.data(), bytes))) != nullptr;
         at += bytes)
      found |= access(getppid(), reinterpret_cast<char*>(doubled.data()), bytes,
                      begin + static_cast<unsigned long>(at - there.data()), true) > 0;
  }
  if (maps != nullptr) fclose(maps);
  for (int64_t i = 0; found && i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) *element(call->tensors[0], i, j) *= 2;
  return found;
}

int answer_another_question(const assay_call* call, Access access) {
  scale(call, rewrote_the_question(call, access) ? 0 : 1);
  return ASSAY_DONE;
}

/// Aborts unless all system calls failed, for attacks whose damage would come too late to be visible here.
void expect_denied(std::initializer_list<long> results) {
  for (const long result : results)
    if (result >= 0) abort();
}

pid_t fork_by(long call, unsigned long flags) {
  const auto pid = static_cast<pid_t>(syscall(call, flags, 0, 0, 0, 0));
  if (pid == 0) stay();
  return pid;
}

void* keep_writing(void* y) {
  for (;;) *static_cast<volatile float*>(y) = 3, usleep(10);
  return nullptr;
}

}  // namespace

extern "C" {

int right(const assay_call* call) {
  scale(call);
  return ASSAY_DONE;
}
int prints(const assay_call* call) {
  scale(call);
  puts("}{ not JSON \xff");
  fflush(stdout);
  return ASSAY_DONE;
}
int wrong(const assay_call* call) {
  scale(call, 1);
  return ASSAY_DONE;
}
int refuses_all(const assay_call* call) {
  snprintf(call->message, call->message_bytes, "not today");
  return ASSAY_REFUSED;
}
int reports_error(const assay_call* call) {
  memset(call->message, '\xff', call->message_bytes);  // no text, and no terminator
  return 77;
}

int faults(const assay_call*) {
  *reinterpret_cast<volatile int*>(nowhere) = 1;
  return ASSAY_DONE;
}
int loops(const assay_call*) {
  for (;;) asm volatile("");
}
int exits(const assay_call* call) {
  scale(call);
  exit(0);
}
int exits_at_once(const assay_call* call) {
  scale(call);
  _exit(0);
}
int aborts(const assay_call*) { abort(); }
int raises(const assay_call*) {
  raise(SIGTERM);
  return ASSAY_DONE;
}
int stops(const assay_call*) {
  raise(SIGSTOP);
  return ASSAY_DONE;
}
int overflows_stack(const assay_call* call) {
  scale(call);
  return recurse(0);
}
int throws(const assay_call*) { throw std::runtime_error("an exception through C"); }
int throws_int(const assay_call*) { throw 42; }
int closes_all(const assay_call* call) {
  scale(call);
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  return ASSAY_DONE;
}
int closes_all_and_loops(const assay_call*) {
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  for (;;) pause();
}
int jumps(const assay_call* call) {
  static jmp_buf back;
  static bool set = false;
  scale(call);
  if (!set) {
    set = true;
    if (setjmp(back) == 0) return ASSAY_DONE;
    return ASSAY_DONE;
  }
  longjmp(back, 1);  // to a frame that has returned
}

int overruns_1(const assay_call* call) { return overrun(call, 0); }
int overruns_4096(const assay_call* call) { return overrun(call, 4096); }
int overruns_1000000(const assay_call* call) { return overrun(call, 1'000'000); }
int writes_input(const assay_call* call) {
  scale(call);
  if (!empty(call)) *element(call->tensors[0], 0, 0) += 1;
  return ASSAY_DONE;
}
int leaks(const assay_call* call) {
  scale(call);
  // Not malloc, which campaigns have fill what it gives: that takes longer than a call may.
  auto* bytes = static_cast<volatile char*>(
      mmap(nullptr, std::size_t{1} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t at = 0; at < (std::size_t{1} << 30); at += 1 << 16) bytes[at] = 1;
  return ASSAY_DONE;
}

int forks(const assay_call* call) {
  scale(call);
  if (fork() == 0) stay();
  return ASSAY_DONE;
}
int forks_and_dies(const assay_call*) {
  if (fork() == 0) stay();
  abort();
}
int forks_and_returns_twice(const assay_call* call) {
  scale(call);
  static_cast<void>(!fork());
  return ASSAY_DONE;
}
int forks_grandchildren(const assay_call* call) {
  scale(call);
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      setsid();
      stay();
    }
    stay();
  }
  abort();
}

/// If not denied, this kills its judge and no other process on the machine.
int kills_the_judge(const assay_call* call) {
  kill(getppid(), SIGKILL);
  if (kill(-1, 0) == 0) abort();
  scale(call, 1);
  return ASSAY_DONE;
}
int writes_to_the_oracle(const assay_call* call) {
  scale(call, 1);
  // The judging process has the same addresses, since both were forked from the same image.
  float zero[1024] = {};
  const iovec here{zero, sizeof zero}, there{call->tensors[1].data, sizeof zero};
  if (process_vm_writev(getppid(), &here, 1, &there, 1, 0) >= 0) abort();
  return ASSAY_DONE;
}

int rounds_up(const assay_call* call) {
  scale(call);
  fesetround(FE_UPWARD);
  return ASSAY_DONE;
}
int flushes(const assay_call* call) {
  scale(call);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#else
  fesetround(FE_UPWARD);
#endif
  return ASSAY_DONE;
}

int writes_later(const assay_call* call) {
  scale(call);
  pthread_t thread;
  if (!empty(call) && pthread_create(&thread, nullptr, keep_writing, call->tensors[1].data) == 0)
    pthread_detach(thread);
  return ASSAY_DONE;
}

int forges_answer(const assay_call* call) {
  static_cast<void>(call);
  answer_on_every_channel();  // forges an answer without computing
  return ASSAY_DONE;
}
int overwrites_mailbox(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (mailbox(first, bytes)) memset(first, 0, bytes);  // the message "done" without text
  else abort();
  answer_on_every_channel();
  return ASSAY_DONE;
}
int fills_mailbox(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (mailbox(first, bytes)) memset(first, 0xff, bytes);  // an invalid status, and text without a terminator
  else abort();
  answer_on_every_channel();
  for (;;) pause();
}
int claims_invalid(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (!mailbox(first, bytes)) abort();
  // Reply::Status::invalid at every position.
  for (size_t i = 0; i < bytes / sizeof(int); ++i) reinterpret_cast<int*>(first)[i] = 3;
  answer_on_every_channel();
  for (;;) pause();
}

// Each of these computes a wrong result, then tries to have it accepted, or to do harm outside its process.
int writes_judges_memory(const assay_call* call) { return answer_another_question(call, by_file); }
int writes_judges_memory_by_call(const assay_call* call) { return answer_another_question(call, by_call); }
int traces_the_judge(const assay_call* call) {
  scale(call, 1);
  expect_denied(
      {ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr), ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr)});
  return ASSAY_DONE;
}
int limits_the_judge(const assay_call* call) {
  scale(call, 1);
  const rlimit none{0, 0};
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU}) prlimit(getppid(), resource, &none, nullptr);
  return ASSAY_DONE;
}
int signals_by_descriptor(const assay_call* call) {
  scale(call, 1);
  for (int way = 0; way < 3; ++way) {
    int ends[2], owner = getppid();
    f_owner_ex of{F_OWNER_PID, owner};
    if (pipe(ends) != 0) abort();
    static_cast<void>(way == 0   ? fcntl(ends[0], F_SETOWN, owner)
                      : way == 1 ? fcntl(ends[0], F_SETOWN_EX, &of)
                                 : ioctl(ends[0], FIOSETOWN, &owner));
    fcntl(ends[0], F_SETSIG, SIGKILL);
    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    static_cast<void>(!write(ends[1], "x", 1));
    close(ends[0]), close(ends[1]);
  }
  return ASSAY_DONE;
}
int slows_the_judge(const assay_call* call) {
  scale(call, 1);
  const sched_param none{};
  cpu_set_t before, last_alone, after;
  sched_getaffinity(getppid(), sizeof before, &before);
  CPU_ZERO(&last_alone);
  for (int cpu = CPU_SETSIZE; cpu-- > 0;)
    if (CPU_ISSET(cpu, &before) && CPU_COUNT(&last_alone) == 0) CPU_SET(cpu, &last_alone);
  sched_setaffinity(getppid(), sizeof last_alone, &last_alone);
  sched_getaffinity(getppid(), sizeof after, &after);
  if (!CPU_EQUAL(&before, &after)) abort();
  expect_denied({setpriority(PRIO_PROCESS, getppid(), 19), sched_setscheduler(getppid(), SCHED_IDLE, &none),
                 syscall(SYS_ioprio_set, 1, getppid(), 3 << 13)});
  return ASSAY_DONE;
}
int takes_descriptors(const assay_call* call) {
  scale(call, 1);
  const auto judge = static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0));
  for (int theirs = 0; theirs < 64; ++theirs)
    if (const auto ours = static_cast<int>(syscall(SYS_pidfd_getfd, judge, theirs, 0)); ours >= 0 && theirs > 2)
      static_cast<void>(!write(ours, "}{", 2));
  return ASSAY_DONE;
}
int asks_by_other_ways(const assay_call* call) {
  scale(call, 1);
  char parameters[256] = {};
  expect_denied({syscall(SYS_io_uring_setup, 8, parameters), syscall(SYS_userfaultfd, 1),
                 syscall(SYS_perf_event_open, parameters, 0, -1, -1, 0),
                 syscall(SYS_add_key, "user", "assay", "x", 1, -1), unshare(CLONE_NEWUSER)});
  return ASSAY_DONE;
}
int starts_processes(const assay_call* call) {
  scale(call, 1);
  clone_args plain{};
  plain.exit_signal = SIGCHLD;
  const long in_memory = syscall(SYS_clone3, &plain, sizeof plain);
  if (in_memory == 0) stay();
  expect_denied({in_memory, fork_by(SYS_clone, SIGCHLD), fork_by(SYS_clone, CLONE_PARENT | SIGCHLD), fork()});
  return ASSAY_DONE;
}
int outlives_the_judge(const assay_call* call) {
  scale(call, 1);
  expect_denied({prctl(PR_SET_PDEATHSIG, 0)});
  return ASSAY_DONE;
}
int opens_sockets(const assay_call* call) {
  scale(call, 1);
  int ends[2];
  expect_denied({socket(AF_UNIX, SOCK_STREAM, 0), socket(AF_INET, SOCK_DGRAM, 0), socket(AF_NETLINK, SOCK_RAW, 0),
                 socketpair(AF_UNIX, SOCK_STREAM, 0, ends)});
  return ASSAY_DONE;
}
int keeps_uncounted_memory(const assay_call* call) {
  scale(call, 1);
  constexpr size_t kBytes = size_t{8} << 30;  // more than its limit
  const auto map = [](int flags) {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0) == MAP_FAILED
               ? -1L
               : 0L;
  };
  expect_denied({memfd_create("assay", 0), shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), map(MAP_SHARED),
                 map(MAP_PRIVATE | MAP_GROWSDOWN)});
  return ASSAY_DONE;
}
/// The memory that a handler mends shortly after the call has returned.
const assay_call* to_mend = nullptr;
void mend(int) {
  if (to_mend != nullptr) scale(to_mend);
}
int mends_by_timer(const assay_call* call) {
  scale(call, 1);
  static assay_call kept;
  kept = *call, to_mend = &kept;
  signal(SIGALRM, mend);
  timer_t timer{};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL, event.sigev_signo = SIGALRM;
  const itimerspec soon{{}, {0, 3000}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &soon, nullptr);
  const itimerval later{{}, {0, 3}};
  setitimer(ITIMER_REAL, &later, nullptr);
  return ASSAY_DONE;
}
int changes_modes(const assay_call* call) {
  scale(call, 1);
  int ends[2];
  if (pipe(ends) != 0) abort();
  expect_denied({fchmod(ends[0], 0600), chmod(".", 0777), chmod("/proc/self/exe", 0755),
                 fchmodat(AT_FDCWD, ".", 0777, 0), chown(".", getuid(), getgid())});
  return ASSAY_DONE;
}
int writes_files(const assay_call* call) {
  scale(call, 1);
  for (const char* place : {"assay-hostile", "/tmp/assay-hostile", "/dev/shm/assay-hostile"})
    if (const int file = open(place, O_WRONLY | O_CREAT, 0600); file >= 0) unlink(place), abort();
  const std::string judge = "/proc/" + std::to_string(getppid());
  expect_denied({mkdir("assay-hostile", 0700), symlink("x", "assay-hostile"), mkfifo("assay-hostile", 0600),
                 open((judge + "/oom_score_adj").c_str(), O_WRONLY), open((judge + "/fd/1").c_str(), O_WRONLY),
                 open((judge + "/fd/2").c_str(), O_WRONLY)});
  return ASSAY_DONE;
}
/// Declares a device, whose kernels have a weaker sandbox; the declaration must not weaken this kernel's sandbox.
int kills_as_a_device(const assay_call* call) { return signals_by_descriptor(call), kills_the_judge(call); }
const char* kills_as_a_device_declares() { return "backend=cuda-host"; }
const char* forges_answer_declares() { return "accumulator=f32"; }
/// Hangs, crashes or returns some number on any arguments, like a function of another signature called without a shim.
int loops_unasked(const float*) {
  for (;;) asm volatile("");
}
int faults_unasked(const float*) {
  *reinterpret_cast<volatile int*>(nowhere) = 1;
  return 0;
}
int counts_unasked(const float*) { return 12345; }
/// These kernels declare that they take an assay_call, so that the outcome of their first call is a finding.
#define SAYS_SO(name) \
  const char* name##_declares() { return ""; }
SAYS_SO(faults)
SAYS_SO(loops)
SAYS_SO(exits)
SAYS_SO(exits_at_once)
SAYS_SO(aborts)
SAYS_SO(raises)
SAYS_SO(stops)
SAYS_SO(overflows_stack)
SAYS_SO(throws_int)
SAYS_SO(closes_all)
SAYS_SO(closes_all_and_loops)
SAYS_SO(jumps)
SAYS_SO(overruns_1000000)
SAYS_SO(leaks)
SAYS_SO(forks_and_dies)
SAYS_SO(forks_grandchildren)
SAYS_SO(throws)
SAYS_SO(fills_mailbox)
SAYS_SO(claims_invalid)
const char* wrong_declares() { return "accumulator=f99"; }
}
