// assay: proves tensor kernels wrong, or shows how hard it tried.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "cli/team.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"
#include "falsify/engine/report.hpp"
#include "plugin/python.hpp"
#include "system/sandbox.hpp"

namespace {

int print_error(const std::string& what, int code) {
  std::fprintf(stderr, "%s%s\n", what.starts_with("assay ") ? "" : "assay: ", what.c_str());  // some name their command
  return code;
}

/// Returns `code`, or failure if standard output could not be written: a truncated or missing document is not a
/// success.
int finish(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return print_error(std::string("standard output: could not be written: ") + std::strerror(errno != 0 ? errno : EIO) +
                         "; make room, or name another file",
                     assay::cli::kWrongUse);
}

/// Starts the same command in the interpreter named by ASSAY_PYTHON, else python3, with the package of this build or
/// installation.
int run_in_python(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  std::string folders = (program / "../python").string() + ":" + (program / "../" ASSAY_PYTHON_PACKAGES).string();
  const char* const before = std::getenv("PYTHONPATH");
  if (before != nullptr && *before != '\0') folders += std::string(":") + before;  // an empty entry is this folder
  setenv("PYTHONPATH", folders.c_str(), 1);
  const char* const named = std::getenv("ASSAY_PYTHON");
  // Not -m, which lets files of the current folder stand in for modules: a kernel's folder would reach its judge.
  std::string python = named != nullptr ? named : "python3", option = "-c",
              start = "import sys; del sys.path[0]; from assay.__main__ import command; command()";
  std::vector<char*> command{python.data(), option.data(), start.data()};
  command.insert(command.end(), argv + 1, argv + argc);
  command.push_back(nullptr);
  execvp(command[0], command.data());
  return print_error(
      python + ": could not be started: " + std::strerror(errno) + "; name an interpreter in ASSAY_PYTHON",
      assay::cli::kUnavailable);
}

}  // namespace

namespace assay::cli {

int run_command_line(int argc, char** argv) {
  forbid_tracing();               // before any kernel could trace this process
  std::signal(SIGXFSZ, SIG_IGN);  // write() then reports a file size limit like a full disk
  Parser parser(
      "assay proves tensor kernels wrong, or shows how hard it tried.\n"
      "Exit codes: 0 nothing falsified; 1 falsified, mistrusted, a clause never evaluated, a mutant that survived, evidence "
      "that is missing, stale or edited, or an input that no hash covers; 2 wrong use or invalid contract; 3 what was asked for is unavailable here or refuses its cases; "
      "4 thin: tried too little to say that it passed; 128 + N ended by signal N (130 by Ctrl-C).",
      std::string("assay ") + ASSAY_VERSION);
  const Command commands[] = {add_doctor(parser), add_list(parser),    add_explain(parser),   add_falsify(parser),
                              add_replay(parser), add_mutants(parser), add_gradcheck(parser), add_import(parser),
                              add_audit(parser),  add_gate(parser),    add_attest(parser),    add_false_alarms(parser),
                              add_merge(parser),  add_run(parser),     add_cases(parser),     add_check(parser),
                              add_train(parser)};
  try {
    if (!parser.parse(argc, argv)) return finish(kNothingFalsified);
  } catch (const WrongCommandLine& e) {
    return print_error(std::string(e.what()) + "; `assay --help` lists commands and options", kWrongUse);
  }
  try {
    for (int i = 1; i < argc; ++i) expect_utf8("the command line", argv[i]);
    for (const Command& command : commands)
      if (command.options.chosen()) return finish(command.action());
  } catch (const plugin::NeedsPython&) {
    return run_in_python(argc, argv);
  } catch (...) {
    const Failure failure = failure_of_current_exception();
    return print_error((std::ferror(stdout) != 0 ? "standard output: " : "") + failure.sentence, failure.code);
  }
  return kWrongUse;
}

}  // namespace assay::cli

int main(int argc, char** argv) {
  if (argc > 0) assay::falsify::set_program(argv[0]);
  return assay::cli::run_command_line(argc, argv);
}
