#include "falsify/engine/reports/source_location.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <sstream>
#include <string>
#include <vector>

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Returns the number of the first line, comments excluded, that holds `words` as a whole word, or as the beginning of
/// a name if `words` ends in an underscore; 0 if there is none.
int line_with(std::string_view text, std::string_view words) {
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line.substr(begin).starts_with("//")) continue;
    for (std::size_t at = line.find(words); at != std::string_view::npos; at = line.find(words, at + 1)) {
      const std::size_t end = at + words.size();
      if ((at == 0 || !word_character(line[at - 1]) || !word_character(words.front())) &&
          (end == line.size() || !word_character(line[end]) || !word_character(words.back()) || words.back() == '_'))
        return number;
    }
  }
  return 0;
}

/// Of mutant/<back end>/<op>/<fault>, in a list of faults; 1 where it is not there.
int line_of_fault(std::string_view text, std::string_view id) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(id, '/')) parts.emplace_back(part.begin(), part.end());
  if (parts.size() != 4) return 1;
  const std::string backend = parts[1] == "cuda-host" ? "cuda" : parts[1],
                    kernel = "kernel: " + parts[2] + "/" + backend + "/";
  const std::string entry = "id: " + parts[3];
  int number = 0, begin = 1;
  bool own = false;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part.begin(), part.end());
    ++number;
    if (line.starts_with("- ")) own = line_with(line, entry) != 0, begin = number;
    if (own && line.find(kernel) != std::string_view::npos) return begin;
  }
  return 1;
}

/// Returns the file in this folder or the nearest parent that has it; empty if there is none.
fs::path find_upwards(fs::path folder, const fs::path& file) {
  std::error_code error;
  for (;; folder = folder.parent_path()) {
    if (fs::exists(folder / file, error)) return folder / file;
    if (folder == folder.parent_path()) return {};
  }
}

fs::path find_source(const fs::path& source) {
  std::error_code error;
  fs::path found = find_upwards(fs::current_path(error), source);
  if (found.empty()) found = find_upwards(fs::read_symlink("/proc/self/exe", error).parent_path(), source);
  return found;
}

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

int line_of(std::string_view text, std::string_view id) {
  const std::string op(id.substr(0, id.find('/')));
  const std::string algorithm(id.substr(id.rfind('/') + 1));
  // Try registrations first, then functions by their names in this repository and in shaders.
  for (const std::string& words :
       {'"' + std::string(id) + '"', '"' + algorithm + '"', algorithm + '(', algorithm, algorithm + '_',
        std::string("void main("), op + '(', op + "_kernel(", std::string("__global__")})
    if (const int line = line_with(text, words)) return line;
  return 1;
}

SourceLocation find_source_location(std::string_view source, std::string_view id) {
  SourceLocation place{std::string(source), 1};
  if (source.empty() || id.starts_with("foreign/")) return place;  // foreign kernels have no source, only a library
  const fs::path found = find_source(fs::path(source));
  // A list of faults (falsify/mutation/faults.py) or the source of a kernel.
  place.line = source.ends_with(".yaml") ? line_of_fault(contents(found), id) : line_of(contents(found), id);
  return place;
}

}  // namespace assay::falsify
