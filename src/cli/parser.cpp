#include "cli/parser.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace assay::cli {

const Option& Option::required() const { return option_->required(), *this; }
const Option& Option::with_default() const { return option_->capture_default_str(), *this; }
const Option& Option::range(std::int64_t least, std::int64_t most) const {
  return option_->check(CLI::Range(least, most)), *this;
}
const Option& Option::needs(Option other) const { return option_->needs(other.option_), *this; }
const Option& Option::excludes(Option other) const { return option_->excludes(other.option_), *this; }
bool Option::given() const { return option_->count() > 0; }

Option CommandOptions::option(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option CommandOptions::option(const std::string& name, std::vector<std::string>& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option CommandOptions::option(const std::string& name, int& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option CommandOptions::option(const std::string& name, std::int64_t& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option CommandOptions::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option CommandOptions::named(const std::string& name) const { return Option(app_->get_option(name)); }
bool CommandOptions::chosen() const { return app_->parsed(); }

Parser::Parser(const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Parser::~Parser() = default;

CommandOptions Parser::command(const std::string& name, const std::string& help, Output& output) {
  CommandOptions options(app_->add_subcommand(name, help));
  options.flag("--json", output.json, "One JSON document on standard output");
  options.flag("--quiet", output.quiet, "No progress, and nothing that kernels print");
  return options;
}

bool Parser::parse(int argc, char** argv) {
  // Checked before parsing: CLI11 would otherwise report an argument after the unknown command instead of the command.
  const auto commands = app_->get_subcommands([](const CLI::App*) { return true; });
  if (argc > 1 && argv[1][0] != '-' &&
      std::ranges::none_of(commands, [&](const CLI::App* c) { return c->get_name() == argv[1]; }))
    throw WrongCommandLine("'" + std::string(argv[1]) + "' is no command");
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw WrongCommandLine(e.what());
    app_->exit(e);
    return false;
  }
  return true;
}

}  // namespace assay::cli
