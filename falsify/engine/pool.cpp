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
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "falsify/engine/contain.hpp"
#include "falsify/engine/leave.hpp"
#include "falsify/engine/report.hpp"

namespace assay::falsify {
namespace {

/// Milliseconds that a driver has for its exit once it has closed its pipe.
constexpr int kExit = 10'000;

struct Job {
  pid_t pid = -1;
  int pipe = -1;
  const Task* task = nullptr;
  std::string text;
};

/// Cases by kernel, which drivers count and this process reads.
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
  void add(std::size_t kernel) { counters_[kernel].fetch_add(1, std::memory_order_relaxed); }
  std::int64_t value(std::size_t kernel) const { return counters_[kernel].load(std::memory_order_relaxed); }

 private:
  using Counter = std::atomic<std::int64_t>;
  std::size_t bytes_;
  Counter* counters_;
};

[[noreturn]] void drive(const Task& task, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const std::string text = task.run().dump();
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(pipe, text.data() + sent, text.size() - sent);
    if (n <= 0) leave(1);
    sent += static_cast<std::size_t>(n);
  }
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

/// Reads what there is; the result once the driver has ended.
std::optional<nlohmann::json> collect(Job& job) {
  char buffer[65536];
  const ssize_t n = read(job.pipe, buffer, sizeof buffer);
  if (n > 0) {
    job.text.append(buffer, static_cast<std::size_t>(n));
    return std::nullopt;
  }
  close(job.pipe);
  has_ended(job.pid, kExit);
  const int status = end_process(job.pid);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well && job.task->died) return job.task->died(status);
  if (!well)
    throw std::logic_error(fmt::format("the driver of {} ended with wait status {:#x}: a defect of assay itself",
                                       job.task->name, status));
  return nlohmann::json::parse(job.text);
}

/// The driver of a foreign kernel has died: with no other in its process, the kernel has had a hand in it.
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

std::vector<nlohmann::json> run_tasks(std::span<const Task> tasks, int jobs, const Tick& tick) {
  std::vector<Job> running;
  std::vector<nlohmann::json> results;
  std::size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < static_cast<std::size_t>(std::max(jobs, 1)))
      running.push_back(start(tasks[next++]));
    std::vector<pollfd> fds;
    for (const Job& job : running) fds.push_back({job.pipe, POLLIN, 0});
    poll(fds.data(), fds.size(), 250);
    for (std::size_t j = fds.size(); j-- > 0;) {
      if (fds[j].revents == 0) continue;
      if (auto result = collect(running[j])) {
        results.push_back(std::move(*result));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(j));
        tick(&results.back());
      }
    }
    tick(nullptr);
  }
  return results;
}

std::vector<nlohmann::json> run_pool(std::span<const Kernel* const> kernels, const CampaignOptions& options, int jobs,
                                     const PoolProgress& progress) {
  SharedCounts cases(kernels.size());
  PoolStatus status{.kernels = static_cast<int>(kernels.size())};
  std::vector<Task> tasks;
  std::vector<double> planned;
  std::set<std::string> ended_ids;
  for (const Kernel* k : kernels) {
    const std::size_t number = tasks.size();
    planned.push_back(options.cases * static_cast<double>(options.only.empty() ? obligations(k->op).size() : 1));
    tasks.push_back({std::string(k->id), [k, number, &options, &cases] {
                       const OpDescriptor& op = operation(k->op);
                       return to_json(op, run_campaign(op, *k, options, [&](const Kernel&, int, int) { cases.add(number); }));
                     }});
    if (k->id.starts_with("foreign/")) tasks.back().died = [k](int status) { return not_judged(*k, status); };
  }
  return run_tasks(tasks, jobs, [&](const nlohmann::json* ended) {
    if (ended != nullptr) ended_ids.insert((*ended)["kernel"].get<std::string>());
    status.finished = static_cast<int>(ended_ids.size());
    status.last = ended;
    status.cases_done = 0;
    status.work_done = status.finished;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::int64_t done = cases.value(k);
      status.cases_done += done;
      if (done > 0 && !ended_ids.contains(tasks[k].name)) status.work_done += std::min(1.0, static_cast<double>(done) / planned[k]);
    }
    if (progress) progress(status);
  });
}

}  // namespace assay::falsify
