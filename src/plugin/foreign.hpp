// A foreign kernel: a function of a shared library, with the interface of assay/plugin.h or through a shim; or a Vulkan
// shader with its map.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "contract/descriptor.hpp"
#include "plugin/declaration.hpp"
#include "plugin/library.hpp"
#include "plugin/shader.hpp"
#include "plugin/shim.hpp"
#include "runtime/limits.hpp"
#include "runtime/registry.hpp"

namespace assay::plugin {

/// Identifies a foreign kernel, from the command line or a replay file.
struct Source {
  std::string library;    ///< path of the file
  std::string symbol;     ///< the function
  std::string shim_name;  ///< file name of the shim in messages; empty if there is no shim
  std::string shim;       ///< text of the shim
  std::string declared;   ///< declarations as text for declare()
  bool shader = false;    ///< `library` is a SPIR-V module, `symbol` its entry point, and the shim a map of it
};

/// Failure of a kernel that plugin.h defines: it returns ASSAY_FAILED or gives a reason, or it leaves the
/// floating-point environment changed.
struct ReportedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "foreign/<file of the library>/<symbol>"
std::string id_of(const Source& source);

/// Owns everything that its kernel() refers to. The first call opens the library, the constructor never does: that call
/// must run in a separate process.
class ForeignKernel {
 public:
  /// Throws InputError if the shim or the declarations are not valid for this operation.
  ForeignKernel(const OpDescriptor& op, Source source);
  ForeignKernel(const ForeignKernel&) = delete;
  ForeignKernel& operator=(const ForeignKernel&) = delete;

  const Kernel& kernel() const { return kernel_; }
  const Source& source() const { return source_; }
  /// Returns the declarations of its shim; `Source::declared` includes them only if added there.
  std::string_view declared_by_shim() const { return shim_ ? std::string_view(shim_->declares) : std::string_view(); }

 private:
  void read_shader();
  void run(const Call& call, Device& device);

  const OpDescriptor& op_;
  Source source_;
  std::string id_;
  std::optional<Shim> shim_;
  std::optional<ShaderModule> module_;
  std::optional<ShaderMap> map_;
  std::unique_ptr<Library> library_;
  void* function_ = nullptr;
  Limits limits_;
  Kernel kernel_;
};

}  // namespace assay::plugin
