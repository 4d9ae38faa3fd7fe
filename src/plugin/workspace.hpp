// Memory that a function gets beside its tensors: a workspace, which it may use, or contents, which it may only read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace assay::plugin {

class Workspace {
 public:
  /// A workspace. It holds NaN in every second call and large numbers in the others: who reads it first computes
  /// otherwise.
  Workspace(Device& device, std::string name, std::size_t bytes);
  /// Contents that must not change.
  Workspace(Device& device, std::string name, std::vector<std::byte> contents);

  /// Aligned to 64 bytes; not null.
  void* address() const;
  /// One sentence where what may not be written was: the words around it, or its contents.
  std::optional<std::string> damage() const;

 private:
  void fill(std::vector<std::byte> contents);

  Device& device_;
  std::string name_;
  std::size_t bytes_;
  bool may_change_;
  std::vector<std::byte> filled_;  ///< with the words before and behind it
  Buffer buffer_;
};

}  // namespace assay::plugin
