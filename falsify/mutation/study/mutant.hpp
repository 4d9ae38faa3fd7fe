// Automatic mutants: right kernels made wrong in one place, by the thousand, as data at run time. Each back end has a
// source of its own behind this interface (Vulkan: the instructions of its shaders; CUDA: those of its PTX); command, campaigns and reports know
// no other.
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
  bool held_out = false;    ///< a family that had no part in tuning the suites
  std::string description;  ///< what is changed, where
  std::string hash;         ///< of the mutated program: the same in every run of this version
  std::string id;           ///< the original's, "#" and the hash
  const Kernel* original = nullptr;
  Kernel kernel;            ///< what campaigns take; views into this mutant, which stays where it is

  AutomaticMutant() = default;
  AutomaticMutant(const AutomaticMutant&) = delete;
  AutomaticMutant& operator=(const AutomaticMutant&) = delete;
  /// Fills `id` and `kernel` when the rest is there: `right` with another run function.
  void complete(const Kernel& right, std::function<void(const Call&, Device&)> run);
};

/// The mutants of one part of one kernel. There are thousands: they are made when asked for.
class MutantSet {
 public:
  virtual ~MutantSet() = default;
  virtual const Kernel& original() const = 0;
  virtual std::size_t size() const = 0;
  /// Names the i-th mutant in every run of this version; sampling rests on it.
  virtual std::uint64_t key(std::size_t i) const = 0;
  virtual std::string_view family(std::size_t i) const = 0;
  /// The i-th's hash where making it costs much and its hash does not; empty elsewhere.
  virtual std::string hash(std::size_t) const { return {}; }
  /// False where the i-th is known to have another hash.
  bool may_have(std::size_t i, std::string_view wanted) const {
    const std::string own = hash(i);
    return own.empty() || own == wanted;
  }
  /// The i-th; null where it is no valid program. Several threads may ask at once.
  virtual std::unique_ptr<AutomaticMutant> make(std::size_t i) const = 0;
};

/// What a source found.
struct Survey {
  std::string device;       ///< on which the mutants will run
  bool on_processor = true; ///< false: on a GPU, where a mutant that never ends costs the device (screen())
  std::vector<std::unique_ptr<MutantSet>> sets;
  bool ends_by_itself = false;  ///< each mutant carries a limit of its own: a GPU needs no screening
};

/// All mutants of kernels of one back end. Throws Unavailable where its device is not here.
using MutantSource = Survey (*)(std::span<const Kernel* const> kernels);

/// Each source defines one at namespace scope.
struct MutantSourceRegistration {
  MutantSourceRegistration(Backend backend, MutantSource source);
};
/// Throws InputError for a back end without a source.
MutantSource mutant_source(Backend backend);

}  // namespace assay::falsify
