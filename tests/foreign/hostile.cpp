// Kernels for the contract `scale` (y = alpha x) that do the right thing and then something that no kernel may do. Each must
// give a verdict, with the report whole, within the time allowed and with no process left behind.
#include <assay/plugin.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace {

float* element(const DLTensor& t, int64_t i, int64_t j) {
  return static_cast<float*>(t.data) + i * t.strides[0] + j * t.strides[1];
}

/// y = alpha x, plus `error` where there is one: -0 + 0 is no -0.
void scale(const assay_call* call, float error = 0) {
  const auto alpha = static_cast<float>(call->params[0]);
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) {
      const float product = alpha * *element(call->tensors[0], i, j);
      *element(call->tensors[1], i, j) = error == 0 ? product : product + error;
    }
}

volatile std::uintptr_t nowhere = 8;

/// One past the last element of y, and so many bytes on.
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

/// Sleeps where the tests look for what is left: the name is that of the process.
[[noreturn]] void linger() {
  prctl(PR_SET_NAME, "assay-hostile");
  prctl(PR_SET_PDEATHSIG, 0);
  for (;;) pause();
}

int recurse(int depth) {
  volatile char frame[1 << 16];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

/// Writes to every descriptor that is not a standard one.
void answer_on_every_channel() {
  const char byte = 1;
  for (int fd = 3; fd < 1024; ++fd) static_cast<void>(!write(fd, &byte, 1));
}

/// What the engine and this process share but for the tensors: few pages between two that nobody may touch.
bool mailbox(char*& first, size_t& bytes) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512], access[8];
  unsigned long begin = 0, end = 0, inode = 0, inode_before = 0, length_before = 0;
  bool found = false, closed_before = false;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &begin, &end, access, &inode) != 4 || strstr(line, "/dev/zero") == nullptr) continue;
    if (access[0] == 'r' && inode == inode_before && closed_before && length_before == 4096 && end - begin <= 16 * 4096) {
      first = reinterpret_cast<char*>(begin);
      bytes = end - begin;
      found = true;
    }
    inode_before = inode, length_before = end - begin, closed_before = access[0] == '-';
  }
  if (maps != nullptr) fclose(maps);
  return found;
}

void* keep_writing(void* y) {
  for (;;) *static_cast<volatile float*>(y) = 3, usleep(10);
  return nullptr;
}

}  // namespace

extern "C" {

int right(const assay_call* call) { scale(call); return ASSAY_DONE; }
int prints(const assay_call* call) { scale(call); puts("}{ not JSON \xff"); fflush(stdout); return ASSAY_DONE; }
int wrong(const assay_call* call) { scale(call, 1); return ASSAY_DONE; }
int refuses_all(const assay_call* call) { snprintf(call->message, call->message_bytes, "not today"); return ASSAY_REFUSED; }
int reports_error(const assay_call* call) {
  memset(call->message, '\xff', call->message_bytes);  // no text, and no end
  return 77;
}

int faults(const assay_call*) { *reinterpret_cast<volatile int*>(nowhere) = 1; return ASSAY_DONE; }
int loops(const assay_call*) { for (;;) asm volatile(""); }
int exits(const assay_call* call) { scale(call); exit(0); }
int exits_at_once(const assay_call* call) { scale(call); _exit(0); }
int aborts(const assay_call*) { abort(); }
int raises(const assay_call*) { raise(SIGTERM); return ASSAY_DONE; }
int stops(const assay_call*) { raise(SIGSTOP); return ASSAY_DONE; }
int overflows_stack(const assay_call* call) { scale(call); return recurse(0); }
int throws(const assay_call*) { throw std::runtime_error("an exception through C"); }
int throws_int(const assay_call*) { throw 42; }
int closes_all(const assay_call* call) { scale(call); for (int fd = 0; fd < 1024; ++fd) close(fd); return ASSAY_DONE; }
int closes_all_and_loops(const assay_call*) { for (int fd = 0; fd < 1024; ++fd) close(fd); for (;;) pause(); }
int jumps(const assay_call* call) {
  static jmp_buf back;
  static bool set = false;
  scale(call);
  if (!set) { set = true; if (setjmp(back) == 0) return ASSAY_DONE; return ASSAY_DONE; }
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
  auto* bytes = static_cast<volatile char*>(malloc(std::size_t{1} << 30));
  for (std::size_t at = 0; at < (std::size_t{1} << 30); at += 1 << 16) bytes[at] = 1;
  return ASSAY_DONE;
}

int forks(const assay_call* call) { scale(call); if (fork() == 0) linger(); return ASSAY_DONE; }
int forks_and_dies(const assay_call*) { if (fork() == 0) linger(); abort(); }
int forks_and_returns_twice(const assay_call* call) { scale(call); static_cast<void>(!fork()); return ASSAY_DONE; }
int forks_grandchildren(const assay_call* call) {
  scale(call);
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      setsid();
      linger();
    }
    linger();
  }
  abort();
}

int kills_everyone(const assay_call* call) {
  kill(getppid(), SIGKILL);
  kill(getppid(), SIGSTOP);
  kill(-1, SIGKILL);
  scale(call, 1);
  return ASSAY_DONE;
}
int writes_to_the_oracle(const assay_call* call) {
  scale(call, 1);
  // The same addresses in the process that judges, which was forked from the same image.
  float zero[1024] = {};
  const iovec here{zero, sizeof zero}, there{call->tensors[1].data, sizeof zero};
  if (process_vm_writev(getppid(), &here, 1, &there, 1, 0) >= 0) abort();
  return ASSAY_DONE;
}

int rounds_up(const assay_call* call) { scale(call); fesetround(FE_UPWARD); return ASSAY_DONE; }
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
  if (!empty(call) && pthread_create(&thread, nullptr, keep_writing, call->tensors[1].data) == 0) pthread_detach(thread);
  return ASSAY_DONE;
}

int forges_answer(const assay_call* call) {
  static_cast<void>(call);
  answer_on_every_channel();  // nothing has been computed
  return ASSAY_DONE;
}
int overwrites_mailbox(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (mailbox(first, bytes)) memset(first, 0, bytes);  // "done", and no text
  else abort();
  answer_on_every_channel();
  return ASSAY_DONE;
}
int fills_mailbox(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (mailbox(first, bytes)) memset(first, 0xff, bytes);  // no status at all, and text without an end
  else abort();
  answer_on_every_channel();
  for (;;) pause();
}
int claims_invalid(const assay_call* call) {
  scale(call, 1);
  char* first;
  size_t bytes;
  if (!mailbox(first, bytes)) abort();
  for (size_t i = 0; i < bytes / sizeof(int); ++i) reinterpret_cast<int*>(first)[i] = 3;  // Reply::Status::invalid wherever it stands
  answer_on_every_channel();
  for (;;) pause();
}
const char* forges_answer_declares() { return "accumulator=f32"; }
const char* wrong_declares() { return "accumulator=f99"; }
}
