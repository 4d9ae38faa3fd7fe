#include "cli/environment.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/built_from.hpp"
#include "falsify/gate/evidence.hpp"

namespace assay::cli {
namespace {

/// Returns the library that provides cblas_sgemm, from its own version text or its file; empty if the program has none.
std::string blas() {
  using Config = char*();
  if (auto* config = reinterpret_cast<Config*>(dlsym(RTLD_DEFAULT, "openblas_get_config"))) {
    const std::string words =
        config();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ... Haswell MAX_THREADS=64": the processor is not the library's
    return words.substr(0, words.find(' ', words.find(' ') + 1));
  }
  Dl_info place{};
  void* const product = dlsym(RTLD_DEFAULT, "cblas_sgemm");
  if (product == nullptr || dladdr(product, &place) == 0) return "";
  std::error_code error;
  const auto file = std::filesystem::canonical(place.dli_fname, error);
  return error ? place.dli_fname : file.filename().string();
}

}  // namespace

falsify::Environment local_environment(const LocalDevice& vulkan) {
  falsify::Environment here;
  const auto add = [&](std::string_view name, std::string value) {
    if (!value.empty()) here.emplace(name, std::move(value));
  };
  for (const auto& [name, value] : built_with()) add(name, std::string(value));
  add("libm", fmt::format("glibc {}", gnu_get_libc_version()));
  if (std::string library = blas(); !library.empty()) {
    const char* type = std::getenv("OPENBLAS_CORETYPE");
    add("OPENBLAS_CORETYPE", type == nullptr || *type == '\0' ? "unset" : type);
    add("blas", std::move(library));
  }
  if (vulkan.here)
    add("vulkan-driver", vulkan.driver.empty() ? falsify::name_and_driver(vulkan.description).second : vulkan.driver);
  return here;
}

}  // namespace assay::cli
