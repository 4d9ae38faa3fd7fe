// An open shared library. Only for processes that run kernels: opening runs its constructors.
#pragma once

#include <string>

namespace assay::plugin {

class Library {
 public:
  /// Opens the file and resolves all its symbols. Throws InputError with the loader's reason on failure.
  explicit Library(std::string path);
  ~Library() = default;  // stays open: threads of the library may still run its code
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Returns the address of an exported symbol, or of the one function in C++ with this name; null if there is none.
  /// Throws InputError if several have the name.
  void* find(const std::string& symbol) const;
  /// Returns the address of an exported symbol. Throws InputError if there is none.
  void* require(const std::string& symbol) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace assay::plugin
