#include "plugin/library.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/errors.hpp"

namespace assay::plugin {
namespace {

/// Returns the number of dynamic symbols: one more than the last in a chain of the hash table.
std::size_t symbols_of(const std::uint32_t* gnu_hash) {
  const std::uint32_t buckets = gnu_hash[0], first = gnu_hash[1], words = gnu_hash[2];
  const std::uint32_t* const bucket = gnu_hash + 4 + words * sizeof(ElfW(Addr)) / sizeof(std::uint32_t);
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t b = 0; b < buckets; ++b) last = std::max(last, bucket[b]);
  if (last < first) return first;
  while ((chain[last - first] & 1U) == 0) ++last;
  return last + 1;
}

struct Exported {
  std::string symbol, prototype;
};

/// Returns the exported functions in C++ with this name, which may have its namespace, and parameters if overloaded.
std::vector<Exported> functions_named(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const std::uint32_t*>(d->d_un.d_ptr);
  }
  if (symbols == nullptr || names == nullptr || hash == nullptr) return {};
  std::vector<Exported> found;
  for (std::size_t i = 0, end = symbols_of(hash); i < end; ++i) {
    const ElfW(Sym)& symbol = symbols[i];
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const char* const mangled = names + symbol.st_name;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr),
                                                           &std::free);
    if (text == nullptr) continue;
    const std::string prototype = text.get();
    if (prototype == name || prototype.substr(0, prototype.find('(')) == name) found.push_back({mangled, prototype});
  }
  return found;
}

}  // namespace

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

void* Library::find(const std::string& symbol) const {
  if (void* address = dlsym(handle_, symbol.c_str())) return address;
  const std::vector<Exported> found = functions_named(handle_, symbol);
  if (found.empty()) return nullptr;
  if (found.size() > 1)
    throw InputError(path_, "has " + std::to_string(found.size()) + " functions named '" + symbol + "'",
                     "name one with its parameters, such as '" + found[0].prototype + "'");
  return dlsym(handle_, found[0].symbol.c_str());
}

void* Library::require(const std::string& symbol) const {
  if (void* address = find(symbol)) return address;
  throw InputError(path_, "has no symbol '" + symbol + "'",
                   "`nm -D --defined-only` lists what it exports; a function in C++ must be neither static nor inline");
}

}  // namespace assay::plugin
