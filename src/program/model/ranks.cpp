#include "program/model/ranks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/errors.hpp"

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

}  // namespace

void all_reduce(Ranks& ranks, Trainer& trainer) {
  if (ranks.size() == 1) return;
  const std::span<float> on_device = trainer.gradients_on_device();
  const std::vector<std::string> all = ranks.exchange(fmt::format("{} {}", on_device.size(), trainer.samples()));
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
  if (ranks.all_reduce_on_device(on_device)) return trainer.set_samples(total);
  Gradients sum = trainer.gradients();
  ranks.all_reduce(sum.sums);
  sum.samples = total;
  trainer.set_gradients(sum);
}

std::unique_ptr<Ranks> ranks_of_this_process() {
  const char* const rank = given_rank();
  if (rank == nullptr) return std::make_unique<Alone>();
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  std::string reason = "this build has no MPI; install libopenmpi-dev, configure again and build";
  for (const fs::path& folder : {program / "../lib", program / "../lib/assay"}) {
    const fs::path module = folder / ASSAY_RANKS_MODULE;
    if (!fs::exists(module)) continue;
    void* const loaded = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);  // MPI loads parts that look for its symbols
    void* const symbol = loaded != nullptr ? dlsym(loaded, "assay_open_ranks") : nullptr;
    if (symbol != nullptr) return std::unique_ptr<Ranks>(reinterpret_cast<Ranks* (*)()>(symbol)());
    reason = dlerror();
  }
  const Unavailable unavailable("training on several ranks", reason);
  if (std::string_view(rank) != "0") throw RankLost(0, false, unavailable.what());
  throw unavailable;
}

}  // namespace assay::program
