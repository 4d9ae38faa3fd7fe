// The commands of `assay`. Each adds itself to the parser and returns the exit code when chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace assay::cli {

/// Exit codes of every command.
enum Exit { kNothingFalsified = 0, kFalsified = 1, kWrongUse = 2, kUnavailable = 3 };

/// What a chosen command does; returns the exit code.
using Action = std::function<int()>;

struct Command {
  CLI::App* app;
  Action action;
};

Command add_doctor(CLI::App& root);
Command add_list(CLI::App& root);
Command add_explain(CLI::App& root);
Command add_falsify(CLI::App& root);
Command add_replay(CLI::App& root);
Command add_mutants(CLI::App& root);
Command add_gradcheck(CLI::App& root);
Command add_import(CLI::App& root);
Command add_audit(CLI::App& root);
Command add_gate(CLI::App& root);
Command add_attest(CLI::App& root);
Command add_merge(CLI::App& root);
Command add_odds(CLI::App& root);

}  // namespace assay::cli
