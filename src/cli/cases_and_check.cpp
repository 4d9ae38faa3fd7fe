// `assay cases` and `assay check`: kernels that cannot run beside Assay. Calls are drawn into files, a program of the
// user's adds their outputs, and campaigns judge these as if the kernel had run.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.hpp"
#include "cli/publish.hpp"
#include "cli/selection.hpp"
#include "cli/traced.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "falsify/engine/report.hpp"
#include "plugin/declaration.hpp"
#include "program/model/safetensors.hpp"
#include "system/sha256.hpp"

namespace assay::cli {
namespace recorded_calls {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSchema = "assay-cases/1";
constexpr std::size_t kFileBytes = std::size_t{256} << 20;  ///< a file of cases ends beyond it

/// Calls that the process of a campaign appends and this one reads.
class SharedLog {
 public:
  SharedLog() {
    void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw Unavailable("memory", "there is no address space for recorded calls");
    begin_ = static_cast<std::byte*>(at);
  }
  ~SharedLog() { munmap(begin_, kBytes); }
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;

  void append(std::string_view record) {
    std::size_t& used = header().used;
    if (kHeader + used + sizeof(std::uint64_t) + record.size() > kBytes) {
      header().full = true;
      return;
    }
    const std::uint64_t size = record.size();
    std::memcpy(begin_ + kHeader + used, &size, sizeof size);
    std::memcpy(begin_ + kHeader + used + sizeof size, record.data(), record.size());
    used += sizeof size + record.size();
  }
  template <class F>
  void for_each(F f) const {
    if (header().full)
      throw InputError("--cases", fmt::format("the calls fill more than {} GiB", kBytes >> 30), "draw fewer cases");
    for (std::size_t at = kHeader; at < kHeader + header().used;) {
      std::uint64_t size = 0;
      std::memcpy(&size, begin_ + at, sizeof size);
      f(std::string_view(reinterpret_cast<const char*>(begin_ + at + sizeof size), size));
      at += sizeof size + size;
    }
  }

 private:
  struct Header {
    std::size_t used = 0;
    bool full = false;
  };
  static constexpr std::size_t kBytes = std::size_t{8} << 30, kHeader = 64;
  Header& header() const { return *reinterpret_cast<Header*>(begin_); }

  std::byte* begin_ = nullptr;
};

/// Calls f(element's address, bytes) for stretches of a tensor's elements, in row-major order.
template <class F>
void for_each_stretch(const Tensor& t, F f) {
  const std::size_t size = size_of(t.dtype);
  const int inner = t.shape.rank() - 1;
  const std::function<void(int, std::byte*)> visit = [&](int axis, std::byte* at) {
    if (axis > inner) return f(at, size);
    if (axis == inner && t.strides[axis] == 1) return f(at, size * static_cast<std::size_t>(t.shape[axis]));
    for (Index i = 0; i < t.shape[axis]; ++i)
      visit(axis + 1, at + static_cast<std::ptrdiff_t>(size) * i * t.strides[axis]);
  };
  if (t.shape.size() > 0) visit(0, static_cast<std::byte*>(t.data));
}

/// A call as files have it. Its id is a digest of what a kernel reads.
struct RecordedCall {
  std::string id;
  json says;                                 ///< dims, params, and of each tensor its name, dtype, shape and role
  std::vector<program::StoredTensor> reads;  ///< "ID.NAME"
};

DType dtype_named(const std::string& text) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8})
    if (text == name(dtype)) return dtype;
  throw InputError("cases.json", text + " is no type of elements", "draw the cases anew with `assay cases`");
}

bool reads(const TensorInfo& tensor) { return tensor.role != Role::out; }
bool writes(const TensorInfo& tensor) { return tensor.role != Role::in; }

/// Describes the call without its elements.
json description(const OpDescriptor& op, const Call& call) {
  json says{
      {"dims", json::object()}, {"params", json::object()}, {"inputs", json::object()}, {"outputs", json::object()}};
  for (std::size_t d = 0; d < op.dims.size(); ++d) says["dims"][std::string(op.dims[d].name)] = call.dims[d];
  for (std::size_t p = 0; p < op.params.size(); ++p) says["params"][std::string(op.params[p].name)] = call.params[p];
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    const Tensor& tensor = call.tensors[t];
    if (tensor.data == nullptr) continue;  // not wanted
    const json stored{{"dtype", name(tensor.dtype)}, {"shape", program::extents(tensor.shape)}};
    if (reads(op.tensors[t])) says["inputs"][std::string(op.tensors[t].name)] = stored;
    if (writes(op.tensors[t])) says["outputs"][std::string(op.tensors[t].name)] = stored;
  }
  return says;
}

/// The call's description, a zero byte, and the elements that it reads.
std::string record_of(const OpDescriptor& op, const Call& call) {
  std::string record = description(op, call).dump();
  record.push_back('\0');
  for (std::size_t t = 0; t < op.tensors.size(); ++t)
    if (reads(op.tensors[t]) && call.tensors[t].data != nullptr)
      for_each_stretch(call.tensors[t], [&](const std::byte* at, std::size_t bytes) {
        record.append(reinterpret_cast<const char*>(at), bytes);
      });
  return record;
}

std::string id_of(std::string_view record) { return sha256(std::string(record)).substr(0, 20); }

RecordedCall parsed(const OpDescriptor& op, std::string_view record) {
  const std::size_t end = record.find('\0');
  RecordedCall call{id_of(record), json::parse(record.substr(0, end)), {}};
  std::size_t at = end + 1;
  for (const TensorInfo& tensor : op.tensors) {
    const std::string name(tensor.name);
    if (!call.says["inputs"].contains(name)) continue;
    const json& stored = call.says["inputs"][name];
    program::StoredTensor read{
        call.id + "." + name, dtype_named(stored["dtype"].get<std::string>()), stored["shape"], {}};
    std::size_t bytes = size_of(read.dtype);
    for (const Index extent : read.shape) bytes *= static_cast<std::size_t>(extent);
    read.bytes = record.substr(at, bytes);
    at += bytes;
    call.reads.push_back(std::move(read));
  }
  return call;
}

/// A folder of cases.json, cases-NNNN.safetensors and, from the user, results*.safetensors.
struct Folder {
  fs::path path;
  json index;

  static Folder open(const std::string& path) {
    Folder folder{path, {}};
    const std::string file = (folder.path / "cases.json").string();
    try {
      folder.index = json::parse(files::read(file, "name a folder that `assay cases` wrote"));
    } catch (const json::exception& e) {
      throw InputError(file, fmt::format("is no JSON: {}", e.what()), "draw the cases anew with `assay cases`");
    }
    if (!folder.index.is_object() || folder.index.value("schema", "") != kSchema)
      throw InputError(file, fmt::format("does not say \"schema\": \"{}\"", kSchema),
                       "draw the cases anew with `assay cases`");
    return folder;
  }

  /// Adds calls that it does not have. Returns their number.
  std::size_t add(const OpDescriptor& op, const SharedLog& log) {
    std::set<std::string> known;
    for (const json& call : index["calls"]) known.insert(call["id"].get<std::string>());
    std::vector<program::StoredTensor> tensors;
    std::size_t bytes = 0, added = 0;
    const auto write = [&] {
      if (tensors.empty()) return;
      program::save(path / next_file(), tensors);
      index["files"].push_back(next_file());
      tensors.clear(), bytes = 0;
    };
    log.for_each([&](std::string_view record) {
      RecordedCall call = parsed(op, record);
      if (!known.insert(call.id).second) return;
      ++added;
      if (bytes > kFileBytes) write();
      json entry{{"id", call.id}, {"file", next_file()}};
      entry.update(call.says);
      index["calls"].push_back(std::move(entry));
      bytes += record.size();
      std::ranges::move(call.reads, std::back_inserter(tensors));
    });
    write();
    files::write(path / "cases.json", index.dump(1) + "\n");
    return added;
  }

 private:
  std::string next_file() const { return fmt::format("cases-{:04}.safetensors", index["files"].size() + 1); }
};

using Results = std::map<std::string, std::vector<std::string>>;  ///< of each id, the outputs' elements

/// Reads every results*.safetensors of the folder. Throws InputError for what does not fit the calls.
Results read_results(const OpDescriptor& op, const Folder& folder) {
  std::map<std::string, std::pair<fs::path, std::string>> stored;  // by name: file and its type and shape
  std::map<fs::path, program::Weights> opened;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("results") || !file.ends_with(".safetensors")) continue;
    const program::Weights& weights = opened.emplace(entry.path(), entry.path()).first->second;
    for (const auto& [name, tensor] : weights.entries())
      if (!stored.emplace(name, std::pair{entry.path(), tensor.dtype}).second)
        throw InputError(entry.path().string(), fmt::format("has {}, which another file of results has too", name),
                         "give each result once");
  }
  if (opened.empty())
    throw InputError(folder.path.string(), "holds no results*.safetensors",
                     "run the kernel on the calls of cases.json, and save each output as ID.NAME");
  Results results;
  std::set<std::string> expected;
  for (const json& call : folder.index["calls"]) {
    const auto id = call["id"].get<std::string>();
    std::vector<std::string> outputs;
    std::size_t missing = 0;
    for (const TensorInfo& tensor : op.tensors) {
      const std::string name(tensor.name);
      if (!call["outputs"].contains(name)) continue;
      const std::string full = id + "." + name;
      expected.insert(full);
      const auto found = stored.find(full);
      if (found == stored.end()) {
        ++missing;
        continue;
      }
      const program::Weights& weights = opened.at(found->second.first);
      const json& want = call["outputs"][name];
      std::string type = want["dtype"].get<std::string>();
      std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
      const program::Weights::Entry& has = weights.entry(full);
      if (has.dtype != type || json(has.shape) != want["shape"])
        throw InputError(fmt::format("{}: {}", found->second.first.string(), full),
                         fmt::format("is {} {} where cases.json asks for {} {}", has.dtype, json(has.shape).dump(),
                                     type, want["shape"].dump()),
                         "save outputs in the type and shape that cases.json gives");
      outputs.push_back(weights.bytes(full));
    }
    if (missing != 0 && !outputs.empty())
      throw InputError(folder.path.string(), fmt::format("call {} has some of its outputs, and not all", id),
                       "save every output of a call");
    if (missing == 0) results.emplace(id, std::move(outputs));
  }
  for (const auto& [name, from] : stored)
    if (!expected.contains(name))
      throw InputError(from.first.string(), fmt::format("has {}, which is no output of a call in cases.json", name),
                       "name each result ID.NAME, as cases.json has them");
  return results;
}

/// Writes recorded outputs to a call's tensors.
void play(const OpDescriptor& op, const std::vector<std::string>& outputs, const Call& call) {
  std::size_t output = 0;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    if (!writes(op.tensors[t]) || call.tensors[t].data == nullptr) continue;
    const char* from = outputs.at(output++).data();
    for_each_stretch(call.tensors[t], [&](std::byte* to, std::size_t bytes) {
      std::memcpy(to, from, bytes);
      from += bytes;
    });
  }
}

/// A kernel by its declared properties, which runs nothing yet.
struct Declared {
  std::string id;
  Kernel kernel;

  Declared(const OpDescriptor& op, const std::string& declare, std::string name) : id(std::move(name)) {
    plugin::Declaration declaration;
    plugin::declare(declaration, declare, "--declare");
    if (declaration.backend != Backend::cpu || !declaration.rejects.empty())
      throw InputError("--declare " + declare,
                       "says where a kernel runs, or what it rejects, and recorded ones run nowhere here",
                       "leave out backend and rejects");
    kernel = {.op = op.name,
              .id = id,
              .backend = Backend::cpu,
              .arithmetic = declaration.arithmetic,
              .storage = declaration.storage,
              .deterministic = declaration.deterministic,
              .batch_invariant = declaration.batch_invariant,
              .source = "cases.json",
              .summary = "results of a kernel that ran elsewhere"};
  }
  Declared(const Declared&) = delete;
  Declared& operator=(const Declared&) = delete;
};

falsify::CampaignOptions options_of(const json& index) {
  falsify::CampaignOptions options;
  options.cases = index.at("cases").get<int>();
  options.seed = parse_seed(index.at("seed").get<std::string>());
  return options;
}

struct CasesOptions : Output {
  std::string op, out, declare, seed = "1";
  int cases = falsify::kDefaultCases;
};

const Kernel& naive_kernel(const OpDescriptor& op) {
  for (const Kernel* k : kernels_of(op.name))
    if (k->backend == Backend::cpu && k->id.ends_with("/naive")) return *k;
  throw InputError(std::string(op.name), "has no naive kernel on the CPU to draw calls with", "name another operation");
}

int draw_cases(const CasesOptions& o) {
  const OpDescriptor& op = operation_named(o.op);
  const fs::path out(o.out);
  if (fs::exists(out / "cases.json"))
    throw InputError(o.out, "holds cases already", "name another folder, or remove that one");
  Folder folder{out,
                {{"schema", kSchema},
                 {"op", o.op},
                 {"declare", o.declare},
                 {"seed", o.seed},
                 {"cases", o.cases},
                 {"files", json::array()},
                 {"calls", json::array()}}};
  Declared drawn(op, o.declare, "recorded/" + o.op);
  const Kernel& naive = naive_kernel(op);
  SharedLog log;
  drawn.kernel.run = [&](const Call& call, Device& device) {
    log.append(record_of(op, call));
    // The kernel's own storage may be another than the naive kernel's.
    if (naive.storage == drawn.kernel.storage) naive.run(call, device);
  };
  falsify::CampaignOptions options = options_of(folder.index);
  options.shrink = false;
  falsify::run_campaign(op, drawn.kernel, options);
  const std::size_t calls = folder.add(op, log);
  std::uintmax_t bytes = 0;
  for (const json& file : folder.index["files"]) bytes += fs::file_size(out / file.get<std::string>());
  if (o.json)
    fmt::print("{}\n", json{{"schema", kSchema}, {"folder", o.out}, {"calls", calls}, {"bytes", bytes}}.dump(1));
  else
    fmt::print(
        "{} calls of {}, {:.1f} MB, in {}; save each output as ID.NAME in results-0001.safetensors there, then "
        "`assay check {}`\n",
        calls, o.op, static_cast<double>(bytes) / 1e6, o.out, o.out);
  return kNothingFalsified;
}

struct CheckOptions : Output {
  std::string folder, report;
  bool no_requests = false;
};

int check_results(const CheckOptions& o) {
  if (is_trace(o.folder)) return check_trace(o.folder, o.json);
  Folder folder = Folder::open(o.folder);
  const auto op_name = folder.index.at("op").get<std::string>();
  const OpDescriptor& op = operation_named(op_name);
  const Results results = read_results(op, folder);
  Declared declared(op, folder.index.at("declare").get<std::string>(), "recorded/" + op_name);
  SharedLog missing;
  declared.kernel.refuse = [&](const Call& call) -> std::optional<std::string> {
    const std::string record = record_of(op, call);
    if (results.contains(id_of(record))) return std::nullopt;
    missing.append(record);
    return "no results hold this call";
  };
  declared.kernel.run = [&](const Call& call, Device&) { play(op, results.at(id_of(record_of(op, call))), call); };
  if (!o.report.empty()) falsify::expect_writable(o.report);
  const auto begin = std::chrono::steady_clock::now();
  falsify::KernelResult result = falsify::run_campaign(op, declared.kernel, options_of(folder.index));
  for (falsify::ObligationResult& r : result.obligations)
    if (r.info->by == "determinism" && r.verdict != falsify::Verdict::falsified) {
      r.verdict = falsify::Verdict::not_applicable;
      r.reason = "each call was recorded once";
    }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  json report = falsify::make_report(
      {falsify::to_json(op, result)},
      {{"seed", folder.index["seed"]}, {"cases", folder.index["cases"]}, {"ops", {op_name}}, {"kernel", declared.id}},
      seconds.count());
  report["exit_code"] = exit_code(report);
  if (!o.report.empty()) falsify::write_report(report, o.report);
  const std::size_t asked = o.no_requests ? 0 : folder.add(op, missing);
  if (o.json) {
    report["requests"] = asked;
    fmt::print("{}\n", report.dump(1));
  } else {
    fmt::print("{}", falsify::table(report));
    if (asked != 0)
      fmt::print(
          "{} more calls in {}: relations, and smaller cases of what failed; add their results and check again\n",
          asked, o.folder);
  }
  announce(report);
  return report["exit_code"].get<int>();
}

}  // namespace
}  // namespace recorded_calls

Command add_cases(Parser& parser) {
  using namespace recorded_calls;
  auto o = std::make_shared<CasesOptions>();
  auto command = parser.command("cases", "Draw calls into files, for a kernel that cannot run here", *o);
  command.option("OP", o->op, "The operation").required();
  command.option("--out", o->out, "Folder for cases.json and cases-NNNN.safetensors").required();
  command.option("--declare", o->declare, "What the kernel promises, as in `assay falsify`");
  command.option("--cases", o->cases, "Cases for each obligation").with_default().range(1, 1'000'000);
  command.option("--seed", o->seed, "Seed of the campaign").with_default();
  return {command, [o] { return draw_cases(*o); }};
}

Command add_check(Parser& parser) {
  using namespace recorded_calls;
  auto o = std::make_shared<CheckOptions>();
  auto command = parser.command(
      "check",
      "Judge results that a kernel gave elsewhere: for the calls of `assay cases`, or a trace of a program (assay.trace)",
      *o);
  command.option("FOLDER", o->folder, "Folder with cases.json and results*.safetensors, or with trace.json").required();
  command.option("--report", o->report, "Write report.html, report.json, junit.xml and assay.sarif to this folder");
  command.flag("--no-requests", o->no_requests, "Add no calls to the folder");
  return {command, [o] { return check_results(*o); }};
}

}  // namespace assay::cli
