#include "falsify/gate/includes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;

/// Where the build looks for quoted names after the folder of the file itself; the last is for CUDA's own headers,
/// which cuda-host has its own of.
constexpr std::string_view kRoots[] = {"src/", "", "src/plugin/", "src/runtime/cuda_host/shim/"};

bool has_suffix(std::string_view path, std::initializer_list<std::string_view> suffixes) {
  for (const std::string_view suffix : suffixes)
    if (path.ends_with(suffix)) return true;
  return false;
}

bool is_source(std::string_view path) { return has_suffix(path, {".cpp", ".cu"}); }
bool is_header(std::string_view path) { return has_suffix(path, {".hpp", ".h", ".cuh"}); }

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash + 1));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// What a line includes, with its quotes or brackets; nothing where it is no #include.
std::optional<std::string_view> included(std::string_view line) {
  line = trimmed(line);
  while (line.starts_with("/*")) {
    const std::size_t end = line.find("*/");
    if (end == std::string_view::npos) return std::nullopt;
    line = trimmed(line.substr(end + 2));
  }
  if (!line.starts_with('#')) return std::nullopt;
  line = trimmed(line.substr(1));
  if (line.starts_with("include")) return trimmed(line.substr(7));
  // A name that is to be included elsewhere, as Highway does.
  if (!line.starts_with("define")) return std::nullopt;
  line = trimmed(line.substr(6));
  const std::size_t name = line.find_first_of(" \t");
  if (name == std::string_view::npos || line.substr(0, name).find("INCLUDE") == std::string_view::npos)
    return std::nullopt;
  const std::string_view value = trimmed(line.substr(name));
  return value.starts_with('"') ? std::optional(value) : std::nullopt;
}

/// Calls visit(number, text) for each line; a backslash at its end joins the next.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  int number = 1;
  while (!text.empty()) {
    std::string line;
    const int first = number;
    bool joined = true;
    while (joined && !text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view piece = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      joined = piece.ends_with('\\');
      line.append(joined ? piece.substr(0, piece.size() - 1) : piece);
    }
    visit(first, std::string_view(line));
  }
}

/// True where `pattern`, in which ${...} stands for anything, is the name.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t open = pattern.find("${");
  if (open == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, open))) return false;
  const std::string_view rest = pattern.substr(std::min(pattern.find('}', open), pattern.size() - 1) + 1);
  for (std::size_t at = open; at <= name.size(); ++at)
    if (matches(rest, name.substr(at))) return true;
  return false;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> list;
  while (true) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return list;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find_first_of(" \t\r\n)"), text.size());
    if (end == 0) return list;
    list.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

Includes::Includes(const Tree& tree) : tree_(tree) {
  for (const std::string& path : tree.below("kernels/")) {
    const std::string& text = *tree.find(path);
    if (!is_source(path) || text.find("KernelRegistration") != std::string::npos) continue;
    for (const std::string& header : find(path, text).files)
      if (is_header(header) && folder_of(header) == folder_of(path) && header.find("-inl.") == std::string::npos)
        definers_[header].insert(path);
  }
}

const Edges& Includes::of(const std::string& path) {
  const auto known = known_.find(path);
  if (known != known_.end()) return known->second;
  const std::string* text = tree_.find(path);
  return known_[path] = text == nullptr ? Edges{} : find(path, *text);
}

Edges Includes::find(const std::string& path, const std::string& text) const {
  Edges edges;
  if (!is_source(path) && !is_header(path) && !has_suffix(path, {".comp", ".glsl", ".inc"})) return edges;
  for_each_line(text, [&](int number, std::string_view line) {
    const auto target = included(line);
    if (!target) return;
    const std::string where = fmt::format("{}:{}: #include {}", path, number, *target);
    const bool quoted = target->starts_with('"');
    const std::size_t end =
        quoted || target->starts_with('<') ? target->find(quoted ? '"' : '>', 1) : std::string_view::npos;
    if (end == std::string_view::npos) edges.unknown.push_back(where);
    else follow(path, target->substr(1, end - 1), quoted, where, edges);
  });
  if (is_header(path)) {
    const std::string stem = path.substr(0, path.rfind('.'));
    for (const char* suffix : {".cpp", ".cu"})
      if (tree_.find(stem + suffix) != nullptr) edges.files.insert(stem + suffix);
    if (const auto at = definers_.find(path); at != definers_.end())
      edges.files.insert(at->second.begin(), at->second.end());
  }
  return edges;
}

void Includes::follow(const std::string& from, std::string_view target, bool quoted, const std::string& where,
                      Edges& edges) const {
  std::vector<std::string> candidates;
  if (quoted) candidates.push_back(folder_of(from));
  candidates.insert(candidates.end(), std::begin(kRoots), std::end(kRoots));
  for (const std::string& folder : candidates) {
    std::string path = fs::path(folder + std::string(target)).lexically_normal().generic_string();
    if (tree_.find(path) == nullptr) continue;
    edges.files.insert(std::move(path));
    return;
  }
  const std::string stem(target.substr(target.rfind('/') + 1, target.rfind('.') - target.rfind('/') - 1));
  const std::string op = target.starts_with("ops/") ? stem
                         : target.ends_with("_obligations.hpp")
                             ? stem.substr(0, stem.size() - std::string_view("_obligations").size())
                             : "";
  if (const std::string contract = fmt::format("contracts/{}.yaml", op);
      !op.empty() && tree_.find(contract) != nullptr) {
    edges.files.insert(contract);
    return;
  }
  if (target.starts_with("shaders/") && shader(stem, edges)) return;
  if (ours(target) || (quoted && target.find('/') == std::string_view::npos)) edges.unknown.push_back(where);
}

bool Includes::shader(std::string_view name, Edges& edges) const {
  bool found = false;
  for (const std::string& path : tree_.below("kernels/vulkan/")) {
    if (!path.ends_with(".cmake")) continue;
    const std::string_view text = *tree_.find(path);
    constexpr std::string_view kCall = "assay_add_shader(";
    for (std::size_t at = text.find(kCall); at != std::string_view::npos; at = text.find(kCall, at + 1)) {
      const std::vector<std::string_view> arguments =
          words(text.substr(at + kCall.size()));  // target, file, name, defines
      if (arguments.size() < 3 || !matches(arguments[2], name)) continue;
      edges.files.insert(path);
      edges.files.insert(fmt::format("kernels/vulkan/{}", arguments[1]));
      found = true;
    }
  }
  return found;
}

bool Includes::ours(std::string_view target) const {
  const std::size_t slash = target.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string folder(target.substr(0, slash + 1));
  return folder == "ops/" || folder == "shaders/" || !tree_.below(folder).empty() ||
         !tree_.below("src/" + folder).empty();
}

}  // namespace assay::falsify
