#include "falsify/mutation/ptx/toolkit.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/errors.hpp"
#include "falsify/mutation/ptx/module.hpp"
#include "system/program.hpp"
#include "system/scratch.hpp"

namespace assay::falsify::ptx {
namespace {

constexpr const char* kInstall = "it comes with the CUDA Toolkit: install that, or set CUDA_PATH to where it is";

/// Returns the path of a program of the Toolkit; its name alone, for the search path, if it is in no usual place.
std::string tool(const std::string& name) {
  const char* const chosen = std::getenv("CUDA_PATH");
  for (const std::string& root : {std::string(chosen == nullptr ? "" : chosen), std::string("/usr/local/cuda")})
    if (const auto path = std::filesystem::path(root) / "bin" / name; !root.empty() && std::filesystem::exists(path))
      return path.string();
  return name;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace

std::vector<std::string> embedded() {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const Finished done = run_program({tool("cuobjdump"), "--dump-ptx", program}, "", kInstall);
  if (done.code != 0) throw Unavailable("cuobjdump", fmt::format("it cannot read {}: {}", program, done.complaint()));
  std::vector<std::string> files = dumped(done.out);
  if (files.empty()) throw Unavailable("PTX", program + " carries none");
  return files;
}

Assembled assemble(const std::string& text, int capability) {
  const Scratch from(text), to("");
  const Finished done =
      run_program({tool("ptxas"), fmt::format("-arch=sm_{}", capability), "-o", to.path(), from.path()}, "", kInstall);
  if (done.code != 0)
    return {"", done.complaint().empty() ? fmt::format("ptxas ended with status {}", done.code) : done.complaint()};
  return {read(to.path()), ""};
}

}  // namespace assay::falsify::ptx
