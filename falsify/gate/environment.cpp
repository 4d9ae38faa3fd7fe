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

/// Returns the words of one text that the other lacks.
std::string words_beyond(const std::string& text, const std::string& other) {
  std::istringstream words(text);
  std::string beyond;
  for (std::string word; words >> word;)
    if (fmt::format(" {} ", other).find(fmt::format(" {} ", word)) == std::string::npos) beyond += " " + word;
  return beyond;
}

bool has_options(const Environment& environment) {
  return std::ranges::any_of(environment, [](const auto& entry) { return entry.first.starts_with(kOptionsOf); });
}

/// Returns the entry of the library for the entry of one of its objects; empty for any other entry.
std::string library_entry(const std::string& name) {
  const std::size_t slash = name.find('/');
  return name.starts_with(kOptionsOf) && slash != std::string::npos ? name.substr(0, slash) : "";
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
  if (name.starts_with(kOptionsOf)) {
    const std::string_view library = name.substr(0, name.find('/'));
    const auto belongs_to = [&](Backend b) {
      std::string suffix = fmt::format("_{}", assay::name(b));
      std::ranges::replace(suffix, '-', '_');
      return library.ends_with(suffix);
    };
    return belongs_to(backend) || std::ranges::none_of(kBackends, belongs_to);
  }
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
  std::vector<std::string> names = differing_keys(before, now);
  if (!has_options(before)) std::erase_if(names, [](const std::string& name) { return name.starts_with(kOptionsOf); });
  return names;
}

std::vector<std::string> changed_packages(const Tree& before, const Tree& now) {
  return differing_keys(packages_of(before), packages_of(now));
}

std::vector<std::string> differing(const Environment& lock, const Environment& machine) {
  std::vector<std::string> names;
  for (const auto& [name, value] : machine)
    if (const auto at = lock.find(name); at == lock.end() || at->second != value) names.push_back(name);
  for (const auto& [name, value] : lock)
    if (!machine.contains(name) && machine.contains(library_entry(name))) names.push_back(name);
  return names;
}

std::string machine_sentence(const Environment& lock, const Environment& machine) {
  if (lock.empty()) return fmt::format("{} is missing: `assay gate --lock` writes it", kLockFile);
  std::string list;
  for (const std::string& name : differing(lock, machine)) {
    if (name.starts_with(kOptionsOf) && !has_options(lock)) continue;
    const auto here = machine.find(name), there = lock.find(name);
    if (!list.empty()) list += "; ";
    if (here == machine.end()) {
      list += fmt::format("{} are those of its library", name);
    } else if (name.starts_with(kOptionsOf) && there != lock.end()) {
      const std::string added = words_beyond(here->second, there->second),
                        gone = words_beyond(there->second, here->second);
      list += fmt::format("{} are", name);
      if (!added.empty()) list += fmt::format(" with{}", added);
      if (!gone.empty()) list += fmt::format(" without{}", gone);
      if (added.empty() && gone.empty()) list += fmt::format(" {}", here->second);
    } else {
      list += fmt::format("{} is {}, there {}", name, here->second, there == lock.end() ? "nothing" : there->second);
    }
  }
  if (has_options(machine) && !has_options(lock))
    list += fmt::format("{}the options of compilations are not there", list.empty() ? "" : "; ");
  return list.empty() ? ""
                      : fmt::format("this machine is not that of {}: {}; `assay gate --lock` adopts what is here",
                                    kLockFile, list);
}

}  // namespace assay::falsify
