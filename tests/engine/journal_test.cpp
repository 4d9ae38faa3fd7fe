// Journals in isolation: records round-trip, torn lines are recovered, and foreign journals are left unchanged.
#include "falsify/engine/journal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>

#include "core/errors.hpp"

namespace assay::falsify::journal_test {
namespace {

using nlohmann::json;

json campaign() {
  return {{"program", "p"}, {"settings", {{"seed", "1"}, {"cases", 5}}}, {"kernels", {"k/one", "k/two"}}};
}

json result_of(const std::string& kernel) { return {{"kernel", kernel}, {"status", "passed"}}; }

/// A checkpoint of two obligations after `rounds` rounds, with the ratios since the previous one.
json checkpoint(int after, int rounds, const json& first, const json& second) {
  return {{"after", after},
          {"rounds", rounds},
          {"obligations", {{{"id", "a"}, {"ratios", first}}, {{"id", "b"}, {"ratios", second}}}}};
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class JournalFile : public testing::Test {
 protected:
  JournalFile() { std::filesystem::remove_all(folder_); }
  ~JournalFile() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(folder_);
    std::ofstream(file_) << text;
  }
  std::string head() const { return json{{"schema", kJournalSchema}, {"campaign", campaign()}}.dump() + "\n"; }
  /// Formats a line as append() does.
  static std::string line(const json& document) { return document.dump() + "\n"; }

  /// Returns where, problem and remedy of a refusal, which must leave the file unchanged and no descriptor open.
  std::vector<std::string> refused(const std::string& text, const json& of = campaign()) const {
    write(text);
    const std::size_t before = open_descriptors();
    try {
      const Journal journal(file_, of);
    } catch (const InputError& e) {
      EXPECT_EQ(this->text(), text);
      EXPECT_EQ(open_descriptors(), before);
      return {e.where, e.problem, e.remedy};
    }
    return {};
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / fmt::format("assay-journals-{}", getpid());
  std::filesystem::path file_ = folder_ / "deeper" / "journal.jsonl";
};

class JournalText : public JournalFile {
 protected:
  JournalText() { file_ = folder_ / "journal.jsonl"; }
};

TEST_F(JournalFile, ANewOneHoldsItsCampaignAndNothingElse) {
  const mode_t before = umask(0);
  {
    const Journal journal(file_, campaign());
    EXPECT_EQ(text(), head());
    EXPECT_TRUE(journal.results().empty());
    EXPECT_FALSE(journal.finished("k/one"));
    EXPECT_TRUE(journal.checkpoint("k/one").is_null());
    EXPECT_EQ(journal.place("k/one"), file_.string() + ":1");
    EXPECT_EQ(journal.spent().count(), 0);
    EXPECT_FALSE(journal.torn());
  }
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U) << "as the user's mask leaves it";
}

TEST_F(JournalFile, WhatIsAddedComesBackInWhateverOrder) {
  {
    Journal journal(file_, campaign());
    journal.add_checkpoint("k/two", checkpoint(0, 10, {0.5, 0.25}, {1}));
    journal.add_result(result_of("k/one"));
    journal.add_checkpoint("k/two", checkpoint(10, 20, {0.125}, json::array()));
    EXPECT_FALSE(journal.finished("k/one")) << "what it holds is what was there when it was opened";
  }
  {
    Journal journal(file_, campaign());
    EXPECT_TRUE(journal.finished("k/one"));
    EXPECT_FALSE(journal.finished("k/two"));
    EXPECT_FALSE(journal.finished("k/three"));
    EXPECT_EQ(journal.results(), std::vector<json>{result_of("k/one")});
    EXPECT_EQ(journal.checkpoint("k/two"), checkpoint(10, 20, {0.5, 0.25, 0.125}, {1})) << "with the ratios of all";
    EXPECT_TRUE(journal.checkpoint("k/one").is_null());
    EXPECT_EQ(journal.place("k/one"), file_.string() + ":3");
    EXPECT_EQ(journal.place("k/two"), file_.string() + ":4");
    EXPECT_EQ(journal.place("k/three"), file_.string() + ":1");
    EXPECT_FALSE(journal.torn());
    journal.add_result(result_of("k/two"));
  }
  const Journal journal(file_, campaign());
  EXPECT_EQ(journal.results(), (std::vector<json>{result_of("k/one"), result_of("k/two")}));
}

TEST_F(JournalText, TimeGoesOnFromWhatWasSpent) {
  write(head() + line({{"kernel", "k/one"}, {"elapsed", 1000.5}, {"result", result_of("k/one")}}));
  {
    Journal journal(file_, campaign());
    EXPECT_EQ(journal.spent().count(), 1000.5);
    journal.add_result(result_of("k/two"));
  }
  const Journal journal(file_, campaign());
  EXPECT_GT(journal.spent().count(), 1000.5);
  EXPECT_LT(journal.spent().count(), 1000.5 + 600);
}

TEST_F(JournalText, ALineIsReadWhateverItsLength) {
  json much = result_of("k/one");
  much["reason"] = std::string(300'000, 'x');
  {
    Journal journal(file_, campaign());
    journal.add_result(much);
    journal.add_result(result_of("k/two"));
  }
  const Journal journal(file_, campaign());
  EXPECT_EQ(journal.results(), (std::vector<json>{much, result_of("k/two")}));
}

TEST_F(JournalText, ALastLineThatIsNotWholeIsDroppedWhereverItEnds) {
  const std::string first = line({{"kernel", "k/one"}, {"elapsed", 1}, {"result", result_of("k/one")}});
  const std::string last = line({{"kernel", "k/two"}, {"elapsed", 2}, {"result", result_of("k/two")}});
  const std::string whole = head() + first + last;
  for (std::size_t kept = 0; kept <= whole.size(); ++kept) {
    write(whole.substr(0, kept));
    const std::size_t end = kept < head().size()                  ? 0
                            : kept < head().size() + first.size() ? head().size()
                            : kept < whole.size()                 ? head().size() + first.size()
                                                                  : kept;
    const Journal journal(file_, campaign());
    EXPECT_EQ(journal.torn(), kept != end) << kept;
    EXPECT_EQ(text(), end == 0 ? head() : whole.substr(0, end)) << kept;
    EXPECT_EQ(journal.finished("k/one"), kept >= head().size() + first.size());
    EXPECT_EQ(journal.finished("k/two"), kept == whole.size());
  }
}

TEST_F(JournalText, AnotherTextIsNoJournal) {
  const std::vector<std::string> said{file_.string(), "is no journal of `assay falsify`",
                                      "name another file; this one is left as it is"};
  EXPECT_EQ(refused("a text without an end"), said);
  EXPECT_EQ(refused("a text\n"), said);
  EXPECT_EQ(refused("\n"), said);
  EXPECT_EQ(refused("[]\n"), said);
  EXPECT_EQ(refused(line({{"schema", "assay-journal/2"}, {"campaign", campaign()}})), said);
  EXPECT_EQ(refused(line({{"schema", kJournalSchema}})), said);
  EXPECT_EQ(refused(line({{"campaign", campaign()}})), said);
  EXPECT_EQ(refused(head().substr(0, 9) + "x"), said);
}

TEST_F(JournalText, OfAnotherCampaignSaysInWhatTheyDiffer) {
  const auto said = [&](const json& here) {
    const std::vector<std::string> parts = refused(head(), here);
    if (parts.empty()) return std::string("accepted");
    EXPECT_EQ(parts[0], file_.string());
    EXPECT_EQ(parts[2], "run the same program with the same options, or name another file");
    return parts[1];
  };
  json other = campaign();
  other["settings"]["seed"] = "2";
  EXPECT_EQ(said(other), "is the journal of another campaign (seed \"1\" there, \"2\" here)");
  other = campaign();
  other["program"] = "q";
  EXPECT_EQ(said(other), "is the journal of another campaign (program \"p\" there, \"q\" here)");
  other = campaign();
  other["kernels"] = {"k/one"};
  EXPECT_EQ(said(other), "is the journal of another campaign (other kernels)");
  other = campaign();
  other["added"] = 3;
  EXPECT_EQ(said(other), "is the journal of another campaign (added null there, 3 here)");
  other = campaign();
  other["added"] = {{"within", 3}};
  EXPECT_EQ(said(other), "is the journal of another campaign (within null there, 3 here)");
  other = campaign();
  other.erase("program");
  EXPECT_EQ(said(other), "is the journal of another campaign (more is said there than here)");
  EXPECT_EQ(said(campaign()), "accepted");
}

TEST_F(JournalText, ALineThatContradictsOthersIsNamed) {
  const auto result = [](const char* kernel, const char* of) {
    return line({{"kernel", kernel}, {"elapsed", 1}, {"result", result_of(of)}});
  };
  const auto stretch = [](int after, int rounds) {
    return line({{"kernel", "k/two"}, {"elapsed", 1}, {"checkpoint", checkpoint(after, rounds, {1}, {1})}});
  };
  const auto said = [&](int number, const std::string& problem) {
    return std::vector<std::string>{fmt::format("{}:{}", file_.string(), number), problem,
                                    "delete that line: what it holds is run again"};
  };
  EXPECT_EQ(refused(head() + result("k/three", "k/three")), said(2, "k/three is none of the campaign's kernels"));
  EXPECT_EQ(refused(head() + result("k/one", "k/one") + result("k/one", "k/one")),
            said(3, "k/one was finished before"));
  EXPECT_EQ(refused(head() + result("k/two", "k/two") + stretch(0, 1)), said(3, "k/two was finished before"));
  EXPECT_EQ(refused(head() + result("k/one", "k/two")), said(2, "the result is not that of k/one"));
  const std::string behind = "does not follow what was recorded of k/two before";
  EXPECT_EQ(refused(head() + stretch(1, 2)), said(2, behind));
  EXPECT_EQ(refused(head() + stretch(0, 0)), said(2, behind));
  EXPECT_EQ(refused(head() + stretch(0, 5) + stretch(0, 5)), said(3, behind));
  EXPECT_EQ(refused(head() + stretch(0, 5) + stretch(5, 5)), said(3, behind));
  EXPECT_EQ(refused(head() + stretch(0, 5) + stretch(6, 9)), said(3, behind));
  EXPECT_EQ(refused(head() + stretch(0, 5) + stretch(5, 6) + result("k/two", "k/two")), std::vector<std::string>{});
}

TEST_F(JournalText, ADamagedLineIsNamed) {
  const auto said = [&](int number) {
    return std::vector<std::string>{fmt::format("{}:{}", file_.string(), number), "the line is damaged",
                                    "delete that line: what it holds is run again"};
  };
  const std::string good = line({{"kernel", "k/one"}, {"elapsed", 1}, {"result", result_of("k/one")}});
  EXPECT_EQ(refused(head() + "{\n" + good), said(2));
  EXPECT_EQ(refused(head() + good + "\n"), said(3));
  EXPECT_EQ(refused(head() + line({{"elapsed", 1}, {"result", result_of("k/one")}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", 7}, {"elapsed", 1}, {"result", result_of("k/one")}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", "k/one"}, {"elapsed", 1}, {"result", json::object()}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", "k/one"}, {"elapsed", 1}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", "k/one"}, {"elapsed", 1}, {"checkpoint", {{"after", 0}}}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", "k/one"}, {"result", result_of("k/one")}})), said(2));
  EXPECT_EQ(refused(head() + line({{"kernel", "k/one"}, {"elapsed", "long"}, {"result", result_of("k/one")}})),
            said(2));
  json few = checkpoint(0, 5, {1}, {1}), more = checkpoint(5, 6, {1}, {1});
  few["obligations"].erase(1);
  EXPECT_EQ(refused(head() + line({{"kernel", "k/two"}, {"elapsed", 1}, {"checkpoint", few}}) +
                    line({{"kernel", "k/two"}, {"elapsed", 1}, {"checkpoint", more}})),
            said(3));
}

TEST_F(JournalText, AFileThatCannotBeOpenedIsNamed) {
  try {
    const Journal journal("/proc/none/journal", campaign());
    FAIL() << "opened";
  } catch (const InputError& e) {
    EXPECT_EQ(e.where, "/proc/none/journal");
    EXPECT_EQ(e.problem, "cannot be opened: No such file or directory");
    EXPECT_EQ(e.remedy, "name a file that can be written to");
  }
}

/// Returns the message to another process that opens the same file; empty if there is none.
std::string said_elsewhere(const std::filesystem::path& file) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t other = fork();
  if (other == 0) {
    std::string said;
    try {
      const Journal journal(file, campaign());
    } catch (const InputError& e) {
      said = fmt::format("{}|{}|{}", e.where, e.problem, e.remedy);
    }
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  char buffer[1024];
  const ssize_t length = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

TEST_F(JournalText, OneProcessWritesItAtATime) {
  write("");
  {
    Journal journal(file_, campaign());
    journal.add_result(result_of("k/one"));
    EXPECT_EQ(said_elsewhere(file_),
              file_.string() + "|is being written by another run|wait for its end, or name another file");
  }
  EXPECT_EQ(said_elsewhere(file_), "");
}

/// A child process that briefly outlives this one must not hold the journal.
TEST_F(JournalText, NoProgramThatIsStartedHasItOpen) {
  write("");
  const Journal journal(file_, campaign());
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    std::error_code none;
    if (std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), none) != file_) continue;
    ++found;
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

/// A program started without standard input gets descriptor 0 for its journal.
TEST_F(JournalText, ItsDescriptorMayBeTheFirst) {
  write("");
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  close(STDIN_FILENO);
  bool opened = false, left_open = false;
  try {
    {
      Journal journal(file_, campaign());
      opened = fcntl(STDIN_FILENO, F_GETFD) != -1;
      journal.add_result(result_of("k/one"));
    }
    left_open = fcntl(STDIN_FILENO, F_GETFD) != -1;
    refused("a text\n");
    left_open = left_open || fcntl(STDIN_FILENO, F_GETFD) != -1;
  } catch (const InputError& e) {
    ADD_FAILURE() << e.what();
  }
  close(STDIN_FILENO);
  if (input >= 0) {
    dup2(input, STDIN_FILENO);
    close(input);
  }
  EXPECT_TRUE(opened);
  EXPECT_FALSE(left_open);
}

TEST_F(JournalText, AFullDiskIsSaidAndWhatWasWrittenIsTakenUp) {
  write("");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  std::string where, problem, remedy;
  {
    Journal journal(file_, campaign());
    journal.add_result(result_of("k/one"));
    const rlimit full{text().size() + 10, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    try {
      journal.add_result(result_of("k/two"));
    } catch (const InputError& e) {
      where = e.where, problem = e.problem, remedy = e.remedy;
    }
    setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(where, file_.string());
  EXPECT_EQ(problem, "the journal could not be written: File too large");
  EXPECT_EQ(remedy, "make room, and run the same command again: it goes on from here");
  const Journal journal(file_, campaign());
  EXPECT_TRUE(journal.torn());
  EXPECT_TRUE(journal.finished("k/one"));
  EXPECT_FALSE(journal.finished("k/two"));
}

/// A stale errno from an earlier call must not repeat a line.
TEST_F(JournalText, ALineIsWrittenOnce) {
  write("");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  {
    Journal journal(file_, campaign());
    const rlimit little{1 << 16, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    errno = EINTR;
    EXPECT_NO_THROW(journal.add_result(result_of("k/one")));
    setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, ignored);
  const std::string held = text();
  EXPECT_EQ(std::ranges::count(held, '\n'), 2);
}

}  // namespace
}  // namespace assay::falsify::journal_test
