// Campaigns side by side: one driver process per kernel, as many at once as there are jobs.
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

/// What is going on, for a progress line.
struct PoolStatus {
  int finished = 0;           ///< kernels
  int kernels = 0;
  double work_done = 0;       ///< in kernels: those finished, and of the others the part of their cases that was run
  std::int64_t cases_done = 0;
  const nlohmann::json* last = nullptr;  ///< result of the kernel that has just finished, if any
};
using PoolProgress = std::function<void(const PoolStatus&)>;

/// Work for a process of its own; gives one JSON document.
struct Task {
  std::string name;  ///< for messages only
  std::function<nlohmann::json()> run;
  /// Its document where the process ends otherwise than well, with this wait status; empty: that is a defect of ours.
  std::function<nlohmann::json(int status)> died{};
};
/// Called whenever a task has ended, with its document, and several times a second with null.
using Tick = std::function<void(const nlohmann::json* ended)>;
/// Called with what a task has sent before its end.
using Sent = std::function<void(const Task&, const nlohmann::json&)>;

/// Within a task: a document to the process that runs it, before the last.
void send(const nlohmann::json& document);

/// Runs tasks side by side, as many at once as there are jobs. Documents are in the order in which tasks ended. A process
/// that dies, or throws, and for which the task has no document is our own bug and is thrown as std::logic_error. Throws
/// EndedBySignal, once all processes have been ended, where a signal was caught (CatchSignals).
std::vector<nlohmann::json> run_tasks(std::span<const Task> tasks, int jobs, const Tick& tick, const Sent& sent = {});

/// Results as report objects (report.hpp), in no particular order. Drivers are processes, so that nothing
/// one campaign does reaches another; a driver that dies is our own bug and is thrown as std::logic_error, but for
/// those of foreign kernels, which are mistrusted. With a journal, what is finished there is not run again, and what ends is
/// recorded before it is told of; progress is that of the rest. Throws EndedBySignal as run_tasks() does.
std::vector<nlohmann::json> run_pool(std::span<const Kernel* const> kernels, const CampaignOptions& options, int jobs,
                                     const PoolProgress& progress, Journal* journal = nullptr);

}  // namespace assay::falsify
