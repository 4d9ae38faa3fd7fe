#include "program/model/checkpoint.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "system/sha256.hpp"

namespace assay::program {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::size_t kDigest = 64;  // hexadecimal digits

}  // namespace

// A line of JSON, the numbers, and the digest of both.
void write(const std::filesystem::path& file, const Checkpoint& c) {
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
  files::write(file, text, true);
}

Checkpoint read_checkpoint(const std::filesystem::path& file) {
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
