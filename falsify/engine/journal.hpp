// The journal of a run: what was finished, one JSON document a line, so that a run which was interrupted at any moment goes on
// where it was and counts nothing twice.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

inline constexpr std::string_view kJournalSchema = "assay-journal/1";

/// Written by one process; a line is on the disk before append() returns.
class Journal {
 public:
  /// Opens the file, or makes it. `campaign` says what the run is of: program, settings, kernels ("kernels": their ids). A last line
  /// that was not written to its end is dropped. Throws InputError where the file is no journal, is one of another
  /// campaign, is damaged, or is being written by another process.
  Journal(const std::filesystem::path& file, const nlohmann::json& campaign);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Results of finished kernels.
  std::vector<nlohmann::json> results() const;
  /// Whether a kernel is finished.
  bool finished(const std::string& kernel) const { return entries_.contains(kernel) && !entries_.at(kernel).result.is_null(); }
  /// The last checkpoint (checkpoint.hpp) of a kernel that is not finished, with the ratios of all; null: none.
  nlohmann::json checkpoint(const std::string& kernel) const;
  /// Line of that checkpoint, for messages: "FILE:7".
  std::string place(const std::string& kernel) const;
  /// Time that runs with this journal took before.
  std::chrono::duration<double> spent() const { return spent_; }
  /// The last line was dropped.
  bool torn() const { return torn_; }

  /// A kernel's result, or its next checkpoint. Throws InputError if it cannot be written.
  void add_result(const nlohmann::json& result);
  void add_checkpoint(const std::string& kernel, const nlohmann::json& checkpoint);

 private:
  struct Entry {
    nlohmann::json checkpoint, result;
    int line = 0;
  };
  void lock();
  std::string read();
  void take(const nlohmann::json& line, int number);
  void write_line(const nlohmann::json& line);
  void append(const std::string& kernel, const char* what, const nlohmann::json& document);
  [[noreturn]] void fail(const std::string& where, const std::string& problem, const std::string& remedy) const;

  std::filesystem::path path_;
  nlohmann::json campaign_;
  int file_ = -1;
  std::map<std::string, Entry> entries_;  ///< by kernel
  std::chrono::duration<double> spent_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool torn_ = false;
};

}  // namespace assay::falsify
