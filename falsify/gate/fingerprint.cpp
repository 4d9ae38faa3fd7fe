#include "falsify/gate/fingerprint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "falsify/gate/bystanders.hpp"
#include "runtime/registry.hpp"
#include "system/sha256.hpp"

namespace assay::falsify {
namespace {

/// Folder and suffix of the files that register a back end's kernels, and its folder in src/runtime.
struct BackendFolders {
  std::string_view kernels, suffix, runtime;
};
BackendFolders backend_folders(Backend backend) {
  switch (backend) {
    case Backend::cpu: return {"kernels/cpu/", ".cpp", ""};
    case Backend::cuda_host: return {"kernels/cuda/", ".cu", "src/runtime/cuda_host/"};
    case Backend::vulkan: return {"kernels/vulkan/", ".cpp", "src/runtime/vulkan/"};
    case Backend::cuda: return {"kernels/cuda/", ".cu", "src/runtime/cuda/"};
  }
  return {};
}

bool is_build_file(std::string_view path) { return path.ends_with("CMakeLists.txt"); }

/// Certificates of an operation are part of its contract.
constexpr std::string_view kCertificates = "src/contract/certificates/";

std::string contract_of(const Subject& subject) { return fmt::format("contracts/{}.yaml", subject.op); }

bool is_engine(std::string_view path, Backend backend) {
  if (path == "contracts/numerics.yaml") return true;
  if (is_build_file(path) || path.starts_with(kCertificates) || is_bystander(path)) return false;
  for (const std::string_view folder :
       {"falsify/engine/", "falsify/audit/", "src/core/", "src/contract/", "src/contractgen/", "src/system/"})
    if (path.starts_with(folder)) return true;
  const auto belongs_to = [path](Backend b) {
    return !backend_folders(b).runtime.empty() && path.starts_with(backend_folders(b).runtime);
  };
  return path.starts_with("src/runtime/") && (belongs_to(backend) || std::ranges::none_of(kBackends, belongs_to));
}

/// The software model, which kernels include in place of CUDA: no device runs it.
bool is_model_of(std::string_view path, Backend backend) {
  return backend == Backend::cuda && path.starts_with(backend_folders(Backend::cuda_host).runtime);
}

}  // namespace

std::string_view name(Part part) {
  switch (part) {
    case Part::contract: return "contract";
    case Part::reference: return "reference";
    case Part::properties: return "properties";
    case Part::kernel: return "kernel";
    case Part::engine: return "engine";
    case Part::flags: return "flags";
  }
  return "";
}

std::vector<Subject> subjects() {
  std::map<std::string, Subject> all;
  for (const Kernel& k : kernels()) {
    if (k.role != KernelRole::kernel) continue;
    Subject subject{std::string(k.op), std::string(k.id), k.backend, std::string(k.source)};
    if (k.backend == Backend::cuda_host) {
      Subject twin = subject;
      twin.backend = Backend::cuda;
      const std::string host = fmt::format("/{}/", name(Backend::cuda_host));
      twin.id.replace(twin.id.find(host), host.size(), fmt::format("/{}/", name(Backend::cuda)));
      all.emplace(twin.id, twin);
    }
    all[subject.id] = std::move(subject);
  }
  std::vector<Subject> list;
  for (auto& [id, subject] : all) list.push_back(std::move(subject));
  return list;
}

void Fingerprints::add(Files& files, const std::string& path) { files.digests[path] = includes_.own_digest(path); }

std::shared_ptr<const Files> Fingerprints::hashed(Files files, const std::string& first) {
  std::ranges::sort(files.unknown);
  if (files.unknown.empty()) {
    std::vector<std::string> digests;
    for (const auto& [path, digest] : files.digests) digests.push_back(includes_.digest(path));
    std::ranges::sort(digests);
    files.hash = sha256(fmt::format("{}\n{}", first.empty() ? "" : includes_.digest(first), fmt::join(digests, "\n")));
  }
  return std::make_shared<const Files>(std::move(files));
}

std::shared_ptr<const Files> Fingerprints::reach(const std::vector<std::string>& starts, const Subject& subject) {
  const std::string contract = contract_of(subject);
  Files files;
  std::vector<std::string> open = starts;
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    if (files.digests.contains(path) || is_engine(path, subject.backend) || is_model_of(path, subject.backend))
      continue;
    if (path == contract && starts.front() != contract) continue;
    if (path != starts.front() && tree_.find(path) == nullptr) continue;  // has another name in this tree
    add(files, path);
    const Edges& edges = includes_.of(path);
    open.insert(open.end(), edges.files.begin(), edges.files.end());
    files.unknown.insert(files.unknown.end(), edges.unknown.begin(), edges.unknown.end());
  }
  return hashed(std::move(files), starts.front());
}

const std::shared_ptr<const Files>& Fingerprints::engine(Backend backend) {
  std::shared_ptr<const Files>& part = engines_[backend];
  if (part != nullptr) return part;
  Files files;
  std::vector<std::string> open;
  for (const auto& [path, text] : tree_.files)
    if (is_engine(path, backend)) open.push_back(path);
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    if (files.digests.contains(path)) continue;
    add(files, path);
    const Edges& edges = includes_.of(path);
    open.insert(open.end(), edges.included.begin(), edges.included.end());
    files.unknown.insert(files.unknown.end(), edges.unknown.begin(), edges.unknown.end());
  }
  return part = hashed(std::move(files));
}

const std::shared_ptr<const Files>& Fingerprints::flags(Backend backend) {
  std::shared_ptr<const Files>& part = flags_[backend];
  if (part != nullptr) return part;
  Files files;
  add(files, "CMakePresets.json");
  for (const std::string& path : tree_.below("ci/cmake/")) add(files, path);
  const std::string own(backend_folders(backend).kernels), runtime(backend_folders(backend).runtime);
  for (const auto& [path, text] : tree_.files) {
    if (!is_build_file(path) && path != "kernels/vulkan/shaders.cmake") continue;
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    const std::set<std::string> common = {
        "",           "src/",     "src/core/", "src/contract/", "src/contractgen/", "src/runtime/", "src/system/",
        "reference/", "kernels/", "falsify/"};
    if (common.contains(folder) || folder.starts_with(own) || (!runtime.empty() && folder == runtime)) add(files, path);
  }
  return part = hashed(std::move(files));
}

Fingerprint Fingerprints::of(const Subject& s) {
  const BackendFolders where = backend_folders(s.backend);
  // A gradient may stand in the file of its operation.
  const auto file_of = [&](std::string_view folder, std::string_view suffix) {
    const std::string own = fmt::format("{}{}{}", folder, s.op, suffix);
    const std::string_view forward =
        std::string_view(s.op).substr(0, s.op.size() - (s.op.ends_with("_backward") ? 9 : 0));
    const std::string shared = fmt::format("{}{}{}", folder, forward, suffix);
    return tree_.find(own) == nullptr && tree_.find(shared) != nullptr ? shared : own;
  };
  std::vector<std::string> contract = {contract_of(s)};
  // A kernel file of both operations links the certificates of both.
  const std::string kernels = file_of(where.kernels, where.suffix);
  for (const std::string_view op : {std::string_view(s.op), std::string_view(kernels).substr(where.kernels.size())})
    if (const std::string own = fmt::format("{}{}.hpp", kCertificates, op.substr(0, op.find('.')));
        tree_.find(own) != nullptr)
      contract.push_back(own);
  return {{Part::contract, reach(contract, s)},
          {Part::reference, reach({file_of("reference/", ".hpp")}, s)},
          {Part::properties, reach({file_of("falsify/properties/", ".cpp")}, s)},
          {Part::kernel, reach({kernels, s.source}, s)},
          {Part::engine, engine(s.backend)},
          {Part::flags, flags(s.backend)}};
}

Difference difference(const Fingerprint& before, const Fingerprint& now) {
  Difference found;
  std::set<std::string> files;
  for (const Part part : kParts) {
    const Files& was = *before.at(part);
    const Files& is = *now.at(part);
    if (!is.hash.empty() && is.hash == was.hash) continue;
    found.parts.push_back(part);
    const auto collect = [&](const Files& one, const Files& other) {
      for (const auto& [path, digest] : one.digests)
        if (const auto at = other.digests.find(path); at == other.digests.end() || at->second != digest)
          files.insert(path);
      files.insert(one.unknown.begin(), one.unknown.end());
    };
    collect(was, is);
    collect(is, was);
  }
  found.files.assign(files.begin(), files.end());
  return found;
}

}  // namespace assay::falsify
