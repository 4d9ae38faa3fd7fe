#include "core/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/errors.hpp"

namespace assay::files {
namespace {

namespace fs = std::filesystem;

/// Owns a file descriptor.
struct File {
  int fd;

  explicit File(int opened) : fd(opened) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

/// Opens `path` without blocking. Returns why it is not a readable regular file; empty if it is one.
std::string why_not(const fs::path& path, File& file) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::string("the file cannot be read: ") + std::strerror(errno);
  if (S_ISDIR(info.st_mode)) return "the file cannot be read: it is a folder";
  if (!S_ISREG(info.st_mode)) return "the file cannot be read: it is a pipe, a socket or a device";
  file.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return file.fd >= 0 ? "" : std::string("the file cannot be read: ") + std::strerror(errno);
}

/// Returns the remedy: freeing space helps only if space ran out.
std::string remedy_for(int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? "make room, or name a place that can be written to" : "name a place that can be written to";
}

void create_folders(const fs::path& folder) {
  std::error_code error, none;
  if (folder.empty() || fs::create_directories(folder, error) || fs::is_directory(folder, none)) return;
  throw InputError(folder.string(),
                   "the folder cannot be created: " + (error ? error.message() : std::string(std::strerror(ENOTDIR))),
                   remedy_for(error.value()));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

void expect_regular(const fs::path& path, const std::string& remedy) {
  File file(-1);
  if (const std::string why = why_not(path, file); !why.empty()) throw InputError(path.string(), why, remedy);
}

std::string read(const fs::path& path, const std::string& remedy) {
  File file(-1);
  if (const std::string why = why_not(path, file); !why.empty()) throw InputError(path.string(), why, remedy);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = ::read(file.fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno != EINTR)
      throw InputError(path.string(), std::string("the file cannot be read: ") + std::strerror(errno), remedy);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

void write(const fs::path& path, std::string_view text) {
  const auto fail = [&](const std::string& why, int error = 0) {
    throw InputError(path.string(), "the file could not be written: " + why, remedy_for(error));
  };
  create_folders(path.parent_path());
  std::error_code none;
  const fs::path target = fs::is_symlink(path, none) ? fs::weakly_canonical(path, none) : path;
  struct stat before {};
  const bool replaces = stat(target.c_str(), &before) == 0, device = replaces && S_ISCHR(before.st_mode);
  if (replaces && !device && !S_ISREG(before.st_mode))
    fail(S_ISDIR(before.st_mode) ? "it is a folder" : "it is a pipe, a socket or a disk");
  if (replaces && access(target.c_str(), W_OK) != 0) fail(std::strerror(errno), errno);
  fs::path part = target;
  if (!device) part.concat(".").concat(std::to_string(getpid())).concat(".part");
  if (!device) unlink(part.c_str());  // left behind by a killed process
  File file(open(part.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (device ? 0 : O_CREAT | O_EXCL), 0666));
  if (file.fd < 0) fail(std::strerror(errno), errno);
  bool written = (device || !replaces || fchmod(file.fd, before.st_mode & 07777) == 0) && write_all(file.fd, text);
  written = written && close(std::exchange(file.fd, -1)) == 0;  // some file systems report errors only on close
  if (written && (device || rename(part.c_str(), target.c_str()) == 0)) return;
  const int error = errno;
  if (!device) unlink(part.c_str());
  fail(std::strerror(error), error);
}

}  // namespace assay::files
