#include "falsify/engine/worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/errors.hpp"
#include "falsify/engine/leave.hpp"

namespace assay::falsify {
namespace {

constexpr std::size_t kPage = 4096;
/// A device's driver may take seconds to start, more while others start theirs: no fault of the kernel's.
constexpr std::chrono::minutes kStartLimit{2};
constexpr std::size_t kMaxClauses = 64;
constexpr std::size_t kMaxExtents = 16;

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(field, text.data(), n);
  field[n] = '\0';
}

/// A field that a kernel gone astray may have overwritten: never read past it.
template <std::size_t N>
std::string get_text(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

/// Pages that must not be touched while a kernel runs. They protect this process's mapping only.
class Fences {
 public:
  Fences(std::byte* base, std::span<const Placed> tensors) {
    for (const Placed& t : tensors) {
      if (t.fence_before) forbid(base + t.region - kPage);
      if (t.fence_after) forbid(base + t.region + t.region_bytes);
    }
  }
  ~Fences() {
    for (std::byte* page : pages_) mprotect(page, kPage, PROT_READ | PROT_WRITE);
  }
  Fences(const Fences&) = delete;
  Fences& operator=(const Fences&) = delete;

 private:
  void forbid(std::byte* page) {
    if (mprotect(page, kPage, PROT_NONE) == 0) pages_.push_back(page);
  }
  std::vector<std::byte*> pages_;
};

/// Runs on tensors where they lie (host) or on copies of their whole regions, sentinels included (devices).
void run_on(Device& device, const OpDescriptor& op, const Kernel& kernel, Call call, std::byte* base,
            std::span<const Placed> placed) {
  std::vector<Buffer> buffers;
  for (std::size_t t = 0; t < placed.size(); ++t) {
    const Placed& p = placed[t];
    void* address = base + p.data;
    if (!device.host_visible()) {
      buffers.push_back(device.allocate(p.region_bytes));
      device.upload(buffers.back().address(), base + p.region, p.region_bytes);
      address = static_cast<std::byte*>(buffers.back().address()) + (p.data - p.region);
    }
    call.tensors[t] = {p.dtype, address, p.shape, p.strides};
  }
  if (const auto why = refuses(kernel, call)) throw Unavailable(std::string(kernel.id), "\1" + *why);
  {
    const Fences fences(base, placed);
    op.checked(call, kernel, device);
  }
  device.synchronize();
  for (std::size_t t = 0; t < buffers.size(); ++t)
    device.download(base + placed[t].region, buffers[t].address(), placed[t].region_bytes);
  const std::vector<std::string> messages = device.take_messages();
  if (!messages.empty()) throw DeviceError("validation", fmt::format("{} messages", messages.size()), messages.front());
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("the process exited with status {} inside the call", WEXITSTATUS(status));
}

}  // namespace

struct Worker::Mailbox {
  const OpDescriptor* op;  ///< null: only the device is asked for
  const Kernel* kernel;
  contract::Level level;
  std::size_t dims, params, tensors;
  Index dim[kMaxExtents];
  double param[kMaxExtents];
  Placed placed[kMaxExtents];
  Reply::Status status;
  char detail[8192];
  char device[256];
  std::uint64_t counts[kMaxClauses];  ///< of this worker, for the op of the last call
};

Worker::Worker(std::chrono::milliseconds limit, std::size_t arena_bytes)
    : arena_(arena_bytes), mailbox_(reinterpret_cast<Mailbox*>(arena_.base())), limit_(limit) {}

Worker::~Worker() { restart(); }

std::size_t Worker::first_byte() const { return (sizeof(Mailbox) + kPage - 1) / kPage * kPage; }

std::string Worker::device() const { return get_text(mailbox_->device); }

namespace {
/// Counts of ended workers, and the last seen of the running one.
struct Tally {
  std::vector<std::uint64_t> ended, running;
};
std::map<const OpDescriptor*, Tally>& tallies() {
  static std::map<const OpDescriptor*, Tally> table;
  return table;
}

/// The running worker has ended: what it had counted is added to the ended ones.
void keep_counts() {
  for (auto& [op, tally] : tallies()) {
    tally.ended.resize(op->clauses.size());
    for (std::size_t i = 0; i < tally.running.size(); ++i) tally.ended[i] += tally.running[i];
    tally.running.clear();
  }
}
}  // namespace

std::vector<std::uint64_t> Worker::clause_counts(const OpDescriptor& op) const {
  std::vector<std::uint64_t> total(op.clauses.size());
  const Tally& tally = tallies()[&op];
  for (std::size_t i = 0; i < total.size(); ++i) {
    if (i < tally.ended.size()) total[i] += tally.ended[i];
    if (i < tally.running.size()) total[i] += tally.running[i];
  }
  return total;
}

void Worker::restart() {
  if (pid_ < 0) return;
  close(channel_);
  await_counts(pid_);
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = channel_ = -1;
  keep_counts();
}

void Worker::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Unavailable("worker process", fmt::format("socketpair failed: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw Unavailable("worker process", fmt::format("fork failed: {}", std::strerror(errno)));
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) leave(0);
    close(ends[0]);
    serve(ends[1]);
  }
  setpgid(pid_, pid_);
  close(ends[1]);
  channel_ = ends[0];
}

void Worker::serve(int channel) {
  char byte;
  while (read(channel, &byte, 1) == 1) {
    Mailbox& m = *mailbox_;
    const Call call{{m.dim, m.dim + m.dims}, {m.param, m.param + m.params}, std::vector<Tensor>(m.tensors)};
    bool device_is_here = false;
    try {
      contract::set_level(m.level);
      Device& d = assay::device(m.kernel->backend);
      device_is_here = true;
      set_text(m.device, d.description());
      if (m.op != nullptr) run_on(d, *m.op, *m.kernel, call, arena_.base(), {m.placed, m.tensors});
      m.status = Reply::Status::done;
    } catch (const Unavailable& e) {
      // A device that is here and lacks something for this call (memory, a limit) passes this one call on.
      m.status = device_is_here ? Reply::Status::refused : Reply::Status::unavailable;
      set_text(m.detail, e.why.starts_with('\1') ? e.why.substr(1) : e.what());
    } catch (const ContractViolation& e) {
      m.status = e.kind == ContractViolation::Kind::precondition ? Reply::Status::invalid : Reply::Status::violated;
      set_text(m.detail, e.what());
    } catch (const std::exception& e) {
      m.status = Reply::Status::failed;
      set_text(m.detail, e.what());
    }
    if (m.op != nullptr) {
      const std::span<const std::uint64_t> counts = m.op->counters();
      std::copy_n(counts.begin(), std::min(counts.size(), kMaxClauses), m.counts);
    }
    if (write(channel, &byte, 1) != 1) break;
  }
  leave(0);
}

Reply Worker::wait(std::chrono::milliseconds limit) {
  pollfd fd{channel_, POLLIN, 0};
  int ready;
  do ready = poll(&fd, 1, static_cast<int>(limit.count()));
  while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    restart();
    return {Reply::Status::hung, fmt::format("no answer within {} ms", limit.count())};
  }
  char byte;
  if (read(channel_, &byte, 1) == 1) return {mailbox_->status, get_text(mailbox_->detail)};
  int status = 0;
  waitpid(pid_, &status, 0);
  kill(-pid_, SIGKILL);  // whatever the kernel left behind
  close(channel_);
  pid_ = channel_ = -1;
  keep_counts();
  return {Reply::Status::crashed, how_it_ended(status)};
}

std::optional<Reply> Worker::ask(std::chrono::milliseconds limit) {
  const char byte = 1;
  if (send(channel_, &byte, 1, MSG_NOSIGNAL) != 1) return std::nullopt;
  return wait(limit);
}

std::optional<Reply> Worker::start_device(const Kernel& kernel) {
  start();
  mailbox_->op = nullptr;
  mailbox_->kernel = &kernel;
  mailbox_->detail[0] = '\0';
  const std::optional<Reply> reply = ask(kStartLimit);
  if (reply && reply->status == Reply::Status::done) return std::nullopt;
  restart();
  return Reply{Reply::Status::unavailable, reply ? reply->detail : "its process ended at once"};
}

Reply Worker::run(const OpDescriptor& op, const Kernel& kernel, std::span<const Index> dims,
                  std::span<const double> params, std::span<const Placed> tensors, contract::Level level) {
  if (dims.size() > kMaxExtents || params.size() > kMaxExtents || tensors.size() > kMaxExtents ||
      op.clauses.size() > kMaxClauses)
    throw std::logic_error("worker mailbox: more dims, params, tensors or clauses than it holds");
  if (pid_ < 0)
    if (const auto missing = start_device(kernel)) return *missing;
  Mailbox& m = *mailbox_;
  m.op = &op;
  m.kernel = &kernel;
  m.detail[0] = '\0';
  m.level = level;
  m.dims = dims.size(), m.params = params.size(), m.tensors = tensors.size();
  std::ranges::copy(dims, m.dim);
  std::ranges::copy(params, m.param);
  std::ranges::copy(tensors, m.placed);
  std::optional<Reply> answer = ask(limit_);
  if (!answer) {  // the process ended between two calls
    restart();
    if (const auto missing = start_device(kernel)) return *missing;
    m.op = &op;
    answer = ask(limit_);
    if (!answer) throw Unavailable("worker process", "it does not take calls");
  }
  const Reply reply = *answer;
  if (pid_ >= 0) tallies()[&op].running.assign(m.counts, m.counts + op.clauses.size());
  // A device that has failed may fail every later call too: those are not to be blamed on their cases.
  if (reply.status == Reply::Status::failed) restart();
  return reply;
}

}  // namespace assay::falsify
