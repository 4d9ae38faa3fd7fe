// Automatic mutants: right kernels made wrong in one place, by the thousand, as data at run time. Each back end has a
// source behind this interface (Vulkan: the instructions of its shaders; CUDA: those of its PTX); command, campaigns
// and reports use this interface only.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/registry.hpp"

namespace assay::falsify {

struct AutomaticMutant {
  std::string part;         ///< of the kernel: its shader, its source file
  std::string family;       ///< of faults
  bool held_out = false;    ///< family not used for tuning the suites
  std::string description;  ///< the change and its place
  std::string hash;         ///< of the mutated program: the same in every run of this version
  std::string id;           ///< the original's, "#" and the hash
  const Kernel* original = nullptr;
  Kernel kernel;  ///< for campaigns; its views refer to this mutant, which must not move

  AutomaticMutant() = default;
  AutomaticMutant(const AutomaticMutant&) = delete;
  AutomaticMutant& operator=(const AutomaticMutant&) = delete;
  /// Fills `id` and `kernel` from the other members: `right` with another run function.
  void complete(const Kernel& right, std::function<void(const Call&, Device&)> run);
};

/// The mutants of one part of one kernel, made on demand, since there are thousands.
class MutantSet {
 public:
  virtual ~MutantSet() = default;
  virtual const Kernel& original() const = 0;
  virtual std::size_t size() const = 0;
  /// Returns a key that identifies the i-th mutant in every run of this version; sampling depends on it.
  virtual std::uint64_t key(std::size_t i) const = 0;
  virtual std::string_view family(std::size_t i) const = 0;
  /// Returns the i-th mutant's hash if it is cheap compared to making the mutant; else empty.
  virtual std::string hash(std::size_t) const { return {}; }
  /// False if the i-th mutant is known to have another hash.
  bool may_have(std::size_t i, std::string_view wanted) const {
    const std::string own = hash(i);
    return own.empty() || own == wanted;
  }
  /// Makes the i-th mutant; null if it is no valid program. Thread-safe.
  virtual std::unique_ptr<AutomaticMutant> make(std::size_t i) const = 0;
};

/// All mutants of the surveyed kernels.
struct Survey {
  std::string device;        ///< device of the mutants
  bool on_processor = true;  ///< false: a GPU, which a mutant that never ends would block (screen())
  std::vector<std::unique_ptr<MutantSet>> sets;
  bool ends_by_itself = false;  ///< each mutant carries a limit of its own: no screening on a GPU
};

/// Surveys the mutants of kernels of one back end. Throws Unavailable if its device is missing.
using MutantSource = Survey (*)(std::span<const Kernel* const> kernels);

/// Each source defines one at namespace scope.
struct MutantSourceRegistration {
  MutantSourceRegistration(Backend backend, MutantSource source);
};
/// Returns the source of a back end. Throws InputError if there is none.
MutantSource mutant_source(Backend backend);

}  // namespace assay::falsify
