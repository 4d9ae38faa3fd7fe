// Automatic mutants of the kernels of cpu and cuda-host: one place of their sources is changed (rewrite.py,
// mutate.hpp).
//
// A library holds and registers a back end's kernels with all of their mutants (mutant schemata: Untch, Offutt and
// Harrold, ISSTA 1993). A mutant runs the library's kernel with one variant chosen; its original is the same code with
// none, so that both are compiled alike.
//
// The places of a kernel are found by running cases as campaigns draw them, in a separate process, and recording every
// place that the kernel reaches, with the variants that apply to its types there.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "falsify/engine/draw.hpp"
#include "falsify/engine/pool.hpp"
#include "falsify/engine/trial.hpp"
#include "falsify/mutation/source/mutate.hpp"
#include "falsify/mutation/study/mutant.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;
using assay_mutate::kVariants;
using assay_mutate::State;

/// Cases that a kernel runs to find its places: enough to reach the places that campaigns reach. A call that exceeds
/// kCall is assumed to have reached all of its places.
constexpr std::uint64_t kCases = 60;
constexpr std::chrono::seconds kCall{5};
/// Comparisons and increments of a call, after which it counts as endless: about half a second, and a hundred times the
/// largest cases.
/// Not a time: the end must not depend on what else the machine does.
constexpr std::int64_t kMaxIterations = 1LL << 28;

struct MutantEntry {
  std::uint32_t site, variant;
  std::string family, says, hash;
  bool held_out;
  int line;
};
struct SourceFile {
  std::string path;
  std::uint32_t base = 0;
  std::vector<MutantEntry> places;
};

std::vector<SourceFile> read_manifest() {
  const std::filesystem::path path = std::filesystem::path(ASSAY_SCHEMATA) / "mutants.json";
  std::ifstream file(path);
  const json document = json::parse(file, nullptr, false);
  if (!document.is_array())
    throw Unavailable("automatic mutants", path.string() + " is not there: build everything first");
  std::vector<SourceFile> files;
  for (const json& f : document) {
    SourceFile source{f["file"].get<std::string>(), f["base"].get<std::uint32_t>(), {}};
    for (const json& m : f["mutants"])
      source.places.push_back({m["site"].get<std::uint32_t>(), m["variant"].get<std::uint32_t>(),
                               m["family"].get<std::string>(), m["says"].get<std::string>(),
                               m["hash"].get<std::string>(), m["held_out"].get<bool>(), m["line"].get<int>()});
    files.push_back(std::move(source));
  }
  return files;
}

/// Returns the number of places left unmutated in at least one object of the back end, because the compiler accepts no
/// variant.
std::size_t left_out(Backend backend) {
  std::set<std::uint32_t> sites;
  const std::filesystem::path folder = std::filesystem::path(ASSAY_SCHEMATA) / "left_out" / std::string(name(backend));
  if (!std::filesystem::exists(folder)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (const json& site : json::parse(file)) sites.insert(site.get<std::uint32_t>());
  }
  return sites.size();
}

/// The library of a back end, never closed.
class Library {
 public:
  explicit Library(Backend backend) {
    const std::string path = (std::filesystem::path(ASSAY_SCHEMATA) / (std::string(name(backend)) + ".so")).string();
    void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
      throw Unavailable("automatic mutants",
                        fmt::format("{}: build the target assay_schemata_{}", dlerror(), name(backend)));
    state_ = reinterpret_cast<State* (*)()>(dlsym(opened, "assay_schemata_state"))();
    find_ = reinterpret_cast<const Kernel* (*)(const char*)>(dlsym(opened, "assay_schemata_kernel"));
  }
  /// Returns null for a kernel that no rewritten file registers.
  const Kernel* kernel(std::string_view id) const { return find_(std::string(id).c_str()); }
  State& state() const { return *state_; }

 private:
  State* state_ = nullptr;
  const Kernel* (*find_)(const char*) = nullptr;
};

/// While in scope, one variant runs in this process.
class Chosen {
 public:
  Chosen(State& state, std::uint32_t site, std::uint32_t variant) : state_(state) {
    state.site = site, state.variant = variant, state.turns = kMaxIterations;
  }
  ~Chosen() { state_.site = 0, state_.variant = 0, state_.turns = 1LL << 62; }
  Chosen(const Chosen&) = delete;
  Chosen& operator=(const Chosen&) = delete;

 private:
  State& state_;
};

/// A kernel with its counterpart in the library.
struct Rewritten {
  Kernel right;          ///< the registered kernel, run from the library
  const Kernel* inside;  ///< the library's own registration
  std::shared_ptr<const Library> library;
};

/// Returns the places that the kernel reaches, as site * kVariants + variant.
json reached(const Rewritten& kernel, std::uint32_t sites) {
  State& state = kernel.library->state();
  const std::size_t bytes = sites * sizeof(std::uint32_t);
  void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED) throw Unavailable("automatic mutants", "no memory to note places in");
  state.reached = static_cast<std::uint32_t*>(shared);
  state.mask = 0;
  const OpDescriptor& op = operation(kernel.right.op);
  Worker worker(kCall);
  const auto& list = obligations(op.name);
  for (std::uint64_t number = 0; number < kCases / list.size() + 1; ++number)
    for (const Obligation& obligation : list) {
      if (number % draw_spec(obligation.info->by).every != 0) continue;
      const Case c = draw(op, *obligation.info, 1, number, {.in_blocks = traits(kernel.right.backend).blocks}).value();
      Trial trial(op, kernel.right, c, worker);
      try {
        trial.run(trial.problem(), Poison::finite);
      } catch (const Interrupted&) {  // refused
      } catch (const InvalidCase&) {}
    }
  json found = json::array();
  for (std::uint32_t site = 0; site < sites; ++site)
    for (std::uint32_t v = 1; v < kVariants; ++v)
      if ((state.reached[site] >> v & 1U) != 0) found.push_back(site * kVariants + v);
  return found;
}

class SourceMutants final : public MutantSet {
 public:
  SourceMutants(std::shared_ptr<const Rewritten> kernel, std::string part, std::vector<MutantEntry> places)
      : kernel_(std::move(kernel)), part_(std::move(part)), places_(std::move(places)) {}

  const Kernel& original() const override { return kernel_->right; }
  std::size_t size() const override { return places_.size(); }
  std::uint64_t key(std::size_t i) const override { return std::stoull(places_[i].hash, nullptr, 16); }
  std::string_view family(std::size_t i) const override { return places_[i].family; }

  std::unique_ptr<AutomaticMutant> make(std::size_t i) const override {
    const MutantEntry& place = places_[i];
    auto made = std::make_unique<AutomaticMutant>();
    made->part = part_;
    made->family = place.family;
    made->held_out = place.held_out;
    made->description = fmt::format("line {}: {}", place.line, place.says);
    made->hash = place.hash;
    const auto chosen = [kernel = kernel_, site = place.site, variant = place.variant] {
      return Chosen(kernel->library->state(), site, variant);
    };
    made->complete(kernel_->right, [kernel = kernel_, chosen](const Call& call, Device& device) {
      const Chosen now = chosen();
      kernel->inside->run(call, device);
    });
    if (kernel_->inside->refuse)
      made->kernel.refuse = [kernel = kernel_, chosen](const Call& call) {
        const Chosen now = chosen();
        return kernel->inside->refuse(call);
      };
    return made;
  }

 private:
  std::shared_ptr<const Rewritten> kernel_;
  std::string part_;
  std::vector<MutantEntry> places_;
};

Survey survey(std::span<const Kernel* const> kernels) {
  const Backend backend = kernels.front()->backend;
  const std::vector<SourceFile> files = read_manifest();
  const auto library = std::make_shared<const Library>(backend);
  std::vector<std::shared_ptr<const Rewritten>> rewritten;
  std::vector<Task> tasks;
  std::uint32_t sites = 0;
  for (const SourceFile& file : files)
    for (const MutantEntry& place : file.places) sites = std::max(sites, place.site + 1);
  for (const Kernel* kernel : kernels) {
    const Kernel* const inside = library->kernel(kernel->id);
    if (inside == nullptr)
      throw Unavailable(
          std::string(kernel->id),
          fmt::format(
              "its mutants are not built: configure with -DASSAY_REWRITTEN=all, and build the target assay_schemata_{}",
              name(backend)));
    auto made = std::make_shared<Rewritten>(Rewritten{*kernel, inside, library});
    made->right.run = inside->run;
    made->right.refuse = inside->refuse;
    rewritten.push_back(made);
    tasks.push_back({std::string(kernel->id), [made, sites, index = rewritten.size() - 1] {
                       return json{{"kernel", index}, {"reached", reached(*made, sites)}};
                     }});
  }
  Survey result{fmt::format("{}; {} places of the sources take no variant", assay::device(backend).description(),
                            left_out(backend)),
                true,
                {}};
  auto documents =
      run_tasks(tasks, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())), [](const json*) {});
  std::ranges::sort(documents, {}, [](const json& d) { return d["kernel"].get<std::size_t>(); });
  for (const json& document : documents) {
    std::vector<bool> there(std::size_t{sites} * kVariants);
    for (const json& i : document["reached"]) there[i.get<std::size_t>()] = true;
    for (const SourceFile& file : files) {
      std::vector<MutantEntry> places;
      std::ranges::copy_if(file.places, std::back_inserter(places),
                           [&](const MutantEntry& p) { return there[p.site * kVariants + p.variant]; });
      if (!places.empty())
        result.sets.push_back(std::make_unique<SourceMutants>(rewritten[document["kernel"].get<std::size_t>()],
                                                              file.path, std::move(places)));
    }
  }
  return result;
}

const MutantSourceRegistration cpu(Backend::cpu, survey), cuda_host(Backend::cuda_host, survey);

}  // namespace
}  // namespace assay::falsify
