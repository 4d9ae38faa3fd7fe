#include "program/model/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "system/sha256.hpp"

namespace assay::program {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::size_t kDigest = 64;  // hexadecimal digits

/// Waits until a file or a folder is on the disk.
void expect_on_disk(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!done)
    throw InputError(path.string(), fmt::format("the file could not be written: {}", std::strerror(error)),
                     "make room, or name a place that can be written to");
}

/// Writes a file beside the earlier one, which it replaces once it is on the disk.
void write_durably(const fs::path& file, std::string_view text) {
  fs::path next = file;
  next += ".next";
  files::write(next, text);
  expect_on_disk(next);
  fs::rename(next, file);
  expect_on_disk(file.has_parent_path() ? file.parent_path() : ".");
}

}  // namespace

// A line of JSON, the numbers, and the digest of both.
void write(const fs::path& file, const Checkpoint& c) {
  std::string text = json{{"schema", "assay-checkpoint/1"},
                          {"run", c.run},
                          {"steps", c.trainer.steps},
                          {"skipped", c.trainer.skipped},
                          {"parameters", c.trainer.parameters.size()},
                          {"best", c.best.size()}}
                         .dump() +
                     '\n';
  for (const std::vector<float>* all : {&c.trainer.parameters, &c.trainer.m, &c.trainer.v, &c.best})
    text.append(reinterpret_cast<const char*>(all->data()), all->size() * sizeof(float));
  text += sha256(text);
  write_durably(file, text);
}

Checkpoint read_checkpoint(const fs::path& file) {
  const std::string text = files::read(file, "name a checkpoint");
  const auto refuse = [&](const std::string& problem) {
    throw InputError(file.string(), problem, "take another checkpoint");
  };
  const std::size_t line = text.find('\n');
  const json header = line == std::string::npos ? json() : json::parse(text.substr(0, line), nullptr, false);
  if (!header.is_object() || header.value("schema", json()) != "assay-checkpoint/1")
    refuse("is no checkpoint of this program");
  const std::string_view whole = text;
  if (text.size() < line + 1 + kDigest ||
      sha256(whole.substr(0, text.size() - kDigest)) != whole.substr(text.size() - kDigest))
    refuse("is damaged: its digest is another one");
  Checkpoint c{header["run"], {}};
  c.trainer.steps = header["steps"], c.trainer.skipped = header["skipped"];
  const std::size_t parameters = header["parameters"], best = header["best"];
  std::size_t at = line + 1;
  const auto take = [&](std::vector<float>& all, std::size_t count) {
    all.resize(count);
    std::memcpy(all.data(), text.data() + at, count * sizeof(float));
    at += count * sizeof(float);
  };
  for (std::vector<float>* all : {&c.trainer.parameters, &c.trainer.m, &c.trainer.v}) take(*all, parameters);
  take(c.best, best);
  return c;
}

}  // namespace assay::program
