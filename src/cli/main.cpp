// assay: proves tensor kernels wrong, or shows how hard it tried.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"
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

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::cli;
  assay::forbid_tracing();        // before any kernel could trace this process
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
  } catch (const assay::InputError& e) {
    return print_error(e.what(), kWrongUse);
  } catch (const assay::Unavailable& e) {
    return print_error(e.what(), kUnavailable);
  } catch (const std::bad_alloc&) {
    return print_error("memory: there is not enough for this; run fewer jobs at once (--jobs), or smaller cases",
                       kUnavailable);
  } catch (const std::system_error& e) {  // from files and standard output
    return print_error((std::ferror(stdout) != 0 ? "standard output: " : "") + std::string(e.what()) +
                           "; make room, or name a place that can be read and written",
                       kWrongUse);
  }
  return kWrongUse;
}
