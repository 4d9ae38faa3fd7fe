#include "falsify/gate/tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "system/program.hpp"

namespace assay::falsify {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFolders = {"ci/cmake", "ci/evidence", "contracts", "falsify", "kernels", "reference", "src"};
constexpr std::array kFiles = {"CMakeLists.txt", "CMakePresets.json", "ci/environment.lock", "ci/setup"};

std::string content(const fs::path& path) { return files::read(path, "check its permissions"); }

Finished git(const fs::path& root, std::vector<std::string> command, std::string_view input = {}) {
  command.insert(command.begin(), {"git", "-C", root.string()});
  return run_program(command, input, "install git (Debian: apt install git)");
}

/// Returns git's output. Throws InputError with git's own message if it fails.
std::string said(const fs::path& root, const std::vector<std::string>& command, std::string_view input = {}) {
  Finished done = git(root, command, input);
  if (done.code != 0)
    throw InputError(root.string(), "git: " + done.complaint(), "name a git checkout of Assay with --root");
  return std::move(done.out);
}

/// Takes the next field of git's output, up to `end`, which is skipped.
std::string_view take(std::string_view& text, char end) {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view field = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return field;
}

/// Takes the next object of `git cat-file --batch`: "NAME TYPE SIZE", a newline, the content, a newline.
std::string take_object(std::string_view& text) {
  const std::string_view header = take(text, '\n');
  const std::string_view digits = header.substr(header.rfind(' ') + 1);
  std::size_t size = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec != std::errc{} || size >= text.size() + 1)
    throw InputError("git cat-file", "gave '" + std::string(header) + "'", "check the repository: git fsck");
  std::string object(text.substr(0, size));
  text.remove_prefix(std::min(size + 1, text.size()));
  return object;
}

}  // namespace

const std::string* Tree::find(std::string_view path) const {
  const auto at = files.find(path);
  return at == files.end() ? nullptr : &at->second;
}

bool Tree::has(std::string_view folder) const {
  const auto at = files.lower_bound(folder);
  return at != files.end() && at->first.starts_with(folder);
}

std::vector<std::string> Tree::below(std::string_view folder) const {
  std::vector<std::string> paths;
  for (auto at = files.lower_bound(folder); at != files.end() && at->first.starts_with(folder); ++at)
    paths.push_back(at->first);
  return paths;
}

Tree working_tree(const fs::path& root) {
  if (!fs::is_directory(root / "contracts") || !fs::is_directory(root / "kernels"))
    throw InputError("--root " + root.string(), "holds no contracts/ and kernels/",
                     "name the top of a checkout of Assay");
  Tree tree;
  // Links would be hashed by their own path, and compiled by that of their target.
  const auto expect_no_link = [](const fs::path& path) {
    if (fs::is_symlink(path))
      throw InputError(path.string(), "is a symbolic link, whose target no hash covers", "put the file itself there");
  };
  for (const char* name : kFiles)
    if (fs::is_regular_file(root / name)) tree.files[name] = content(root / name);
  for (const char* folder : kFolders) {
    expect_no_link(root / folder);
    if (!fs::is_directory(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      expect_no_link(entry.path());
      if (entry.is_regular_file())
        tree.files[entry.path().lexically_relative(root).generic_string()] = content(entry.path());
    }
  }
  return tree;
}

std::string departure(const fs::path& root, const std::string& revision) {
  said(root, {"rev-parse", "--is-inside-work-tree"});
  const Finished found = git(root, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
  if (revision.empty() || found.code != 0)
    throw InputError("--base " + revision, "is no revision of " + root.string(),
                     "name a branch, tag or commit that was fetched (a shallow clone has few)");
  const std::string commit = found.out.substr(0, found.out.find('\n'));
  const Finished common = git(root, {"merge-base", commit, "HEAD"});
  return common.code == 0 ? common.out.substr(0, common.out.find('\n')) : commit;
}

Tree committed_tree(const fs::path& root, const std::string& commit) {
  std::vector<std::string> list = {"ls-tree", "-r", "-z", commit, "--"};
  list.insert(list.end(), kFiles.begin(), kFiles.end());
  list.insert(list.end(), kFolders.begin(), kFolders.end());
  const std::string listing = said(root, list);
  std::vector<std::string> paths;
  std::string names;
  for (std::string_view rest = listing; !rest.empty();) {
    std::string_view entry = take(rest, '\0');  // "MODE TYPE NAME\tPATH"
    take(entry, ' ');
    if (take(entry, ' ') != "blob") continue;
    names.append(take(entry, '\t')).append("\n");
    paths.emplace_back(entry);
  }
  const std::string objects = names.empty() ? "" : said(root, {"cat-file", "--batch"}, names);
  Tree tree;
  std::string_view rest = objects;
  for (const std::string& path : paths) tree.files[path] = take_object(rest);
  return tree;
}

std::vector<std::string> trailers(const fs::path& root, const std::string& commit, const std::string& key) {
  const std::string text =
      said(root, {"log", "--format=%(trailers:unfold,valueonly,key=" + key + ")", commit + "..HEAD"});
  std::vector<std::string> values;
  for (std::string_view rest = text; !rest.empty();)
    if (const std::string_view line = take(rest, '\n'); !line.empty()) values.emplace_back(line);
  return values;
}

}  // namespace assay::falsify
