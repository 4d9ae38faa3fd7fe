#include "falsify/foreign/replay.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {

using nlohmann::json;

void name_foreign(json& report, const plugin::Source& source) {
  json foreign{{"library", std::filesystem::absolute(source.library).lexically_normal().string()},
               {"symbol", source.symbol},
               {"declared", source.declared}};
  if (!source.shim_name.empty()) foreign.update({{"shim", source.shim}, {"shim_file", source.shim_name}});
  if (source.shader) foreign["shader"] = true;
  for (json& k : report["kernels"]) {
    k["foreign"] = foreign;
    for (json& o : k["obligations"])
      if (o.contains("counterexample")) o["counterexample"]["foreign"] = foreign;
  }
}

namespace {

/// A parsed replay file; errors name the file.
class ReplayFile {
 public:
  explicit ReplayFile(const std::filesystem::path& path) : path_(path.string()) {
    const std::string text = files::read(path, "name a file written by `assay falsify`");
    try {
      document_ = json::parse(text);
    } catch (const json::parse_error& e) {
      fail(fmt::format("is not JSON: {}", e.what()));
    }
  }

  [[noreturn]] void fail(const std::string& problem,
                         const std::string& remedy = "name a file written by `assay falsify`") const {
    throw InputError(path_, problem, remedy);
  }
  std::string text(const char* key) const { return text(document_, key); }
  std::string text(const json& map, const char* key) const {
    if (!map.is_object() || !map.contains(key) || !map[key].is_string())
      fail(fmt::format("the key '{}' is missing or not text", key));
    return map[key].get<std::string>();
  }
  const json& document() const { return document_; }

  /// Returns the foreign kernel that the file names.
  plugin::Source foreign() const {
    const json& from = document_["foreign"];
    plugin::Source source{text(from, "library"), text(from, "symbol"), {}, {}, text(from, "declared")};
    if (from.contains("shim")) source.shim = text(from, "shim"), source.shim_name = text(from, "shim_file");
    source.shader = from.contains("shader");
    return source;
  }

 private:
  std::string path_;
  json document_;
};

}  // namespace

Replay read_replay(const std::filesystem::path& path, const std::string& library) {
  const ReplayFile file(path);
  if (file.text("schema") != kReplaySchema)
    file.fail(fmt::format("has the schema '{}'", file.text("schema")),
              fmt::format("this version reads {}", kReplaySchema));
  Replay replay;
  replay.op = &operation(file.text("op"));
  if (file.document().contains("foreign")) {
    plugin::Source source = file.foreign();
    if (!library.empty()) source.library = library;
    replay.foreign = std::make_unique<plugin::ForeignKernel>(*replay.op, std::move(source));
    replay.kernel = &replay.foreign->kernel();
  } else {
    if (!library.empty()) file.fail("holds no foreign kernel", "leave --lib out");
    replay.kernel = &kernel(file.text("kernel"));
  }
  if (replay.kernel->op != replay.op->name)
    file.fail(fmt::format("names the kernel {}, which is not one of {}", replay.kernel->id, replay.op->name));
  const std::string id = file.text("obligation");
  for (const Obligation& o : obligations(replay.op->name))
    if (o.info->id == id) replay.obligation = &o;
  if (replay.obligation == nullptr)
    file.fail(fmt::format("names the obligation {}, which {} does not have", id, replay.op->file),
              fmt::format("`assay explain {}` lists them", replay.op->name));
  if (!file.document().contains("case")) file.fail("the key 'case' is missing");
  replay.the_case = case_from_json(*replay.op, file.document()["case"], path.string() + ": case");
  if (file.document().contains("race")) {
    const std::string order = file.text(file.document()["race"], "other");
    std::uint64_t other = 0;
    if (std::from_chars(order.data(), order.data() + order.size(), other).ec != std::errc{})
      file.fail(fmt::format("'{}' is no order of threads", order));
    replay.other_order = other;
  }
  return replay;
}

}  // namespace assay::falsify
