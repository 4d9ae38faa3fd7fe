// Ranks that talk by MPI. The module is loaded by its name, and takes nothing from the program that loads it.
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "program/model/ranks.hpp"

namespace assay::program {
namespace {

/// A rank of this host as its process. One that is gone, or ended and not yet waited for, is lost.
bool is_alive(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return kill(process, 0) == 0;
  const std::size_t name_ends = line.rfind(')');
  return name_ends == line.npos || name_ends + 2 >= line.size() ||
         (line[name_ends + 2] != 'Z' && line[name_ends + 2] != 'X');
}

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun == 0) MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_), MPI_Comm_size(MPI_COMM_WORLD, &size_);
    // "host process" of every rank.
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const std::vector<std::string> all = exchange(std::string(host) + " " + std::to_string(getpid()));
    for (int r = 0; r < size_; ++r) {
      const std::string& of = all[static_cast<std::size_t>(r)];
      const bool here = of.substr(0, of.find(' ')) == host;
      processes_.push_back(here ? std::atoi(of.c_str() + of.find(' ')) : 0);
    }
    // Memory of this host's ranks, which outlives any of them: the one that is lost.
    MPI_Comm of_host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &of_host);
    MPI_Comm_rank(of_host, &local_rank_);
    MPI_Aint bytes = local_rank_ == 0 ? sizeof(std::atomic<int>) : 0;
    int unit = 1;
    void* memory = nullptr;
    MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, of_host, &memory, &window_);
    MPI_Win_shared_query(window_, 0, &bytes, &unit, &memory);
    if (local_rank_ == 0) new (memory) std::atomic<int>(kNone);
    MPI_Barrier(of_host);
    first_lost_ = static_cast<std::atomic<int>*>(memory);
  }
  /// Waits for all ranks: MPI ends those that leave without it. Where one is lost, nothing waits.
  ~MpiRanks() override {
    if (lost_) return;
    MPI_Win_free(&window_);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }

  std::vector<std::string> exchange(const std::string& mine) override {
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> sizes(ranks), begins(ranks);
    const int size = checked(mine.size());
    MPI_Request request;
    finish(MPI_Iallgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD, &request), request);
    std::size_t total = 0;
    for (std::size_t r = 0; r < ranks; ++r) begins[r] = checked(total), total += static_cast<std::size_t>(sizes[r]);
    std::string all(total, ' ');
    finish(MPI_Iallgatherv(mine.data(), size, MPI_CHAR, all.data(), sizes.data(), begins.data(), MPI_CHAR,
                           MPI_COMM_WORLD, &request),
           request);
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < ranks; ++r)
      texts.push_back(all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(sizes[r])));
    return texts;
  }

  /// Each rank gets one stretch from all, adds up and gives the sum to all: twice the vector in each direction,
  /// whatever the number of ranks.
  void all_reduce(std::span<float> sums) override {
    constexpr std::size_t kMost = std::size_t{1} << 26;  // counts of MPI are ints
    for (std::size_t at = 0; at < sums.size(); at += kMost) reduce(sums.subspan(at, std::min(kMost, sums.size() - at)));
  }

 private:
  void reduce(std::span<float> sums) {
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> counts(ranks), begins(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t begin = sums.size() * r / ranks, end = sums.size() * (r + 1) / ranks;
      begins[r] = static_cast<int>(begin), counts[r] = static_cast<int>(end - begin);
    }
    const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank_)]);
    std::vector<int> got(ranks, static_cast<int>(own)), places(ranks);
    for (std::size_t r = 0; r < ranks; ++r) places[r] = static_cast<int>(r * own);
    parts_.resize(ranks * own), sum_.resize(own);
    MPI_Request request;
    finish(MPI_Ialltoallv(sums.data(), counts.data(), begins.data(), MPI_FLOAT, parts_.data(), got.data(),
                          places.data(), MPI_FLOAT, MPI_COMM_WORLD, &request),
           request);
    add_parts(sum_, parts_.data(), ranks);
    finish(MPI_Iallgatherv(sum_.data(), static_cast<int>(own), MPI_FLOAT, sums.data(), counts.data(), begins.data(),
                           MPI_FLOAT, MPI_COMM_WORLD, &request),
           request);
  }

  static int checked(std::size_t n) {
    if (n > std::numeric_limits<int>::max()) throw std::length_error("more than 2 GiB in one exchange of ranks");
    return static_cast<int>(n);
  }

  /// Waits, and looks for ranks that have ended.
  void finish(int begun, MPI_Request& request) {
    using Clock = std::chrono::steady_clock;
    auto next = Clock::now() + kLook;
    for (int done = 0; done == 0;) {
      if (begun == MPI_SUCCESS) begun = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (begun != MPI_SUCCESS) lose(-1, error(begun));
      if (done != 0) break;
      sched_yield();
      if (Clock::now() < next) continue;
      next = Clock::now() + kLook;
      for (std::size_t r = 0; r < processes_.size(); ++r)
        if (processes_[r] != 0 && !is_alive(processes_[r]))
          lose(static_cast<int>(r), "process " + std::to_string(processes_[r]) + " has ended");
    }
  }

  static std::string error(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
  }

  /// The first rank of this host that finds another one lost reports it. Those that follow find the first one's end, too.
  [[noreturn]] void lose(int rank, std::string why) {
    lost_ = true;
    int first = kNone;
    const bool speaks = first_lost_ == nullptr || first_lost_->compare_exchange_strong(first, rank);
    if (!speaks) rank = first;
    throw RankLost(rank, speaks, (rank < 0 ? "a rank: " : "rank " + std::to_string(rank) + ": ") + std::move(why));
  }

  static constexpr int kNone = -2;  ///< -1: one of another host
  static constexpr std::chrono::milliseconds kLook{20};
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  bool lost_ = false;
  std::vector<pid_t> processes_;  ///< of the ranks of this host; 0 for those of others
  MPI_Win window_ = MPI_WIN_NULL;
  std::atomic<int>* first_lost_ = nullptr;
  std::vector<float> parts_, sum_;
};

}  // namespace
}  // namespace assay::program

extern "C" assay::program::Ranks* assay_open_ranks() { return new assay::program::MpiRanks; }
