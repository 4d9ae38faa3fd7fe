#include "falsify/engine/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/errors.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr const char* kNoJournal = "is no journal of `assay falsify`";
constexpr const char* kLeftAlone = "name another file; this one is left as it is";
constexpr const char* kRunAgain = "delete that line: what it holds is run again";

std::string text_of_line(const json& line) { return line.dump() + "\n"; }

/// Describes the first key in which two documents differ, and both values: "seed: \"1\" there, \"2\" here".
std::string difference(const json& there, const json& here) {
  for (const auto& [key, value] : here.items()) {
    const json other = there.is_object() && there.contains(key) ? there[key] : json();
    if (other == value) continue;
    if (value.is_object()) return difference(other, value);
    if (value.is_array()) return fmt::format("other {}", key);
    return fmt::format("{} {} there, {} here", key, other.dump(), value.dump());
  }
  return "more is said there than here";
}

/// Prepends the ratios of earlier checkpoints to those of a later one.
void join_ratios(const json& before, json& now) {
  for (std::size_t o = 0; o < now.at("obligations").size(); ++o) {
    json joined = before.at("obligations").at(o).at("ratios");
    json& ratios = now["obligations"][o].at("ratios");
    joined.insert(joined.end(), ratios.begin(), ratios.end());
    ratios = std::move(joined);
  }
}

}  // namespace

Journal::Journal(const std::filesystem::path& path, const json& campaign) : path_(path), campaign_(campaign) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    fail(path.string(), fmt::format("cannot be opened: {}", std::strerror(errno)),
         "name a file that can be written to");
  struct stat info {};
  if (fstat(file_, &info) != 0 || !S_ISREG(info.st_mode))
    fail(path.string(), "is a pipe or a device", "name a file that can be written to");
  lock();
  const std::string text = read();
  const json head{{"schema", kJournalSchema}, {"campaign", campaign_}};
  const bool begun = text.find('\n') != std::string::npos;
  if (!begun && !text_of_line(head).starts_with(text)) fail(path.string(), kNoJournal, kLeftAlone);
  std::size_t begin = 0;
  int number = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(json::parse(text.substr(begin, end - begin), nullptr, false), ++number);
  torn_ = begin < text.size();
  if (torn_ && ftruncate(file_, static_cast<off_t>(begin)) != 0)
    fail(path.string(), fmt::format("cannot be shortened: {}", std::strerror(errno)),
         "name a file that can be written to");
  if (!begun) write_line(head);
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

void Journal::fail(const std::string& where, const std::string& problem, const std::string& remedy) const {
  if (file_ >= 0) close(file_);
  throw InputError(where, problem, remedy);
}

void Journal::lock() {
  // A lock of this process alone, unlike flock(): driver processes that briefly outlive it do not hold the lock.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_, F_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES))
    fail(path_.string(), "is being written by another run", "wait for its end, or name another file");
}

std::string Journal::read() {
  std::string text;
  char buffer[65536];
  for (ssize_t n = 0; (n = pread(file_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

void Journal::take(const json& line, int number) {
  const std::string where = fmt::format("{}:{}", path_.string(), number);
  if (number == 1) {
    if (!line.is_object() || line.value("schema", json()) != kJournalSchema || !line.contains("campaign"))
      fail(path_.string(), kNoJournal, kLeftAlone);
    if (line["campaign"] != campaign_)
      fail(path_.string(),
           fmt::format("is the journal of another campaign ({})", difference(line["campaign"], campaign_)),
           "run the same program with the same options, or name another file");
    return;
  }
  try {
    const std::string kernel = line.at("kernel");
    if (std::ranges::none_of(campaign_.at("kernels"), [&](const json& id) { return id == kernel; }))
      fail(where, fmt::format("{} is none of the campaign's kernels", kernel), kRunAgain);
    Entry& entry = entries_[kernel];
    if (!entry.result.is_null()) fail(where, fmt::format("{} was finished before", kernel), kRunAgain);
    if (line.contains("result")) {
      entry.result = line["result"];
      if (entry.result.at("kernel") != kernel)
        fail(where, fmt::format("the result is not that of {}", kernel), kRunAgain);
    } else {
      json next = line.at("checkpoint");
      const bool first = entry.checkpoint.is_null();
      if (next.at("after") != (first ? json(0) : entry.checkpoint["rounds"]) || next.at("rounds") <= next["after"])
        fail(where, fmt::format("does not follow what was recorded of {} before", kernel), kRunAgain);
      if (!first) join_ratios(entry.checkpoint, next);
      entry.checkpoint = std::move(next);
    }
    entry.line = number;
    spent_ = std::chrono::duration<double>(line.at("elapsed").get<double>());
  } catch (const json::exception&) {
    fail(where, "the line is damaged", kRunAgain);
  }
}

std::vector<json> Journal::results() const {
  std::vector<json> list;
  for (const auto& [kernel, entry] : entries_)
    if (!entry.result.is_null()) list.push_back(entry.result);
  return list;
}

json Journal::checkpoint(const std::string& kernel) const {
  const auto at = entries_.find(kernel);
  return at == entries_.end() ? json() : at->second.checkpoint;
}

std::string Journal::place(const std::string& kernel) const {
  const auto at = entries_.find(kernel);
  return fmt::format("{}:{}", path_.string(), at == entries_.end() ? 1 : at->second.line);
}

void Journal::write_line(const json& line) {
  const std::string text = text_of_line(line);
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = write(file_, text.data() + sent, text.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  if (sent < text.size() || fdatasync(file_) != 0)
    throw InputError(path_.string(), fmt::format("the journal could not be written: {}", std::strerror(errno)),
                     "make room, and run the same command again: it goes on from here");
}

void Journal::append(const std::string& kernel, const char* what, const json& document) {
  const std::chrono::duration<double> elapsed = spent_ + (std::chrono::steady_clock::now() - begin_);
  write_line({{"kernel", kernel}, {"elapsed", elapsed.count()}, {what, document}});
}

void Journal::add_result(const json& result) { append(result.at("kernel"), "result", result); }

void Journal::add_checkpoint(const std::string& kernel, const json& checkpoint) {
  append(kernel, "checkpoint", checkpoint);
}

}  // namespace assay::falsify
