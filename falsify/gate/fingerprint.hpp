// Hashes of everything a kernel's verdict depends on: its contract, reference, properties, own sources, the engine, and
// the build's flags. Equal fingerprints in two trees mean the same kernel, tested in the same way.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "falsify/gate/includes.hpp"
#include "runtime/device.hpp"

namespace assay::falsify {

/// A kernel's files. The kernel need not be registered in this program: a build without nvcc has no `cuda` kernels.
struct Subject {
  std::string op;
  std::string id;
  Backend backend = Backend::cpu;
  std::string source;  ///< as Kernel::source
};

/// Returns the kernels to gate, in order of id: our registered ones, and for each cuda-host kernel its twin on a
/// device.
std::vector<Subject> subjects();

/// contract    contracts/<op>.yaml and the certificates of the operation
/// reference   reference/<op>.hpp and its includes
/// properties  falsify/properties/<op>.cpp and its includes
/// kernel      the launcher that registers it, Kernel::source, and their includes
/// engine      falsify/engine, falsify/audit, src/core, src/contract, src/contractgen, src/system, src/runtime of this
///             back end, except the files of bystanders.hpp, and contracts/numerics.yaml
/// flags       CMakeLists.txt and CMake modules on the way to it, CMakePresets.json
enum class Part { contract, reference, properties, kernel, engine, flags };
inline constexpr std::array kParts = {Part::contract, Part::reference, Part::properties,
                                      Part::kernel,   Part::engine,    Part::flags};
std::string_view name(Part part);

struct Files {
  std::map<std::string, std::string> digests;  ///< by path (Includes::own_digest); empty for a missing file
  std::vector<std::string> unknown;            ///< includes that could not be followed (Edges::unknown)

  /// Hash of the files' contents and of the part's starting files, independent of their location; empty if something is
  /// unknown, since an unknown state equals no other.
  std::string hash;
};

/// Shared pointers, because kernels of a tree share parts.
using Fingerprint = std::map<Part, std::shared_ptr<const Files>>;

/// Fingerprints of the kernels of one tree.
class Fingerprints {
 public:
  explicit Fingerprints(const Tree& tree) : tree_(tree), includes_(tree) {}

  Fingerprint of(const Subject& subject);

 private:
  /// Returns the files reachable from the starting files, except the engine's, and the contract unless it is a start.
  std::shared_ptr<const Files> reach(const std::vector<std::string>& starts, const Subject& subject);
  void add(Files& files, const std::string& path);
  std::shared_ptr<const Files> hashed(Files files, const std::string& first = {});
  const std::shared_ptr<const Files>& engine(Backend backend);
  const std::shared_ptr<const Files>& flags(Backend backend);

  const Tree& tree_;
  Includes includes_;
  std::map<Backend, std::shared_ptr<const Files>> engines_, flags_;
};

/// Difference of two fingerprints: the parts, and the files added, removed or changed in these.
struct Difference {
  std::vector<Part> parts;
  std::vector<std::string> files;
  std::vector<std::string> environment;  ///< entries (environment.hpp)

  bool none() const { return parts.empty() && environment.empty(); }
};
Difference difference(const Fingerprint& before, const Fingerprint& now);

}  // namespace assay::falsify
