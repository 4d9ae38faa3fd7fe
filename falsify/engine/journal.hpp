// The journal of a run: finished work as one JSON document a line. A run interrupted at any moment resumes from it and
// counts nothing twice.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::falsify {

inline constexpr std::string_view kJournalSchema = "assay-journal/1";

/// Written by one process; append() returns after the line is on disk.
class Journal {
 public:
  /// Opens or creates the file. `campaign` describes the run: program, settings, kernels ("kernels": their ids). Drops
  /// an incomplete last line. Throws InputError if the file is no journal, belongs to another campaign, is damaged, or
  /// is being written by another process.
  Journal(const std::filesystem::path& file, const nlohmann::json& campaign);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Returns the results of finished kernels.
  std::vector<nlohmann::json> results() const;
  /// True if a kernel is finished.
  bool finished(const std::string& kernel) const {
    return entries_.contains(kernel) && !entries_.at(kernel).result.is_null();
  }
  /// Returns the last checkpoint (checkpoint.hpp) of an unfinished kernel, with the ratios of all its checkpoints; null
  /// if none.
  nlohmann::json checkpoint(const std::string& kernel) const;
  /// Returns the line of that checkpoint, for messages: "FILE:7".
  std::string place(const std::string& kernel) const;
  /// Returns the time that earlier runs with this journal took.
  std::chrono::duration<double> spent() const { return spent_; }
  /// True if an incomplete last line was dropped.
  bool torn() const { return torn_; }

  /// Records a kernel's result, or its next checkpoint. Throws InputError if it cannot be written.
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
