// Automatic mutants of CUDA kernels: one instruction of the PTX of one of their entries is changed
// (falsify/mutation/ptx).
//
// The entries of a kernel are found by preparing calls with dims as campaigns draw them, in a separate process, and
// recording every entry name that the kernel would launch. Their PTX is the copy in this program for GPUs without
// embedded machine code. A mutant runs the kernel's own code, while the device launches machine code of the mutated
// entry.
//
// The original of a mutant is assembled from the same PTX without the change, so that both differ in the mutation only.
// Both are guarded: a thread whose loops exceed ptx::kMaxIterations iterations ends the grid by `trap`, which the
// device reports as an error; the worker process is then replaced, since its context is lost. A barrier that some
// threads never reach is not guarded; it ends with the process, at the worker's time limit.
//
// ptxas assembles mutants when they are drawn: invalid ones are known by then, no call's time includes a compilation,
// and a restarted worker loads existing machine code.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "falsify/engine/pool.hpp"
#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/toolkit.hpp"
#include "falsify/mutation/study/cuda/cubin.hpp"
#include "falsify/mutation/study/mutant.hpp"
#include "falsify/mutation/study/parallel.hpp"
#include "falsify/mutation/study/launched_programs.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;
using Cubins = std::map<std::string, Cubin, std::less<>>;  ///< by entry

CudaDevice& cuda_device() { return static_cast<CudaDevice&>(assay::device(Backend::cuda)); }

/// Returns the names of the entries that the kernel launches.
std::set<std::string> entries_of(const Kernel& kernel, CudaDevice& device) {
  std::set<std::string> found;
  const LaunchFilterScope scope(device, [&](const void* function, std::string_view name) {
    found.emplace(name);
    return function;
  });
  prepare_drawn_calls(kernel, device);
  return found;
}

/// Examines the kernels in a separate process; returns the reason on failure.
json examine(std::span<const Kernel* const> kernels) {
  try {
    CudaDevice& device = cuda_device();
    json found{
        {"device", device.description()}, {"capability", device.compute_capability()}, {"entries", json::object()}};
    for (const Kernel* kernel : kernels) found["entries"][std::string(kernel->id)] = entries_of(*kernel, device);
    return found;
  } catch (const Unavailable& e) {
    return {{"unavailable", e.why}};
  }
}

/// An entry with all of its mutants; kernels share it.
class Entry {
 public:
  Entry(const ptx::Module& module, const std::string& name, int capability)
      : program_(module, name), mutant_keys_(ptx::mutant_keys(program_)),
        hash_(ptx::hash(ptx::of_any_build(program_.text()))), capability_(capability) {}

  const ptx::Program& program() const { return program_; }
  const std::vector<ptx::MutantKey>& mutant_keys() const { return mutant_keys_; }
  std::uint64_t hash() const { return hash_; }
  int capability() const { return capability_; }
  /// Returns the unchanged machine code. Throws Unavailable if it does not assemble.
  Cubin original() const {
    const std::lock_guard lock(mutex_);
    if (original_ == nullptr) {
      ptx::Assembled made = ptx::assemble(program_.guarded(), capability_);
      if (made.cubin.empty()) throw Unavailable("PTX of " + program_.entry(), made.why);
      original_ = std::make_shared<const std::string>(std::move(made.cubin));
    }
    return original_;
  }

 private:
  ptx::Program program_;
  std::vector<ptx::MutantKey> mutant_keys_;
  std::uint64_t hash_;
  int capability_;
  mutable std::mutex mutex_;
  mutable Cubin original_;
};

void run_replaced(const Kernel& kernel, const Cubins& cubins, const Call& call, Device& device) {
  auto& cuda = static_cast<CudaDevice&>(device);
  const LaunchFilterScope scope(cuda, [&](const void* function, std::string_view name) {
    const auto found = cubins.find(name);
    return found == cubins.end() ? function : loaded(cuda, found->second, name);
  });
  kernel.run(call, device);
}

/// A kernel whose entries are rebuilt from its PTX, guarded.
struct Rebuilt {
  const Kernel* registered = nullptr;
  Kernel right;
  std::vector<std::shared_ptr<const Entry>> entries;
  Cubins cubins;  ///< filled with the first mutant
  std::once_flag assembled;

  void assemble() {
    std::call_once(assembled, [&] {
      for (const auto& entry : entries) cubins[entry->program().entry()] = entry->original();
    });
  }
};

class EntryMutants final : public MutantSet {
 public:
  EntryMutants(std::shared_ptr<Rebuilt> kernel, std::shared_ptr<const Entry> entry)
      : kernel_(std::move(kernel)), entry_(std::move(entry)) {}

  const Kernel& original() const override { return kernel_->right; }
  std::size_t size() const override { return entry_->mutant_keys().size(); }
  std::uint64_t key(std::size_t i) const override {
    return ptx::hash(std::to_string(entry_->mutant_keys()[i].key), entry_->hash());
  }
  std::string_view family(std::size_t i) const override {
    return ptx::operators()[entry_->mutant_keys()[i].family].family;
  }

  std::string hash(std::size_t i) const override { return fmt::format("{:016x}", key(i)); }

  std::unique_ptr<AutomaticMutant> make(std::size_t i) const override {
    const ptx::Mutant mutant = ptx::mutant(entry_->program(), entry_->mutant_keys()[i]);
    ptx::Assembled assembled = ptx::assemble(entry_->program().guarded(mutant.edits), entry_->capability());
    if (assembled.cubin.empty()) return nullptr;
    kernel_->assemble();
    Cubins cubins = kernel_->cubins;
    cubins[entry_->program().entry()] = std::make_shared<const std::string>(std::move(assembled.cubin));
    auto made = std::make_unique<AutomaticMutant>();
    made->part = entry_->program().entry();
    made->family = family(i);
    made->held_out = ptx::operators()[entry_->mutant_keys()[i].family].held_out;
    made->description = mutant.description;
    made->hash = hash(i);
    made->complete(kernel_->right, [kernel = kernel_, cubins = std::move(cubins)](const Call& call, Device& device) {
      run_replaced(*kernel->registered, cubins, call, device);
    });
    return made;
  }

 private:
  std::shared_ptr<Rebuilt> kernel_;
  std::shared_ptr<const Entry> entry_;
};

/// Returns the wanted entries of all PTX, by name; if several files hold an entry, the first.
std::map<std::string, std::shared_ptr<const Entry>> find_entries(const std::set<std::string>& wanted, int capability) {
  const std::vector<std::string> files = ptx::embedded();
  std::vector<std::optional<ptx::Module>> modules(files.size());
  in_parallel(files.size(), [&](std::size_t i) { modules[i].emplace(files[i]); });
  std::map<std::string, const ptx::Module*> first;
  for (const auto& module : modules)
    for (const ptx::Item& item : module->items)
      if (item.entry && wanted.contains(item.name)) first.try_emplace(item.name, &*module);
  const std::vector<std::pair<std::string, const ptx::Module*>> list(first.begin(), first.end());
  std::vector<std::shared_ptr<const Entry>> made(list.size());
  in_parallel(list.size(), [&](std::size_t i) {
    made[i] = std::make_shared<const Entry>(*list[i].second, list[i].first, capability);
  });
  std::map<std::string, std::shared_ptr<const Entry>> found;
  for (std::size_t i = 0; i < list.size(); ++i) found[list[i].first] = made[i];
  return found;
}

Survey survey(std::span<const Kernel* const> kernels) {
  const Task task{"the survey of entries", [&] { return examine(kernels); }};
  const json document = run_tasks({&task, 1}, 1, [](const json*) {})[0];
  if (document.contains("unavailable")) throw Unavailable("cuda", document["unavailable"].get<std::string>());
  std::set<std::string> wanted;
  for (const json& names : document["entries"]) wanted.insert(names.begin(), names.end());
  const auto entries = find_entries(wanted, document["capability"].get<int>());
  Survey result{fmt::format("{}; {} of {} entries have PTX", document["device"].get<std::string>(), entries.size(),
                            wanted.size()),
                false,
                {},
                true};
  for (const Kernel* kernel : kernels) {
    auto rebuilt = std::make_shared<Rebuilt>();
    rebuilt->registered = kernel;
    rebuilt->right = *kernel;
    rebuilt->right.run = [self = rebuilt.get()](const Call& call, Device& device) {
      run_replaced(*self->registered, self->cubins, call, device);
    };
    for (const json& name : document["entries"][std::string(kernel->id)])
      if (const auto entry = entries.find(name.get<std::string>()); entry != entries.end())
        rebuilt->entries.push_back(entry->second);
    for (const auto& entry : rebuilt->entries) result.sets.push_back(std::make_unique<EntryMutants>(rebuilt, entry));
  }
  return result;
}

const MutantSourceRegistration registration(Backend::cuda, survey);

}  // namespace
}  // namespace assay::falsify
