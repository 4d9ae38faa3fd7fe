// Parallel campaigns: one driver process per kernel, at most `jobs` at once.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/journal.hpp"
#include "system/interrupt.hpp"

namespace assay::falsify {

/// Status for a progress line.
struct PoolStatus {
  int finished = 0;  ///< kernels
  int kernels = 0;
  double work_done = 0;  ///< in kernels: the finished ones, plus the completed fraction of the others' cases
  std::int64_t cases_done = 0;
  const nlohmann::json* last = nullptr;  ///< result of the kernel that has just finished, if any
};
using PoolProgress = std::function<void(const PoolStatus&)>;

/// Work for a process of its own; returns one JSON document.
struct Task {
  std::string name;  ///< for messages only
  std::function<nlohmann::json()> run;
  /// Makes the document if the process fails with this wait status; empty: the failure is our own bug.
  std::function<nlohmann::json(int status)> died{};
};
/// Called with its document when a task has ended, and several times a second with null.
using Tick = std::function<void(const nlohmann::json* ended)>;
/// Called with each document that a task sends before its end.
using Sent = std::function<void(const Task&, const nlohmann::json&)>;

/// Called in a task: sends a document to the parent process, before the last one.
void send(const nlohmann::json& document);

/// Runs tasks in parallel, at most `jobs` at once. Returns documents in the order in which tasks ended. A process that
/// dies or throws, and for which the task makes no document, is our own bug and is thrown as std::logic_error. Throws
/// EndedBySignal, after all processes have ended, if a signal was caught (CatchSignals).
std::vector<nlohmann::json> run_tasks(std::span<const Task> tasks, int jobs, const Tick& tick, const Sent& sent = {});

/// Returns results as report objects (report.hpp), in no particular order. Drivers are processes, so that campaigns
/// cannot affect one another. A driver that dies is our own bug and is thrown as std::logic_error; a foreign kernel
/// whose driver dies is mistrusted. With a journal, kernels finished there are not run again, and each result is
/// recorded before it is reported; progress covers the remaining kernels. Throws EndedBySignal as run_tasks() does.
std::vector<nlohmann::json> run_pool(std::span<const Kernel* const> kernels, const CampaignOptions& options, int jobs,
                                     const PoolProgress& progress, Journal* journal = nullptr);

}  // namespace assay::falsify
