#include "falsify/engine/worker.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.hpp"
#include "falsify/engine/load.hpp"
#include "runtime/cuda_host/thread_order.hpp"
#include "runtime/new_memory.hpp"
#include "system/child_exit.hpp"
#include "system/child_process.hpp"
#include "system/sandbox.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kPage = 4096;
/// A device's driver may take seconds to start, longer while others start: not the kernel's fault.
constexpr std::chrono::minutes kStartLimit{2};
/// Address space, hardly any of it backed by memory: room for ten tensors of 2^32 floats (Layout::far_rows).
constexpr std::size_t kFarArena = std::size_t{180} << 30;
constexpr std::size_t kMaxExtents = 16;

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(field, text.data(), n);
  field[n] = '\0';
}

/// Reads a field that a faulty kernel may have overwritten: bounded length, and valid UTF-8 for JSON.
template <std::size_t N>
std::string get_text(const char (&field)[N]) {
  const std::string text(field, strnlen(field, N));
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

/// Keeps freed memory: each case frees what the next allocates, and new pages cost more than the work on them.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

/// Maps large blocks with mmap so that free() unmaps them and a use-after-free faults. On a device the driver
/// allocates, lavapipe for each workgroup: a higher threshold there.
void return_freed_memory(Backend backend) {
  const bool host = traits(backend).host;
  mallopt(M_MMAP_MAX, 65536);
  mallopt(M_MMAP_THRESHOLD, host ? 128 << 10 : 32 << 20);
  mallopt(M_TRIM_THRESHOLD, host ? 128 << 10 : 64 << 20);
  // Memory that a kernel allocates on the host holds floats near the largest, 0x7f7f7f7f, until it is written.
  constexpr int kFreed = 0x80;  // what is freed is filled with this, what is allocated with its complement
  if (host) mallopt(M_PERTURB, kFreed);
}

void protect(const Arena& arena, std::size_t begin, std::size_t end, int access) {
  if (begin < end) mprotect(arena.base() + begin, end - begin, access);
}

/// Makes all but the tensors' regions inaccessible, in this process's mapping only. Guard pages persist between calls
/// because mprotect can cost more than the kernel, the more so the more pages larger cases have touched.
class GuardPages {
 public:
  explicit GuardPages(const Arena& arena) : arena_(arena), reach_(arena.bytes()) {}

  void set(std::span<const Placed> tensors) {
    std::vector<Placed::Piece> gaps;
    std::size_t end = 0;
    for (const Placed& tensor : tensors)  // in address order
      for (std::size_t i = 0; i < tensor.pieces; ++i) {
        const Placed::Piece piece = tensor.piece(i);
        gaps.push_back({end, piece.begin});
        end = piece.end;
      }
    gaps.push_back({end, std::max(end, reach_)});
    if (gaps == gaps_) return;
    protect(arena_, 0, end, PROT_READ | PROT_WRITE);
    for (const Placed::Piece& gap : gaps) protect(arena_, gap.begin, gap.end, PROT_NONE);
    reach_ = gaps.back().end = end;
    gaps_ = std::move(gaps);
  }

 private:
  const Arena& arena_;
  std::size_t reach_;  ///< everything beyond is inaccessible
  std::vector<Placed::Piece> gaps_;
};

struct Refused {
  std::string why;
};

/// Runs on tensors in place (host) or on copies of their whole regions, sentinels included (devices).
void run_on(Device& device, const Kernel& kernel, Call call, const Arena& arena, GuardPages& guard_pages,
            std::span<const Placed> placed) {
  guard_pages.set(placed);
  std::byte* const base = arena.base();
  std::vector<Buffer> buffers;
  for (std::size_t t = 0; t < placed.size(); ++t) {
    const Placed& p = placed[t];
    void* address = base + p.data;
    if (!device.host_visible()) {
      const GuardPage guard_page = !device.has_guard_pages() ? GuardPage::none
                                   : p.guard_before          ? GuardPage::before
                                   : p.guard_after           ? GuardPage::behind
                                                             : GuardPage::none;
      buffers.push_back(device.allocate(p.region_bytes, guard_page));
      for (std::size_t i = 0; i < p.pieces; ++i) {
        const Placed::Piece piece = p.piece(i);
        device.upload(static_cast<std::byte*>(buffers.back().address()) + (piece.begin - p.region), base + piece.begin,
                      piece.size());
      }
      address = static_cast<std::byte*>(buffers.back().address()) + (p.data - p.region);
    }
    call.tensors[t] = {p.dtype, address, p.shape, p.strides};
  }
  if (const auto why = refuses(kernel, call)) throw Refused{*why};
  {
    const PoisonNewMemory poison;
    kernel.run(call, device);
  }
  device.synchronize();
  for (std::size_t t = 0; t < buffers.size(); ++t)
    for (std::size_t i = 0; i < placed[t].pieces; ++i) {
      const Placed::Piece piece = placed[t].piece(i);
      device.download(base + piece.begin,
                      static_cast<std::byte*>(buffers[t].address()) + (piece.begin - placed[t].region), piece.size());
    }
  const std::vector<std::string> messages = device.take_messages();
  if (!messages.empty()) throw DeviceError("validation", fmt::format("{} messages", messages.size()), messages.front());
}

/// Describes the end of the process. `kept`: memory that earlier calls added, reported if it is most of the allowance.
std::string exit_description(int status, std::size_t kept) {
  std::string how = WIFSIGNALED(status)
                        ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                        : fmt::format("the process exited with status {} inside the call", WEXITSTATUS(status));
  constexpr double kGiB = 1 << 30;
  if (kept > kMemoryToAdd / 2)
    how += fmt::format(", and calls before it had kept {:.1f} of the {:.0f} GiB of memory that they may add",
                       static_cast<double>(kept) / kGiB, static_cast<double>(kMemoryToAdd) / kGiB);
  return how;
}

}  // namespace

struct Worker::Mailbox {
  bool only_device;  ///< request for the device only, no call
  const Kernel* kernel;
  BackgroundLoad beside;
  std::size_t dims, params, tensors;
  Index dim[kMaxExtents];
  double param[kMaxExtents];
  Placed placed[kMaxExtents];
  Reply::Status status;
  char detail[8192];
  char device[256];
  std::size_t largest_buffer;
  std::size_t kept;  ///< private memory that calls have added, at the last look
};

Worker::Worker(std::chrono::milliseconds limit, std::size_t arena_bytes)
    : arena_(arena_bytes, kFarArena), post_(kPage + sizeof(Mailbox) + kPage),
      mailbox_(reinterpret_cast<Mailbox*>(post_.base() + kPage)), limit_(limit) {
  keep_freed_memory();
  protect(post_, 0, kPage, PROT_NONE);
  protect(post_, post_.bytes() - kPage, post_.bytes(), PROT_NONE);
}

Worker::~Worker() { restart(); }

std::vector<std::uint64_t> Worker::clause_counts(const OpDescriptor& op) const {
  const auto at = evaluated_.find(&op);
  return at != evaluated_.end() ? at->second : std::vector<std::uint64_t>(op.clauses.size());
}

void Worker::restart() {
  if (pid_ < 0) return;
  close_ends();
  await_counts(pid_);
  end_process(pid_);
  output_.reset();
  pid_ = -1;
}

void Worker::close_ends() {
  close(channel_);
  if (process_ >= 0) close(process_);
  channel_ = process_ = -1;
}

void Worker::start(Backend backend) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Unavailable("worker process", fmt::format("socketpair failed: {}", std::strerror(errno)));
  output_ = std::make_unique<KernelOutput>();
  malloc_trim(0);  // free memory need not be copied
  pid_ = fork_process();
  if (pid_ == 0) {
    enter_sandbox(ends[1], output_->theirs(), traits(backend).host ? Sandbox::host : Sandbox::device);
    serve(ends[1]);
  }
  close(ends[1]);
  output_->close_theirs();
  channel_ = ends[0];
  process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

void Worker::serve(int channel) {
  if (order_ != 0) setenv(cuda_host::kThreadOrder, std::to_string(order_).c_str(), 1);
  const pid_t self = getpid();
  const std::size_t at_first = data_bytes();
  // interval after the first calls, since data_bytes() costs as much as a small call
  constexpr std::uint64_t kSeldom = 16;
  GuardPages guard_pages(arena_);
  char byte;
  for (std::uint64_t calls = 0; read(channel, &byte, 1) == 1; ++calls) {
    Mailbox& m = *mailbox_;
    const Kernel& kernel = *m.kernel;
    if (calls == 0) return_freed_memory(kernel.backend);
    const std::vector<Placed> placed(m.placed, m.placed + m.tensors);
    const Call call{{m.dim, m.dim + m.dims}, {m.param, m.param + m.params}, std::vector<Tensor>(m.tensors)};
    bool device_is_here = false;
    try {
      Device& d = assay::device(kernel.backend);
      device_is_here = true;
      if (m.only_device) {
        set_text(m.device, d.description());
        m.largest_buffer = d.largest_buffer();
      } else {
        const LoadScope load(m.beside == BackgroundLoad::load && d.host_visible());
        run_on(d, kernel, call, arena_, guard_pages, placed);
      }
      m.status = Reply::Status::done;
    } catch (const Refused& e) {
      m.status = Reply::Status::refused;
      set_text(m.detail, e.why);
    } catch (const Unavailable& e) {
      // A device that is present but lacks something for this call (memory, a limit) refuses this call only.
      m.status = device_is_here ? Reply::Status::refused : Reply::Status::unavailable;
      set_text(m.detail, e.what());
    } catch (const std::exception& e) {
      m.status = Reply::Status::failed;
      set_text(m.detail, e.what());
    }
    if (getpid() != self) leave(0);  // a child forked by the kernel has returned from it
    if (calls < kSeldom || calls % kSeldom == 0) m.kept = std::max(data_bytes(), at_first) - at_first;
    if (write(channel, &byte, 1) != 1) break;
  }
  leave(0);
}

namespace {
/// Returns the longest time that any thread of a process has waited for a CPU so far; 0 if the system does not count
/// it.
std::chrono::nanoseconds processor_wait(pid_t process) {
  std::chrono::nanoseconds most{0};
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    std::ifstream file(thread.path() / "schedstat");
    std::int64_t ran = 0, waited = 0;
    if (file >> ran >> waited) most = std::max(most, std::chrono::nanoseconds(waited));
  }
  return most;
}
}  // namespace

Reply Worker::wait(std::chrono::milliseconds limit) {
  using std::chrono::steady_clock;
  // Processes started by the kernel may hold the channel open after the worker has ended, so poll its pidfd too.
  pollfd fds[] = {{channel_, POLLIN, 0}, {process_, POLLIN, 0}, {output_->ours(), POLLIN, 0}};
  bool ready = false;
  const auto wait_for = [&](std::chrono::nanoseconds time) {
    const auto until = steady_clock::now() + time;
    do {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      if (poll(fds, 3, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0 && fds[2].revents != 0)
        output_->forward_output(), fds[2].fd = output_->ours();
      ready = fds[0].revents != 0 || fds[1].revents != 0;
    } while (!ready && steady_clock::now() < until);
  };
  // Do not count time spent waiting for a CPU. Cap the allowance, since a kernel's own threads can starve one another.
  // Most calls end before the first look at the waiting time.
  constexpr int kPatience = 5;
  const auto begin = steady_clock::now();
  wait_for(limit / 4);
  const std::chrono::nanoseconds before = !ready ? processor_wait(pid_) : std::chrono::nanoseconds(0);
  for (std::chrono::nanoseconds left = limit - limit / 4; !ready && left.count() > 0;) {
    wait_for(left);
    const auto elapsed = steady_clock::now() - begin;
    left = std::min<std::chrono::nanoseconds>(limit - (elapsed - (processor_wait(pid_) - before)),
                                              kPatience * limit - elapsed);
  }
  if (!ready) {
    restart();
    return {Reply::Status::hung, fmt::format("no answer within {} ms", limit.count())};
  }
  char byte;
  if (fds[0].revents == 0 || read(channel_, &byte, 1) != 1) return ended();
  const Reply::Status status = mailbox_->status;
  for (const Reply::Status known :
       {Reply::Status::done, Reply::Status::refused, Reply::Status::unavailable, Reply::Status::failed})
    if (status == known) return {status, get_text(mailbox_->detail)};
  return {Reply::Status::failed, "its process answered what the engine never answers"};
}

Reply Worker::ended() {
  constexpr int kExit = 1000;  // milliseconds from the closing of the channel at exit to the exit itself
  const bool closed = !has_ended(pid_, kExit);
  const std::string how = exit_description(end_process(pid_), mailbox_->kept);
  close_ends();
  output_.reset();
  pid_ = -1;
  return {Reply::Status::crashed, closed ? "the channel to the engine was closed and the process ran on" : how};
}

Reply Worker::ask(std::chrono::milliseconds limit) {
  char byte = 1;
  if (recv(channel_, &byte, 1, MSG_DONTWAIT) == 1) {
    restart();
    return {Reply::Status::failed, "its process answered before it was asked"};
  }
  if (::send(channel_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return wait(limit);
  Reply reply = ended();
  reply.detail += ", after the call before this one had returned";
  return reply;
}

std::optional<Reply> Worker::start_device(const Kernel& kernel) {
  start(kernel.backend);
  *mailbox_ = {};  // discard data of the previous process
  mailbox_->only_device = true;
  mailbox_->kernel = &kernel;
  const Reply reply = ask(kStartLimit);
  if (reply.status == Reply::Status::done) {
    device_ = get_text(mailbox_->device);
    largest_buffer_ = mailbox_->largest_buffer;
    return std::nullopt;
  }
  restart();
  return Reply{Reply::Status::unavailable, reply.detail};
}

std::size_t Worker::largest_buffer(const Kernel& kernel) {
  return pid_ < 0 && start_device(kernel) ? 0 : largest_buffer_;
}

namespace {

Call call_in(const Arena& arena, std::span<const Index> dims, std::span<const double> params,
             std::span<const Placed> tensors) {
  Call call{{dims.begin(), dims.end()}, {params.begin(), params.end()}, {}};
  for (const Placed& t : tensors) call.tensors.push_back({t.dtype, arena.base() + t.data, t.shape, t.strides});
  return call;
}

}  // namespace

std::optional<std::string> Worker::forbids(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims,
                                           std::span<const double> params, std::span<const Placed> tensors) const {
  const Call call = call_in(arena_, dims, params, tensors);
  if (refuses_storage(kernel, call)) return std::nullopt;
  try {
    op.check_requires(call);
  } catch (const ContractViolation& e) {
    return e.what();
  }
  return std::nullopt;
}

Reply Worker::run(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims,
                  std::span<const double> params, std::span<const Placed> tensors, contract::Level level) {
  if (dims.size() > kMaxExtents || params.size() > kMaxExtents || tensors.size() > kMaxExtents)
    throw std::logic_error("worker mailbox: more dims, params or tensors than it holds");
  const BackgroundLoad beside = std::exchange(beside_, BackgroundLoad::nothing);
  const Call call = call_in(arena_, dims, params, tensors);
  if (const auto why = refuses_storage(kernel, call)) return {Reply::Status::refused, *why};
  if (level == contract::Level::off) return run_there(kernel, dims, params, tensors, beside);
  // Check the contract here, around a call that runs in the worker: the kernel cannot influence the check.
  const std::vector<std::uint64_t> before(op.counters().begin(), op.counters().end());
  try {
    op.check_requires(call);
  } catch (const ContractViolation& e) {
    return {Reply::Status::invalid, e.what()};
  }
  Reply reply = run_there(kernel, dims, params, tensors, beside);
  if (reply.status != Reply::Status::done) return reply;
  try {
    if (level == contract::Level::full) op.check_ensures(call, kernel);
  } catch (const ContractViolation& e) {
    reply = {Reply::Status::violated, e.what()};
  }
  std::vector<std::uint64_t>& evaluated = evaluated_[&op];
  evaluated.resize(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) evaluated[i] += op.counters()[i] - before[i];
  return reply;
}

Reply Worker::run_there(const Kernel& kernel, std::span<const Index> dims, std::span<const double> params,
                        std::span<const Placed> tensors, BackgroundLoad beside) {
  const std::chrono::milliseconds allowed = traits(kernel.backend).time_factor * limit_;
  std::chrono::milliseconds limit = allowed;
  if (deadline_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - std::chrono::steady_clock::now());
    limit = std::clamp(left, std::chrono::milliseconds(1), allowed);
  }
  if (pid_ < 0)
    if (const auto missing = start_device(kernel)) return *missing;
  Mailbox& m = *mailbox_;
  m.only_device = false;
  m.kernel = &kernel;
  m.detail[0] = '\0';
  m.beside = beside;
  m.dims = dims.size(), m.params = params.size(), m.tensors = tensors.size();
  std::ranges::copy(dims, m.dim);
  std::ranges::copy(params, m.param);
  std::ranges::copy(tensors, m.placed);
  const Reply reply = ask(limit);
  if (reply.status == Reply::Status::hung && limit < allowed) throw DeadlineReached{};
  has_returned_ = has_returned_ || reply.status == Reply::Status::done || reply.status == Reply::Status::refused;
  // A failed device may fail every later call too: do not blame the later cases.
  if (reply.status == Reply::Status::failed) restart();
  return reply;
}

}  // namespace assay::falsify
