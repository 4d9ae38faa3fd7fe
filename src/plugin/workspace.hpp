// Memory for a function in addition to its tensors: a workspace, which it may modify, or contents, which are read-only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace assay::plugin {

class Workspace {
 public:
  /// A workspace. It holds NaN in every second call and large numbers in the others, so that reading it uninitialized
  /// changes results.
  Workspace(Device& device, std::string name, std::size_t bytes);
  /// Contents that must not change.
  Workspace(Device& device, std::string name, std::vector<std::byte> contents);

  /// Returns an address aligned to 64 bytes; never null.
  void* address() const;
  /// Returns a sentence if protected memory was written: the words around it, or read-only contents.
  std::optional<std::string> damage() const;

 private:
  void fill(std::vector<std::byte> contents);

  Device& device_;
  std::string name_;
  std::size_t bytes_;
  bool may_change_;
  std::vector<std::byte> filled_;  ///< including the words before and after it
  Buffer buffer_;
};

}  // namespace assay::plugin
