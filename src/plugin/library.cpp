#include "plugin/library.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "core/errors.hpp"

namespace assay::plugin {

Library::Library(std::string path) : path_(std::move(path)) {
  // A path with a slash makes the loader search nowhere else.
  std::error_code error;
  const std::string file = std::filesystem::absolute(path_, error).string();
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    throw InputError(path_, std::string("cannot be loaded: ") + (reason != nullptr ? reason : "no reason is given"),
                     "give a shared library for this machine, all of whose own libraries are found (`ldd` lists them)");
  }
}

void* Library::find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

void* Library::require(const std::string& symbol) const {
  if (void* address = find(symbol)) return address;
  throw InputError(path_, "has no symbol '" + symbol + "'",
                   "`nm -D --defined-only` lists what it exports; functions in C++ need extern \"C\"");
}

}  // namespace assay::plugin
