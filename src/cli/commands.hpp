// The commands of `assay`. Each adds itself to the parser and returns the exit code when chosen.
#pragma once

#include <functional>

#include "cli/parser.hpp"

namespace assay::cli {

/// Exit codes of every command.
enum Exit { kNothingFalsified = 0, kFalsified = 1, kWrongUse = 2, kUnavailable = 3, kThin = 4 };

/// Runs a chosen command and returns the exit code.
using Action = std::function<int()>;

struct Command {
  CommandOptions options;
  Action action;
};

/// Runs a command line, argv[0] the name of the program. Returns the exit code.
int run_command_line(int argc, char** argv);

Command add_doctor(Parser& parser);
Command add_list(Parser& parser);
Command add_explain(Parser& parser);
Command add_falsify(Parser& parser);
Command add_run(Parser& parser);
Command add_cases(Parser& parser);
Command add_check(Parser& parser);
Command add_train(Parser& parser);
Command add_replay(Parser& parser);
Command add_mutants(Parser& parser);
Command add_gradcheck(Parser& parser);
Command add_import(Parser& parser);
Command add_audit(Parser& parser);
Command add_gate(Parser& parser);
Command add_attest(Parser& parser);
Command add_merge(Parser& parser);
Command add_false_alarms(Parser& parser);

}  // namespace assay::cli
