#include "falsify/engine/pool.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "falsify/engine/checkpoint.hpp"
#include "falsify/engine/report.hpp"
#include "system/child_exit.hpp"
#include "system/child_process.hpp"

namespace assay::falsify {
namespace {

/// Milliseconds for a driver to exit after closing its pipe.
constexpr int kExit = 10'000;

struct Job {
  pid_t pid = -1;
  int pipe = -1;
  const Task* task = nullptr;
  std::string text;
};

/// Case counts by kernel, written by drivers and read by this process.
class SharedCounts {
 public:
  explicit SharedCounts(std::size_t kernels) : bytes_(std::max<std::size_t>(kernels, 1) * sizeof(Counter)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Unavailable("shared memory", std::strerror(errno));
    counters_ = static_cast<Counter*>(memory);
    std::uninitialized_value_construct_n(counters_, kernels);
  }
  ~SharedCounts() { munmap(counters_, bytes_); }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  /// Called in a driver: hides the counts from the processes that it starts.
  void keep_from_children() { madvise(counters_, bytes_, MADV_DONTFORK); }
  void set(std::size_t kernel, int done) { counters_[kernel].store(done, std::memory_order_relaxed); }
  std::int64_t value(std::size_t kernel) const { return counters_[kernel].load(std::memory_order_relaxed); }

 private:
  using Counter = std::atomic<std::int64_t>;
  std::size_t bytes_;
  Counter* counters_;
};

/// Writes the text; ends this process if the pipe's reader is gone.
void write_whole(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(pipe, text.data(), text.size());
    if (n <= 0) leave(1);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// In the process of a task: its pipe.
int to_parent = -1;

[[noreturn]] void drive(const Task& task, int pipe) {
  restore_signals();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  to_parent = pipe;
  write_whole(pipe, task.run().dump());
  leave(0);
}

Job start(const Task& task) {
  int ends[2];
  if (pipe(ends) != 0) throw Unavailable("driver process", std::strerror(errno));
  const pid_t pid = fork_process();
  if (pid == 0) {
    close(ends[0]);
    drive(task, ends[1]);
  }
  close(ends[1]);
  return {pid, ends[0], &task, {}};
}

/// Takes all documents that end with a newline; the result does not.
void forward_output(Job& job, const Sent& sent) {
  for (std::size_t end; (end = job.text.find('\n')) != std::string::npos; job.text.erase(0, end + 1))
    if (sent) sent(*job.task, nlohmann::json::parse(job.text.substr(0, end)));
}

/// Reads the available text; returns the result once the driver has ended.
std::optional<nlohmann::json> collect(Job& job, const Sent& sent) {
  char buffer[65536];
  const ssize_t n = read(job.pipe, buffer, sizeof buffer);
  if (n > 0) {
    job.text.append(buffer, static_cast<std::size_t>(n));
    forward_output(job, sent);
    return std::nullopt;
  }
  close(job.pipe);
  has_ended(job.pid, kExit);
  const int status = end_process(job.pid);
  job.pid = -1;
  if (ends_run(status)) throw EndedBySignal{WTERMSIG(status)};
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well && job.task->died) return job.task->died(status);
  if (!well)
    throw std::logic_error(
        fmt::format("the driver of {} ended with wait status {:#x}: a defect of assay itself", job.task->name, status));
  return nlohmann::json::parse(job.text);
}

/// Ends the running drivers if an exception is thrown.
struct Running {
  std::vector<Job> jobs;

  Running() = default;
  ~Running() {
    for (const Job& job : jobs) {
      if (job.pid < 0) continue;
      close(job.pipe);
      end_process(job.pid);
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

/// Result for a kernel whose driver process died (kernel interference, or our bug). All other kernels are still judged.
nlohmann::json not_judged(const Kernel& kernel, int status) {
  KernelResult result;
  result.kernel = &kernel;
  for (const Obligation& obligation : obligations(kernel.op)) {
    ObligationResult& record = result.obligations.emplace_back();
    record.info = obligation.info;
    record.verdict = Verdict::mistrusted;
    record.reason = fmt::format("the process that judges the kernel ended with wait status {:#x}", status);
  }
  return to_json(operation(kernel.op), result);
}

}  // namespace

void send(const nlohmann::json& document) { write_whole(to_parent, document.dump() + "\n"); }

std::vector<nlohmann::json> run_tasks(std::span<const Task> tasks, int jobs, const Tick& tick, const Sent& sent) {
  Running jobs_left;
  std::vector<Job>& running = jobs_left.jobs;
  std::vector<nlohmann::json> results;
  std::size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < static_cast<std::size_t>(std::max(jobs, 1)))
      running.push_back(start(tasks[next++]));
    std::vector<pollfd> fds;
    for (const Job& job : running) fds.push_back({job.pipe, POLLIN, 0});
    const int ready = caught_signal() != 0 ? 0 : poll(fds.data(), fds.size(), 250);
    if (const int signal = caught_signal(); signal != 0) throw EndedBySignal{signal};
    for (std::size_t j = fds.size(); j-- > 0;) {
      if (ready <= 0 || fds[j].revents == 0) continue;
      if (auto result = collect(running[j], sent)) {
        results.push_back(std::move(*result));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(j));
        tick(&results.back());
      }
    }
    tick(nullptr);
  }
  return results;
}

namespace {

/// Returns the resumption of a kernel's campaign from this journal.
Continuation continuation(const OpDescriptor& op, std::string_view kernel, const CampaignOptions& options,
                          const Journal& journal) {
  Continuation c{.from = {}, .save = [&op](const Checkpoint& checkpoint) { send(to_json(op, checkpoint)); }};
  const std::string id(kernel);
  if (const nlohmann::json from = journal.checkpoint(id); !from.is_null())
    c.from = checkpoint_from_json(op, options, from, journal.place(id));
  return c;
}

}  // namespace

std::vector<nlohmann::json> run_pool(std::span<const Kernel* const> all, const CampaignOptions& options, int jobs,
                                     const PoolProgress& progress, Journal* journal) {
  std::vector<const Kernel*> kernels(all.begin(), all.end());
  if (journal != nullptr)
    std::erase_if(kernels, [&](const Kernel* k) { return journal->finished(std::string(k->id)); });
  SharedCounts cases(kernels.size());
  PoolStatus status{.kernels = static_cast<int>(kernels.size())};
  std::vector<Task> tasks;
  std::vector<double> planned;
  std::set<std::string> ended_ids;
  for (const Kernel* k : kernels) {
    const std::size_t number = tasks.size();
    planned.push_back(options.cases * static_cast<double>(options.only.empty() ? obligations(k->op).size() : 1));
    const OpDescriptor& op = operation(k->op);
    Continuation how = journal != nullptr ? continuation(op, k->id, options, *journal) : Continuation{};
    tasks.push_back({std::string(k->id), [k, number, &op, &options, &cases, how = std::move(how)] {
                       cases.keep_from_children();
                       const auto count = [&](const Kernel&, std::int64_t done, std::int64_t) {
                         cases.set(number, done);
                       };
                       return to_json(op, run_campaign(op, *k, options, count, how));
                     }});
    tasks.back().died = [k](int status) { return not_judged(*k, status); };
  }
  const auto tick = [&](const nlohmann::json* ended) {
    if (ended != nullptr) {
      ended_ids.insert((*ended)["kernel"].get<std::string>());
      if (journal != nullptr) journal->add_result(*ended);
    }
    status.finished = static_cast<int>(ended_ids.size());
    status.last = ended;
    status.cases_done = 0;
    status.work_done = status.finished;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::int64_t done = cases.value(k);
      status.cases_done += done;
      if (done > 0 && !ended_ids.contains(tasks[k].name))
        status.work_done += std::min(1.0, static_cast<double>(done) / planned[k]);
    }
    if (progress) progress(status);
  };
  const auto sent = [journal](const Task& task, const nlohmann::json& checkpoint) {
    journal->add_checkpoint(task.name, checkpoint);
  };
  std::vector<nlohmann::json> results = run_tasks(tasks, jobs, tick, sent);
  if (journal != nullptr) std::ranges::copy(journal->results(), std::back_inserter(results));
  return results;
}

}  // namespace assay::falsify
