// The command line of Assay for a process that hosts Python.
#include "cli/commands.hpp"
#include "plugin/python.hpp"

/// Runs a command line; `call` calls functions in Python, in worker processes. Returns the exit code.
extern "C" __attribute__((visibility("default"))) int assay_main(int argc, char** argv,
                                                                 assay::plugin::PythonCall call) {
  assay::plugin::set_python(call);
  return assay::cli::run_command_line(argc, argv);
}
