// The command line: what commands and options there are. CLI11 behind a wall, since it is a header that takes seconds to compile:
// parser.cpp alone includes it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay::cli {

/// An option of a command, and what holds of it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& required() const;
  /// --help shows the value that it has now.
  const Option& with_default() const;
  /// A number of [least, most].
  const Option& range(std::int64_t least, std::int64_t most) const;
  const Option& needs(Option other) const;
  const Option& excludes(Option other) const;

  bool given() const;

 private:
  CLI::Option* option_;
};

/// The options of one command. Values are set when the command line is read, and live at least as long as the parser. A name without
/// dashes is that of a positional argument; of an option that is given twice the last one counts.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App* app) : app_(app) {}

  Option option(const std::string& name, std::string& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& name, int& value, const std::string& help);
  Option option(const std::string& name, std::int64_t& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  /// The option that was added with this name.
  Option named(const std::string& name) const;

  bool chosen() const;

 private:
  CLI::App* app_;
};

/// How a command prints.
struct Output {
  bool json = false;   ///< one JSON document on standard output, and nothing else there
  bool quiet = false;  ///< no progress on standard error
};

/// What is wrong with a command line, in one sentence without its end.
struct WrongCommandLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Parser {
 public:
  Parser(const std::string& description, const std::string& version);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// A command with --json and --quiet: every command takes both.
  CommandOptions command(const std::string& name, const std::string& help, Output& output);

  /// True where a command was chosen; false where help or the version was asked for, and printed. Throws WrongCommandLine.
  bool parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace assay::cli
