// Tasks in processes of their own: their results, their messages, and the end of a run after a failed task.
#include "falsify/engine/pool.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "falsify/engine/obligation.hpp"

namespace assay::falsify::pool_test {
namespace {

using nlohmann::json;
constexpr auto kNoTick = [](const json*) {};

/// Integers in memory shared between tasks and this process.
class Shared {
 public:
  Shared()
      : at_(static_cast<std::atomic<int>*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { munmap(at_, 4096); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  std::atomic<int>& operator[](int i) const { return at_[i]; }

 private:
  std::atomic<int>* at_;
};

void pause_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
bool is_gone(pid_t process) { return process > 0 && kill(process, 0) == -1 && errno == ESRCH; }

TEST(Tasks, GiveTheirDocumentsInTheOrderInWhichTheyEnd) {
  const Shared shared;
  const auto quick = [&](int number) {
    return Task{"quick", [&shared, number] {
                  shared[0] = 1;
                  return json{{"number", number}, {"pid", getpid()}};
                }};
  };
  const std::vector<Task> tasks{{"waits",
                                 [&] {
                                   while (shared[0] == 0) pause_a_little();
                                   pause_a_little();
                                   return json{{"number", 0}, {"pid", getpid()}};
                                 }},
                                quick(1)};
  std::vector<json> ticked;
  int idle = 0;
  const std::vector<json> documents = run_tasks(tasks, 2, [&](const json* ended) {
    if (ended != nullptr) ticked.push_back(*ended);
    else ++idle;
  });
  EXPECT_EQ(ticked, documents);
  EXPECT_GT(idle, 0);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0]["number"], 1);
  EXPECT_EQ(documents[1]["number"], 0);
  EXPECT_NE(documents[0]["pid"], documents[1]["pid"]);
  for (const json& document : documents) {
    EXPECT_NE(document["pid"], getpid());
    EXPECT_TRUE(is_gone(document["pid"].get<pid_t>()));
  }
  EXPECT_TRUE(run_tasks({}, 2, kNoTick).empty());
}

/// A finished task is reported at once, while others still run: here the others wait for the report.
TEST(Tasks, AreToldOfWhileOthersRun) {
  const Shared shared;
  const Task quick{"quick", [] { return json("quick"); }};
  const Task waits{"waits", [&] {
                     for (int i = 0; i < 250 && shared[0] == 0; ++i) pause_a_little();
                     return json(shared[0] == 1 ? "told" : "not told");
                   }};
  const auto tell = [&](const json* ended) {
    if (ended != nullptr && *ended == "quick") shared[0] = 1;
  };
  for (const std::vector<Task>& tasks : {std::vector<Task>{quick, waits}, {waits, quick}}) {
    shared[0] = 0;
    EXPECT_EQ(run_tasks(tasks, 2, tell), (std::vector<json>{"quick", "told"}));
  }
}

TEST(Tasks, AreAsManyAtOnceAsThereAreJobs) {
  for (const int jobs : {-1, 0, 1, 2, 3, 9}) {
    const Shared shared;
    const Task task{"counts", [&shared] {
                      const int now = ++shared[0];
                      for (int most = shared[1]; most < now && !shared[1].compare_exchange_weak(most, now);) {}
                      // Wait until the permitted number of tasks has started.
                      const int wanted = std::clamp(shared[2].load(), 1, 4);
                      for (int i = 0; i < 100 && shared[1] < wanted; ++i) pause_a_little();
                      if (wanted == 1) pause_a_little();
                      --shared[0];
                      return json(now);
                    }};
    shared[2] = jobs;
    const std::vector<Task> tasks(4, task);
    EXPECT_EQ(run_tasks(tasks, jobs, kNoTick).size(), 4U);
    EXPECT_EQ(shared[1], std::clamp(jobs, 1, 4)) << jobs;
  }
}

TEST(Tasks, SendDocumentsBeforeTheirLast) {
  const json large(std::string(200'000, 'x'));
  const Task task{"sends", [&] {
                    send(json{{"first", "line\nof two"}});
                    for (int i = 0; i < 100; ++i) send(i);
                    send(large);
                    return json("last");
                  }};
  std::vector<json> sent;
  const std::vector<json> documents =
      run_tasks(std::span(&task, 1), 1, kNoTick, [&](const Task& of, const json& document) {
        EXPECT_EQ(&of, &task);
        sent.push_back(document);
      });
  EXPECT_EQ(documents, std::vector<json>{"last"});
  ASSERT_EQ(sent.size(), 102U);
  EXPECT_EQ(sent.front(), (json{{"first", "line\nof two"}}));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(sent[i + 1], i);
  EXPECT_EQ(sent.back(), large);
  EXPECT_EQ(run_tasks(std::span(&task, 1), 1, kNoTick), std::vector<json>{"last"}) << "and where nobody asks for them";
}

TEST(Tasks, OneThatDoesNotEndWellHasADocumentForThat) {
  const auto told = [](int status) { return json{{"status", status}}; };
  const std::vector<Task> tasks{{"leaves", []() -> json { _exit(3); }, told},
                                {"right", [] { return json("right"); }, told},
                                {"killed",
                                 []() -> json {
                                   kill(getpid(), SIGKILL);
                                   return {};
                                 },
                                 told}};
  EXPECT_EQ(run_tasks(tasks, 1, kNoTick), (std::vector<json>{{{"status", 3 << 8}}, "right", {{"status", SIGKILL}}}));
}

TEST(Tasks, OneThatDiesWithoutADocumentEndsTheOthersAndIsADefect) {
  const Shared shared;
  const std::vector<Task> tasks{{"stays",
                                 [&]() -> json {
                                   shared[0] = getpid();
                                   for (;;) pause();
                                 }},
                                {"leaves", [&]() -> json {
                                   while (shared[0] == 0) pause_a_little();
                                   _exit(3);
                                 }}};
  std::string said;
  try {
    run_tasks(tasks, 2, kNoTick);
  } catch (const std::logic_error& e) {
    said = e.what();
  }
  EXPECT_EQ(said, "the driver of leaves ended with wait status 0x300: a defect of assay itself");
  EXPECT_TRUE(is_gone(shared[0]));
}

TEST(Tasks, ASignalEndsThemAll) {
  const Shared shared;
  const std::vector<Task> tasks(2, {"stays", [&]() -> json {
                                      shared[1 + shared[0]++] = getpid();
                                      for (;;) pause();
                                    }});
  const CatchSignals caught;
  int signal = 0;
  try {
    run_tasks(tasks, 2, [&](const json*) {
      if (shared[1] != 0 && shared[2] != 0) raise(SIGTERM);
    });
  } catch (const EndedBySignal& e) {
    signal = e.signal;
  }
  EXPECT_EQ(signal, SIGTERM);
  for (const int i : {1, 2}) EXPECT_TRUE(is_gone(shared[i])) << i;
  restore_signals();  // also discards the pending signal
}

/// A terminal's signal reaches processes and their tasks: the run ends whichever is seen first.
TEST(Tasks, OneThatASignalEndedEndsTheRunWhereSignalsAreCaught) {
  const Task task{"ends",
                  []() -> json {
                    kill(getpid(), SIGTERM);
                    return "not ended";
                  },
                  [](int status) { return json(status); }};
  EXPECT_EQ(run_tasks(std::span(&task, 1), 1, kNoTick), std::vector<json>{SIGTERM});
  const CatchSignals caught;
  int signal = 0;
  try {
    run_tasks(std::span(&task, 1), 1, kNoTick);
  } catch (const EndedBySignal& e) {
    signal = e.signal;
  }
  EXPECT_EQ(signal, SIGTERM);
}

TEST(Signals, AreNotedWhileTheyAreCaughtAndThenWhatTheyWereBefore) {
  struct sigaction own {
  }, now{}, before{};
  own.sa_handler = [](int) {};
  sigaction(SIGTERM, &own, &before);
  const auto interrupt = ::signal(SIGINT, SIG_IGN);
  {
    const CatchSignals caught;
    EXPECT_EQ(caught_signal(), 0);
    sigaction(SIGINT, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN) << "as under nohup";
    raise(SIGTERM);
    EXPECT_EQ(caught_signal(), SIGTERM);
  }
  sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::signal(SIGINT, SIG_DFL);
  {
    const CatchSignals caught;
    EXPECT_EQ(caught_signal(), 0) << "of an earlier run there is no note";
    raise(SIGINT);
    EXPECT_EQ(caught_signal(), SIGINT);
    restore_signals();
    EXPECT_EQ(caught_signal(), 0);
  }
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  ::signal(SIGINT, interrupt);
  sigaction(SIGTERM, &before, nullptr);
}

/// Progress of a kernel under way is the fraction of its cases that have run.
TEST(Pool, ProgressIsThePartOfTheCasesThatWasRun) {
  Kernel slow = kernel("transpose/cpu/naive");
  slow.run = [](const Call& call, Device& device) {
    pause_a_little();
    kernel("transpose/cpu/naive").run(call, device);
  };
  CampaignOptions options;
  options.cases = 20;
  options.largest = 8;
  const std::vector<const Kernel*> one{&slow};
  for (const auto& [only, of] : {std::pair{std::string(obligations("transpose")[0].info->id), 20.0},
                                 {std::string(), 20.0 * static_cast<double>(obligations("transpose").size())}}) {
    options.only = only;
    if (only.empty()) options.cases = 2, slow.run = kernel("transpose/cpu/naive").run;
    const double planned = only.empty() ? of / 10 : of;
    int under_way = 0;
    PoolStatus last;
    run_pool(one, options, 1, [&](const PoolStatus& status) {
      EXPECT_EQ(status.kernels, 1);
      if (status.finished == 0 && status.cases_done > 0) {
        ++under_way;
        EXPECT_GT(status.work_done, 0);
        EXPECT_NEAR(status.work_done, static_cast<double>(status.cases_done) / planned, 1e-9);
      }
      EXPECT_EQ(status.last != nullptr && status.last->is_object(), status.last != nullptr);
      last = status;
    });
    EXPECT_TRUE(!only.empty() ? under_way > 0 : true);
    EXPECT_EQ(last.finished, 1);
    EXPECT_EQ(last.work_done, 1);
    EXPECT_GT(last.cases_done, 0);
  }
}

TEST(Pool, CasesAreThoseOfAllKernels) {
  Kernel one = kernel("transpose/cpu/naive"), other = one;
  one.id = "transpose/test/one", other.id = "transpose/test/other";
  CampaignOptions options;
  options.cases = 3;
  options.largest = 8;
  options.only = std::string(obligations("transpose")[0].info->id);
  const std::vector<const Kernel*> both{&one, &other};
  PoolStatus last;
  int told = 0;
  const std::vector<json> results = run_pool(both, options, 1, [&](const PoolStatus& status) {
    told += status.last != nullptr;
    last = status;
  });
  EXPECT_EQ(results.size(), 2U);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(last.kernels, 2);
  EXPECT_EQ(last.finished, 2);
  EXPECT_EQ(last.work_done, 2);
  EXPECT_EQ(last.cases_done, 2 * 3);
}

}  // namespace
}  // namespace assay::falsify::pool_test
