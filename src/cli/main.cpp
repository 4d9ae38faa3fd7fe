// assay: proves tensor kernels wrong, or shows how hard it tried.
#include <cstdio>
#include <exception>

#include "cli/commands.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"

namespace {

int complain(const char* what, int code) {
  std::fprintf(stderr, "assay: %s\n", what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::cli;
  CLI::App app{"assay proves tensor kernels wrong, or shows how hard it tried.\n"
               "Exit codes: 0 nothing falsified, 1 falsified, 2 wrong use or invalid contract, 3 something required is "
               "unavailable here, 130 or 143 interrupted."};
  app.set_version_flag("--version", std::string("assay ") + ASSAY_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const Command commands[] = {add_doctor(app),  add_list(app),   add_explain(app),
                              add_falsify(app), add_replay(app), add_mutants(app),
                               add_gradcheck(app), add_import(app), add_audit(app),
                               add_gate(app),    add_attest(app), add_odds(app),
                              add_merge(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return complain((std::string(e.what()) + "; `assay --help` lists commands and options").c_str(), kWrongUse);
  }
  try {
    for (int i = 1; i < argc; ++i) expect_utf8("the command line", argv[i]);
    for (const Command& command : commands)
      if (command.app->parsed()) return command.action();
  } catch (const assay::InputError& e) {
    return complain(e.what(), kWrongUse);
  } catch (const assay::Unavailable& e) {
    return complain(e.what(), kUnavailable);
  }
  return kWrongUse;
}
