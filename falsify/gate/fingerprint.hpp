// What a kernel's verdict rests on, as hashes: of its contract, reference, properties, own sources, the engine, and the
// build's flags. Two trees with the same fingerprint of a kernel hold the same kernel, tested in the same way.
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

/// A kernel as far as its files are concerned. It need not be registered in this program: a build without nvcc has no
/// kernels of `cuda`.
struct Subject {
  std::string op;
  std::string id;
  Backend backend = Backend::cpu;
  std::string source;  ///< as Kernel::source
};

/// Kernels to be gated: those registered that are ours, and for each of cuda-host its twin on a device. In order of id.
std::vector<Subject> subjects();

/// contract    contracts/<op>.yaml and the certificates of the operation
/// reference   reference/<op>.hpp and what it includes
/// properties  falsify/<op>.cpp and what it includes
/// kernel      the launcher that registers it, Kernel::source, and what they include
/// engine      falsify/engine, falsify/audit, src/core, src/contract, src/contractgen, src/runtime of this back end,
///             less the files that decide nothing (bystanders.hpp), and contracts/numerics.yaml
/// flags       CMakeLists.txt and CMake modules on the way to it, CMakePresets.json
enum class Part { contract, reference, properties, kernel, engine, flags };
inline constexpr std::array kParts = {Part::contract, Part::reference, Part::properties,
                                      Part::kernel,   Part::engine,    Part::flags};
std::string_view name(Part part);

struct Files {
  std::map<std::string, std::string> digests;  ///< by path (Includes::own_digest); empty where the file is missing
  std::vector<std::string> unknown;            ///< what could not be followed (Edges::unknown)

  /// Of what the files say and which of them the part begins with, wherever they lie; empty where something is unknown,
  /// since no such state is known to equal another.
  std::string hash;
};

/// Kernels of a tree share parts.
using Fingerprint = std::map<Part, std::shared_ptr<const Files>>;

/// Fingerprints of the kernels of one tree.
class Fingerprints {
 public:
  explicit Fingerprints(const Tree& tree) : tree_(tree), includes_(tree) {}

  Fingerprint of(const Subject& subject);

 private:
  /// What the starting files reach, except for what the engine consists of, and the contract where it is no start.
  std::shared_ptr<const Files> reach(const std::vector<std::string>& starts, const Subject& subject);
  void add(Files& files, const std::string& path);
  std::shared_ptr<const Files> hashed(Files files, const std::string& first = {});
  const std::shared_ptr<const Files>& engine(Backend backend);
  const std::shared_ptr<const Files>& flags(Backend backend);

  const Tree& tree_;
  Includes includes_;
  std::map<Backend, std::shared_ptr<const Files>> engines_, flags_;
};

/// Why two fingerprints differ: the parts, and in them the files that were added, removed or changed.
struct Difference {
  std::vector<Part> parts;
  std::vector<std::string> files;
  std::vector<std::string> environment;  ///< entries (environment.hpp)

  bool none() const { return parts.empty() && environment.empty(); }
};
Difference difference(const Fingerprint& before, const Fingerprint& now);

}  // namespace assay::falsify
