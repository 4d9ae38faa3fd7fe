// `assay replay FILE`: runs one stored case again, in a fresh process.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "cli/commands.hpp"
#include "cli/foreign.hpp"
#include "cli/kernel_lines.hpp"
#include "cli/memory_needed.hpp"
#include "cli/systems.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/worker.hpp"
#include "falsify/foreign/probe.hpp"
#include "falsify/foreign/replay.hpp"
#include "plugin/python.hpp"

namespace assay::cli {
namespace replay_command {
namespace {

/// Throws if the case is legal but too large for this machine. Called before any memory is allocated.
void expect_room_for(const falsify::Replay& replay, const std::string& file) {
  for (const auto& dims : {replay.the_case.dims, replay.the_case.prelude}) {
    if (dims.empty()) continue;
    constexpr double kGiB = 1 << 30, kArena = falsify::Worker::kArenaBytes;
    if (const double bytes = bytes_of_tensors(*replay.op, dims); bytes > kArena)
      throw InputError(file + ": case",
                       fmt::format("its tensors need {:.3g} GiB and a call has {:.3g}", bytes / kGiB, kArena / kGiB),
                       "use smaller dims");
    expect_room(*replay.op, dims, 1, file + ": case", "use smaller dims, or a larger machine");
  }
}

void expect_library(const falsify::Replay& replay) {
  if (!replay.foreign || access(replay.foreign->source().library.c_str(), R_OK) == 0) return;
  throw InputError(replay.foreign->source().library, std::string("cannot be read: ") + std::strerror(errno),
                   "say where it is now: assay replay FILE --lib LIBRARY");
}

/// Returns the result for the other thread order of a race, or for the other run.
std::string under(const falsify::Replay& replay, std::chrono::milliseconds limit) {
  falsify::Case c = replay.the_case;
  c.order = *replay.other_order;
  const falsify::Outcome outcome = falsify::run_case(*replay.op, *replay.obligation, *replay.kernel, c, limit);
  return outcome.finding                                  ? outcome.finding->message
         : outcome.kind == falsify::Outcome::Kind::passed ? "it passes"
                                                          : outcome.reason;
}

int run(const std::string& file, const std::string& library, const std::string& limit_text, bool as_json) {
  if (const std::optional<int> of_system = replay_system(file, as_json)) return *of_system;
  const falsify::Replay replay = falsify::read_replay(file, library);
  expect_library(replay);
  expect_room_for(replay, file);
  const bool in_python = replay.foreign && plugin::is_python(replay.foreign->source().library);
  const std::chrono::milliseconds limit = limit_of(in_python, parse_duration("--limit", limit_text));
  // The library is only checked: the replay file has the declarations.
  if (in_python) expect_callable(*replay.foreign, limit);
  else if (replay.foreign && !replay.foreign->source().shader) falsify::probe(replay.foreign->source(), limit);
  const falsify::Outcome outcome =
      falsify::run_case(*replay.op, *replay.obligation, *replay.kernel, replay.the_case, limit);
  const bool falsified = outcome.kind == falsify::Outcome::Kind::falsified;
  const bool passed = outcome.kind == falsify::Outcome::Kind::passed;
  const std::string verdict = falsified ? "falsified" : passed ? "passed" : "not run: " + outcome.reason;
  const std::string message = falsified ? outcome.finding->message : "";
  const falsify::FailedCall* const call = falsified && outcome.finding->call ? &*outcome.finding->call : nullptr;
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"schema", "assay-replayed/1"},
                                      {"kernel", replay.kernel->id},
                                      {"obligation", replay.obligation->info->id},
                                      {"verdict", verdict},
                                      {"message", message},
                                      {"case", falsify::to_json(*replay.op, replay.the_case)}}
                           .dump(2));
  } else {
    fmt::print("{}  {}  {}\n  case     {}\n", replay.kernel->id, replay.obligation->info->id, verdict,
               falsify::describe(*replay.op, call != nullptr ? call->call : replay.the_case));
    if (call != nullptr && call->of > 1)
      fmt::print("  call     {} of {} of the check{}{}\n", call->number, call->of, call->relation.empty() ? "" : "; ",
                 call->relation);
    if (falsified) fmt::print("  {:<8} {}\n", name(outcome.finding->kind), message);
    if (replay.other_order && *replay.other_order == replay.the_case.order)
      fmt::print("  race     in another run: {}\n", under(replay, limit));
    else if (replay.other_order)
      fmt::print("  race     under order {} of the threads: {}\n", *replay.other_order, under(replay, limit));
  }
  return falsified ? kFalsified : passed ? kNothingFalsified : kUnavailable;
}

}  // namespace
}  // namespace replay_command

Command add_replay(Parser& parser) {
  using namespace replay_command;
  auto output = std::make_shared<Output>();
  auto command = parser.command("replay", "Run one stored case again", *output);
  auto file = std::make_shared<std::string>();
  auto library = std::make_shared<std::string>();
  auto limit = std::make_shared<std::string>("10s");
  command.option("FILE", *file, "A file written by `assay falsify`").required();
  command.option("--lib", *library, "Where the shared library of a foreign kernel is now");
  command.option("--limit", *limit, kLimitHelp).with_default();
  return {command, [file, library, limit, output] {
            const KernelLines lines(output->quiet);
            return run(*file, *library, *limit, output->json);
          }};
}

}  // namespace assay::cli
