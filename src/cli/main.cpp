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
  Parser parser("assay proves tensor kernels wrong, or shows how hard it tried.\n"
                "Exit codes: 0 nothing falsified, 1 falsified, 2 wrong use or invalid contract, 3 something required is "
                "unavailable here, 4 thin: tried too little to say that it passed, 130 or 143 interrupted.",
                std::string("assay ") + ASSAY_VERSION);
  const Command commands[] = {add_doctor(parser), add_list(parser), add_explain(parser), add_falsify(parser), add_replay(parser),
                              add_mutants(parser), add_gradcheck(parser), add_import(parser), add_audit(parser), add_gate(parser),
                              add_attest(parser), add_odds(parser), add_merge(parser)};
  try {
    if (!parser.parse(argc, argv)) return kNothingFalsified;
  } catch (const WrongCommandLine& e) {
    return complain((std::string(e.what()) + "; `assay --help` lists commands and options").c_str(), kWrongUse);
  }
  try {
    for (int i = 1; i < argc; ++i) expect_utf8("the command line", argv[i]);
    for (const Command& command : commands)
      if (command.options.chosen()) return command.action();
  } catch (const assay::InputError& e) {
    return complain(e.what(), kWrongUse);
  } catch (const assay::Unavailable& e) {
    return complain(e.what(), kUnavailable);
  }
  return kWrongUse;
}
