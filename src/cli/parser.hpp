// The command line: commands and options. Only parser.cpp includes CLI11, which takes seconds to compile.
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

/// An option of a command, with its constraints.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& required() const;
  /// Shows the current value in --help.
  const Option& with_default() const;
  /// Restricts the value to [least, most].
  const Option& range(std::int64_t least, std::int64_t most) const;
  const Option& needs(Option other) const;
  const Option& excludes(Option other) const;

  bool given() const;

 private:
  CLI::Option* option_;
};

/// The options of one command. Parsing sets the values, which must live at least as long as the parser. A name without
/// dashes is a positional argument. The last occurrence of a repeated option counts.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App* app) : app_(app) {}

  Option option(const std::string& name, std::string& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& name, int& value, const std::string& help);
  Option option(const std::string& name, std::int64_t& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  /// Returns the option added with this name.
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

/// An error of the command line, as one sentence without its final period.
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

  /// Returns true if a command was chosen, false if help or the version was printed. Throws WrongCommandLine.
  bool parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace assay::cli
