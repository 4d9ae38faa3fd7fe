#include "falsify/gate/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

/// Returns the packages in ci/setup that provide an entry: words outside comments.
std::map<std::string, std::set<std::string>> packages_of(const Tree& tree) {
  std::map<std::string, std::set<std::string>> found;
  const std::string* text = tree.find(kSetupFile);
  std::istringstream lines(text == nullptr ? "" : *text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) {
      if (word.starts_with("clang-format")) continue;  // compiles nothing
      for (const EnvironmentEntry& entry : environment_entries())
        if (std::ranges::any_of(entry.packages,
                                [&](std::string_view part) { return word.find(part) != std::string::npos; }))
          found[std::string(entry.name)].insert(word);
    }
  }
  return found;
}

template <class Value>
std::vector<std::string> differing_keys(const std::map<std::string, Value>& before,
                                        const std::map<std::string, Value>& now) {
  std::set<std::string> names;
  for (const auto& [name, value] : before)
    if (const auto at = now.find(name); at == now.end() || at->second != value) names.insert(name);
  for (const auto& [name, value] : now)
    if (!before.contains(name)) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace

const std::vector<EnvironmentEntry>& environment_entries() {
  static const std::vector<Backend> all(std::begin(kBackends), std::end(kBackends));
  static const std::vector<EnvironmentEntry> table = {
      {"compiler", all, {"build-essential", "gcc", "g++", "clang"}},
      {"flags", all, {}},  // of the configuration; flags in sources are hashed with these
      {"libm", all, {"libc6"}},
      {"blas", {Backend::cpu}, {"blas", "blis", "mkl", "atlas", "lapack"}},
      {"OPENBLAS_CORETYPE", {Backend::cpu}, {}},
      {"highway", {Backend::cpu}, {"libhwy"}},
      {"cuda", {Backend::cuda}, {"cuda", "nvidia"}},
      {"glslc", {Backend::vulkan}, {"glslc", "shaderc", "spirv-tools"}},
      {"vulkan-driver", {Backend::vulkan}, {"vulkan-drivers"}},
  };
  return table;
}

bool touches(std::string_view name, Backend backend) {
  const auto& table = environment_entries();
  const auto entry = std::ranges::find(table, name, &EnvironmentEntry::name);
  return entry == table.end() || std::ranges::find(entry->touches, backend) != entry->touches.end();
}

Environment read_lock(const std::string& text) {
  Environment environment;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || colon == 0 ||
        !environment.emplace(line.substr(0, colon), line.substr(colon + 2)).second)
      throw InputError(fmt::format("{}:{}", kLockFile, number), "is no line 'entry: value' of its own",
                       "remove the line; `assay gate --lock` writes what is here");
  }
  return environment;
}

std::string lock_text(const Environment& environment) {
  std::string text =
      "# What CI builds and runs with. Written by `assay gate --lock`; a change touches the kernels that it can "
      "change.\n";
  for (const auto& [name, value] : environment) text += fmt::format("{}: {}\n", name, value);
  return text;
}

Environment lock_of(const Tree& tree) {
  const std::string* text = tree.find(kLockFile);
  return text == nullptr ? Environment{} : read_lock(*text);
}

std::vector<std::string> changed_entries(const Environment& before, const Environment& now) {
  return differing_keys(before, now);
}

std::vector<std::string> changed_packages(const Tree& before, const Tree& now) {
  return differing_keys(packages_of(before), packages_of(now));
}

std::vector<std::string> differing(const Environment& lock, const Environment& machine) {
  std::vector<std::string> names;
  for (const auto& [name, value] : machine)
    if (const auto at = lock.find(name); at == lock.end() || at->second != value) names.push_back(name);
  return names;
}

std::string machine_sentence(const Environment& lock, const Environment& machine) {
  if (lock.empty()) return fmt::format("{} is missing: `assay gate --lock` writes it", kLockFile);
  std::string list;
  for (const std::string& name : differing(lock, machine)) {
    const auto at = lock.find(name);
    list += fmt::format("{}{} is {}, there {}", list.empty() ? "" : "; ", name, machine.at(name),
                        at == lock.end() ? "nothing" : at->second);
  }
  return list.empty() ? ""
                      : fmt::format("this machine is not that of {}: {}; `assay gate --lock` adopts what is here",
                                    kLockFile, list);
}

}  // namespace assay::falsify
