// The ranks of a command: a failure of one ends all, with one sentence and one exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/model/ranks.hpp"

namespace assay::cli {

/// How a command ends that has failed.
struct Failure {
  int code = 0;
  std::string sentence;
};
/// That of an exception which commands are ended by. Within a handler; others are thrown on.
Failure failure_of_current_exception();

/// A step of a checked update is wrong.
struct WrongStep {
  std::string sentence;
};

/// Ranks have failed: the failure of the first of them, and of which ranks it is unless it is that of all.
struct RanksFailed {
  Failure failure;
};

class Team {
 public:
  /// Throws what ranks_of_this_process() throws.
  Team() : ranks_(program::ranks_of_this_process()) {}

  program::Ranks& ranks() { return *ranks_; }
  int size() const { return ranks_->size(); }
  /// This rank prints, and writes files.
  bool speaks() const { return ranks_->rank() == 0; }

  /// Returns the text of every rank. Throws RanksFailed if one of them has failed.
  std::vector<std::string> exchange(const std::string& mine);
  /// Throws InputError on every rank, naming one whose text is not that of rank 0.
  void expect_same(const std::string& mine, const std::string& problem, const std::string& remedy);
  /// Runs a part of the command on every rank. Throws RanksFailed on every rank if it throws on one; alone, what it throws.
  void together(const std::function<void()>& part);

 private:
  std::vector<std::string> received(const std::string& sent);

  std::unique_ptr<program::Ranks> ranks_;
};

}  // namespace assay::cli
