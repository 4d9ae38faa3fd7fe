// A shared library, opened. Only in processes that kernels run in: opening runs its constructors.
#pragma once

#include <string>

namespace assay::plugin {

class Library {
 public:
  /// Opens the file with all its symbols resolved. Throws InputError where the loader cannot, with the loader's reason.
  explicit Library(std::string path);
  ~Library() = default;  // stays open: threads of its own may still run its code
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Address of an exported symbol; null where there is none.
  void* find(const std::string& symbol) const;
  /// The same; throws InputError where there is none.
  void* require(const std::string& symbol) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace assay::plugin
