#include "program/model/ranks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/errors.hpp"
#include "program/operations.hpp"

namespace assay::program {
namespace {

namespace fs = std::filesystem;

class Alone : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  void all_reduce(std::span<float>) override {}
};

/// The rank that Open MPI's or MPICH's mpirun, or srun with PMIx, gives this process; null if none has started it.
const char* given_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* rank = std::getenv(name)) return rank;
  return nullptr;
}

/// A function of a module beside the program; null, and the reason if the module is there.
void* symbol(const char* module, const char* name, std::string& reason) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {program / "../lib", program / "../lib/assay"}) {
    if (!fs::exists(folder / module)) continue;
    // MPI loads parts that look for its symbols.
    void* const loaded = dlopen((folder / module).c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const found = loaded != nullptr ? dlsym(loaded, name) : nullptr;
    if (found == nullptr) reason = dlerror();
    return found;
  }
  return nullptr;
}

}  // namespace

AllReduce::AllReduce(Ranks& ranks, Trainer& trainer, DeviceLink* link) : ranks_(ranks), trainer_(trainer), link_(link) {
  if (ranks.size() == 1 || link == nullptr || trainer.gradients_on_device().empty()) return;
  constexpr Index kColumns = 64;
  const std::size_t elements = trainer.gradients_on_device().size();
  const Index size = ranks.size(), rows = (static_cast<Index>(elements) + size * kColumns - 1) / (size * kColumns);
  piece_ = static_cast<std::size_t>(rows * kColumns);
  Builder b;
  const Value parts = b.state("parts", {size * rows, kColumns});
  std::vector<Value> of_ranks;
  for (Index r = 0; r < size; ++r) of_ranks.push_back(b.rows(parts, r * rows, (r + 1) * rows));
  for (std::size_t r = 1; r < of_ranks.size(); ++r) of_ranks[0] = accumulate(b, of_ranks[0], of_ranks[r], 1);
  sum_ = std::make_unique<Session>(b.take(), trainer.session().device());
}

void AllReduce::on_device(std::span<float> gradients) {
  float* const parts = static_cast<float*>(sum_->call(0).tensors[0].data);
  link_->all_to_all(gradients, parts, piece_);
  sum_->run();
  link_->all_gather(parts, gradients, piece_);
}

void AllReduce::operator()() {
  if (ranks_.size() == 1) return;
  const std::span<float> gradients = trainer_.gradients_on_device();
  const std::vector<std::string> all = ranks_.exchange(fmt::format("{} {}", gradients.size(), trainer_.samples()));
  Index total = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::size_t space = all[r].find(' ');
    if (all[r].substr(0, space) != all[0].substr(0, all[0].find(' ')))
      throw InputError(fmt::format("rank {}", r),
                       fmt::format("its gradients have {} elements, and those of rank 0 have {}",
                                   all[r].substr(0, space), all[0].substr(0, all[0].find(' '))),
                       "train one model on all ranks");
    total += std::strtoll(all[r].c_str() + space, nullptr, 10);
  }
  if (sum_) {
    on_device(gradients);
    return trainer_.set_samples(total);
  }
  Gradients sum = trainer_.gradients();
  ranks_.all_reduce(sum.sums);
  sum.samples = total;
  trainer_.set_gradients(sum);
}

std::unique_ptr<Ranks> ranks_of_this_process() {
  const char* const rank = given_rank();
  if (rank == nullptr) return std::make_unique<Alone>();
  std::string reason = "this build has no MPI; install libopenmpi-dev, configure again and build";
  if (void* const open = symbol(ASSAY_RANKS_MODULE ".so", "assay_open_ranks", reason))
    return std::unique_ptr<Ranks>(reinterpret_cast<Ranks* (*)()>(open)());
  const Unavailable unavailable("training on several ranks", reason);
  if (std::string_view(rank) != "0") throw RankLost(0, false, unavailable.what());
  throw unavailable;
}

std::unique_ptr<DeviceLink> link_of_gpus(Ranks& ranks) {
  std::string reason;
  void* const open = symbol(ASSAY_RANKS_MODULE "_nccl.so", "assay_open_link", reason);
  for (const std::string& has : ranks.exchange(open != nullptr ? "1" : ""))
    if (has.empty()) return nullptr;
  return std::unique_ptr<DeviceLink>(reinterpret_cast<DeviceLink* (*)(Ranks*)>(open)(&ranks));
}

}  // namespace assay::program
