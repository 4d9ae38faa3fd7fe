// A temporary file for another program.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/errors.hpp"
#include "core/files.hpp"

namespace assay {

class Scratch {
 public:
  /// Throws Unavailable if no file can be created in the temporary folder.
  explicit Scratch(const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-XXXXXX").string();
    const int fd = mkostemp(pattern.data(), O_CLOEXEC);
    if (fd < 0) throw Unavailable("temporary file", pattern + " cannot be made");
    close(fd);
    path_ = pattern;
    files::write(path_, text);
  }
  ~Scratch() { unlink(path_.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
