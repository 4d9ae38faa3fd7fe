// `assay import FILE`: converts a published contract to a skeleton.
#include "import/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "contract/expression.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"

namespace assay::cli {
namespace import_command {
namespace {

namespace fs = std::filesystem;

struct Options : Output {
  std::string file, output;
  bool force = false;
};

/// Returns the path of the skeleton, which is named after the operation.
fs::path output_of(const Options& o) {
  if (!o.output.empty()) {
    if (!contract::usable_name(fs::path(o.output).stem().string()) || fs::path(o.output).extension() != ".yaml")
      throw InputError("--output " + o.output, "a contract's file is named after its operation",
                       "write NAME.yaml with a name in lower-case letters, digits and single underscores");
    return o.output;
  }
  const std::string op = import::op_from(fs::path(o.file).stem().string());
  if (op.empty())
    throw InputError(o.file, "its name gives no name for the operation", "give one with --output NAME.yaml");
  return op + ".yaml";
}

void write(const fs::path& path, const std::string& text, bool overwrite) {
  if (fs::exists(path) && !overwrite)
    throw InputError(path.string(), "the file exists already",
                     "name another with --output, or overwrite it with --force");
  files::write(path, text);
}

nlohmann::json report_of(const Options& o, const fs::path& output, const import::Imported& imported,
                         const std::string& yaml) {
  nlohmann::json carried = nlohmann::json::array(), left = nlohmann::json::array();
  for (const import::Fate& fate : imported.fates)
    (fate.carried ? carried : left)
        .push_back(
            {{"path", fate.clause.path()}, {"line", fate.clause.at.line}, {fate.carried ? "to" : "reason", fate.note}});
  std::size_t todos = 0;
  for (std::size_t at = yaml.find("TODO", yaml.find("\nop:")); at != std::string::npos; at = yaml.find("TODO", at + 4))
    ++todos;
  return {{"schema", "assay-import/1"},
          {"file", o.file},
          {"output", output.string()},
          {"op", imported.skeleton.op},
          {"clauses", imported.fates.size()},
          {"carried", carried},
          {"left", left},
          {"todos", todos}};
}

void print(const nlohmann::json& report) {
  fmt::print("{}: skeleton of {} with {} TODOs, in {}\n", report["file"].get<std::string>(),
             report["op"].get<std::string>(), report["todos"].dump(), report["output"].get<std::string>());
  fmt::print("{} clauses: {} carried over, {} not:\n", report["clauses"].dump(), report["carried"].size(),
             report["left"].size());
  std::size_t width = 0;
  for (const auto& clause : report["left"]) width = std::max(width, clause["path"].get<std::string>().size());
  for (const auto& clause : report["left"])
    fmt::print("  {:<{}}  line {:>4}  {}\n", clause["path"].get<std::string>(), width, clause["line"].get<int>(),
               clause["reason"].get<std::string>());
}

int run(const Options& o) {
  const fs::path output = output_of(o);
  const std::string text = contract::read_file(o.file, o.file, "a published contract");
  const import::Imported imported = import::import_published(text, o.file, output.stem().string());
  const std::string yaml = imported.skeleton.text();
  write(output, yaml, o.force);
  const nlohmann::json report = report_of(o, output, imported, yaml);
  if (o.json) fmt::print("{}\n", report.dump(2));
  else print(report);
  return kNothingFalsified;
}

}  // namespace
}  // namespace import_command

Command add_import(Parser& parser) {
  using namespace import_command;
  auto o = std::make_shared<Options>();
  auto command = parser.command("import", "Make a skeleton of a contract from a published provable-contracts YAML", *o);
  command.option("FILE", o->file, "The published contract").required();
  command.option("--output", o->output,
                 "Where to write the skeleton; its name is the operation's (./OP.yaml, from FILE's name)");
  command.flag("--force", o->force, "Overwrite a file that is there");
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
