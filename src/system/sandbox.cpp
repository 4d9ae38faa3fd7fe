#include "system/sandbox.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"
#include "system/child_exit.hpp"
#include "system/child_process.hpp"

namespace assay {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // shadow memory is larger
#else
constexpr bool kLimitsMemory = true;
#endif
#if defined(ASSAY_SANITIZED)
constexpr bool kStartsProcesses = true;  // a sanitizer's symbolizer is one
#else
constexpr bool kStartsProcesses = false;
#endif
#if defined(ASSAY_COVERAGE)
constexpr bool kWritesFiles = true;  // coverage counts, written when the process exits
#else
constexpr bool kWritesFiles = false;
#endif

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

/// Drops capabilities from every set, the bounding set included; returns true once none is left.
bool drop_capabilities() {
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) continue;
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> held{};
  syscall(SYS_capset, &header, held.data());
  if (syscall(SYS_capget, &header, held.data()) != 0) return false;
  return std::ranges::all_of(
      held, [](const auto& part) { return (part.effective | part.permitted | part.inheritable) == 0; });
}

// From <linux/landlock.h>, which may be older than the running kernel.
namespace landlock {

struct Ruleset {
  std::uint64_t file_system, network, scoped;
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};
constexpr int kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;  // the same on every architecture
constexpr unsigned kAskVersion = 1;
constexpr int kRulePathBeneath = 1;
constexpr std::uint64_t kScopeSignal = 1U << 1U;
constexpr std::uint64_t kWriteFile = 1U << 1U, kTruncate = 1U << 14U, kIoctl = 1U << 15U, kMakeBlock = 1U << 11U;
/// rights that a rule for a non-directory may name
constexpr std::uint64_t kOfFiles = kWriteFile | kTruncate | kIoctl;

/// Returns the Landlock version; 0 if there is none.
int version() { return static_cast<int>(std::max(0L, syscall(kCreateRuleset, nullptr, 0, kAskVersion))); }

/// Returns all rights that change files, folders or devices, and no right that reads them.
constexpr std::uint64_t changes(int version) {
  std::uint64_t rights = kWriteFile | 0x1ff0U;  // remove and make, of every kind
  if (version >= 2) rights |= 1U << 13U;        // link and rename between folders
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kIoctl;
  return rights;
}

void allow(int ruleset, const std::string& path, std::uint64_t rights) {
  PathBeneath rule{rights, open(path.c_str(), O_PATH | O_CLOEXEC)};
  if (rule.parent < 0) return;
  if (syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0) != 0 && errno == EINVAL) {  // not a directory
    rule.allowed &= kOfFiles;
    syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0);
  }
  close(rule.parent);
}

/// Allows writes to everything but /proc and /sys; of /proc only to this process's entry.
void allow_driver_writes(int ruleset, std::uint64_t rights) {
  DIR* const root = opendir("/");
  while (const dirent* entry = root != nullptr ? readdir(root) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name != "proc" && name != "sys")
      allow(ruleset, fmt::format("/{}", name), rights);
  }
  if (root != nullptr) closedir(root);
  allow(ruleset, "/proc/self", rights);
}

/// Enters a Landlock domain: no process outside of it can be traced or, from version 6 on, signalled.
bool restrict_self(Sandbox kind) {
  const int has = version();
  if (has == 0) return false;
  const std::uint64_t rights = kWritesFiles ? kMakeBlock : changes(has);
  const Ruleset wanted{rights, 0, has >= 6 ? kScopeSignal : 0};
  const auto ruleset = static_cast<int>(syscall(kCreateRuleset, &wanted, sizeof wanted, 0));
  if (ruleset < 0) return false;
  if (kind == Sandbox::device) allow_driver_writes(ruleset, rights);
  else allow(ruleset, "/dev/null", rights);
  const bool done = syscall(kRestrictSelf, ruleset, 0) == 0;
  close(ruleset);
  return done;
}

}  // namespace landlock

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // no filter
#endif

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t fails_with(std::uint32_t error) { return SECCOMP_RET_ERRNO | error; }
constexpr std::uint32_t kDeny = fails_with(EPERM);
constexpr std::uint32_t kPretend = fails_with(0);  ///< skip the call and report success

/// A filter of system calls, by their numbers and the low halves of arguments.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, kArchitecture, 1, 0);
    give(kDeny);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    jump(BPF_JGE, 0x40000000, 0, 1);  // x32 system calls
    give(kDeny);
#endif
  }

  void deny(std::initializer_list<long> calls, std::uint32_t how = kDeny) {
    for (const long call : calls) {
      jump(BPF_JEQ, call, 0, 1);
      give(how);
    }
  }
  /// Allows the calls only with one of these values as an argument.
  void allow_if(std::initializer_list<long> calls, unsigned argument, std::initializer_list<std::uint32_t> values,
                std::uint32_t otherwise = kDeny) {
    for (const long call : calls) decide(call, argument, BPF_JEQ, values, kAllow, otherwise);
  }
  void deny_if(long call, unsigned argument, std::initializer_list<std::uint32_t> values) {
    decide(call, argument, BPF_JEQ, values, kDeny, kAllow);
  }
  void allow_with_bits(long call, unsigned argument, std::uint32_t bits) {
    decide(call, argument, BPF_JSET, {bits}, kAllow, kDeny);
  }
  void deny_with_bits(long call, unsigned argument, std::uint32_t bits) {
    decide(call, argument, BPF_JSET, {bits}, kDeny, kAllow);
  }

  /// Installs the filter, which also covers threads started later.
  bool install() {
    give(kAllow);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    // Older kernels enable slow speculation mitigations for filtered processes; a kernel under test has no secrets to
    // protect.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0;
  }

 private:
  void load(std::size_t offset) {
    code_.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)});
  }
  void jump(std::uint16_t test, long value, std::size_t if_true, std::size_t if_false) {
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(if_true),
                     static_cast<std::uint8_t>(if_false), static_cast<std::uint32_t>(value)});
  }
  void give(std::uint32_t action) { code_.push_back({BPF_RET | BPF_K, 0, 0, action}); }
  void decide(long call, unsigned argument, std::uint16_t test, std::initializer_list<std::uint32_t> values,
              std::uint32_t then, std::uint32_t otherwise) {
    jump(BPF_JEQ, call, 0, values.size() + 3);
    load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));  // little endian
    std::size_t left = values.size();
    for (const std::uint32_t value : values) jump(test, value, left--, 0);
    give(otherwise);
    give(then);
  }

  std::vector<sock_filter> code_;
};

// Newer than some build headers; the numbers are the same on every architecture.
constexpr long kProcessMadvise = 440, kMemfdSecret = 447, kProcessMrelease = 448, kFchmodat2 = 452;

/// Denies every kernel the calls that name another process. A host kernel needs only memory, threads and reading files.
bool filter_system_calls(Sandbox kind) {
  if (kArchitecture == 0) return false;
  Filter filter;
  const auto self = static_cast<std::uint32_t>(getpid());
  filter.deny({SYS_ptrace, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_rt_sigqueueinfo,
               SYS_rt_tgsigqueueinfo, SYS_tkill, kProcessMadvise, kProcessMrelease, SYS_kcmp, SYS_migrate_pages});
  filter.allow_if({SYS_kill, SYS_tgkill, SYS_process_vm_readv}, 0, {self});
  filter.allow_if({SYS_prlimit64}, 0, {0, self});
  if (kind == Sandbox::device) return filter.install();

  // A filter cannot know the ids of this process's threads, so each thread sets its own priority and processors. OpenMP
  // may set the processors of the threads that it starts and ends the process if that fails: pretend success.
  filter.allow_if({SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr}, 0, {0, self});
  filter.allow_if({SYS_sched_setaffinity}, 0, {0, self}, kPretend);
  filter.deny({SYS_setpriority, SYS_ioprio_set});
  // Deny signals sent through a descriptor, and terminal control.
  filter.deny_if(SYS_fcntl, 1, {F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY});
  filter.deny_if(SYS_ioctl, 1, {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX});
  // The process ends with its parent, and only the parent reaps its orphans.
  filter.deny_if(SYS_prctl, 0, {PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER});
  if (!kStartsProcesses) {
    filter.allow_with_bits(SYS_clone, 0, CLONE_THREAD);
    filter.deny({SYS_clone3}, fails_with(ENOSYS));  // its flags are in memory; C libraries fall back to clone()
#if defined(SYS_fork)
    filter.deny({SYS_fork, SYS_vfork});
#endif
    filter.deny({SYS_socket, SYS_socketpair});
  }
  // Deny memory that no limit counts: shared mappings, growing stacks, segments, messages.
  filter.deny_with_bits(SYS_mmap, 3, MAP_SHARED | MAP_GROWSDOWN);
  filter.deny({SYS_memfd_create, kMemfdSecret, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_semget, SYS_mq_open});
  // Deny timers: a handler that runs right after the call could mend its outputs before they are read.
  filter.deny({SYS_timer_create, SYS_setitimer});
#if defined(SYS_alarm)
  filter.deny({SYS_alarm});
#endif
  // Deny ways around this filter, and interfaces that no kernel needs.
  filter.deny({SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_userfaultfd, SYS_bpf,
               SYS_perf_event_open, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_unshare, SYS_setns});
  // Landlock does not restrict changes of modes, owners and attributes.
  filter.deny({SYS_fchmod, SYS_fchmodat, kFchmodat2, SYS_fchown, SYS_fchownat, SYS_truncate, SYS_setxattr,
               SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat});
#if defined(SYS_chmod)
  filter.deny({SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat});
#endif
  return filter.install();
}

void close_all_but(int channel, int output) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (channel > STDERR_FILENO + 1) syscall(SYS_close_range, STDERR_FILENO + 1, channel - 1, 0);
  syscall(SYS_close_range, channel + 1, ~0u, 0);
}

}  // namespace

std::size_t data_bytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);  // streams are several times slower
  char text[256];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  std::size_t pages = 0;  // size resident shared text lib data dirty
  return std::sscanf(text, "%*u %*u %*u %*u %*u %zu", &pages) == 1
             ? pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))
             : 0;
}

void forbid_tracing() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

Locks enter_sandbox(int channel, int output, Sandbox kind) {
  setsid();  // a process group of its own, without a terminal
  close_all_but(channel, output);
  limit(RLIMIT_CORE, 0);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // keeps its own /proc files accessible to itself
  if (kind == Sandbox::host) {
    if (kLimitsMemory) limit(RLIMIT_DATA, data_bytes() + kMemoryToAdd);
    limit(RLIMIT_FSIZE, kFileBytes);
  }
  Locks locks;
  locks.capabilities = drop_capabilities();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  locks.landlock = landlock::restrict_self(kind);
  locks.files = locks.landlock && kind == Sandbox::host && !kWritesFiles;
  locks.system_calls = filter_system_calls(kind);
  return locks;
}

Locks locks_here() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Unavailable("sandbox", "no pipe could be opened to look at it");
  const pid_t pid = fork_process();
  if (pid == 0) {
    const Locks locks = enter_sandbox(ends[1], STDERR_FILENO, Sandbox::host);
    leave(write(ends[1], &locks, sizeof locks) != sizeof locks);
  }
  close(ends[1]);
  Locks locks;
  if (read(ends[0], &locks, sizeof locks) != sizeof locks) locks = {};
  close(ends[0]);
  await_counts(pid);
  end_process(pid);
  locks.untraceable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  return locks;
}

}  // namespace assay
