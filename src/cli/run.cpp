// `assay run`: decodes with a model on a back end, and says where the time goes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "cli/values.hpp"
#include "core/errors.hpp"
#include "falsify/engine/random.hpp"
#include "falsify/program/check.hpp"
#include "program/model/configuration.hpp"
#include "program/model/decode.hpp"
#include "program/model/gguf.hpp"
#include "program/model/parameters.hpp"
#include "program/model/safetensors.hpp"
#include "program/operations.hpp"

namespace assay::cli {
namespace run_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using program::Decoder;
using program::Session;
using Clock = std::chrono::steady_clock;

struct Options : Output {
  std::string model, tokens = "1", backend = "cpu", weights, temperature = "0", seed = "1", kernel;
  int count = 16, capacity = 0, chunk = 0, layers = 0;
  bool profile = false, check = false, random = false;
  Index check_every = 0;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::vector<std::int32_t> parse_tokens(const std::string& text) {
  std::vector<std::int32_t> ids;
  for (const char *at = text.data(), *end = at + text.size(); at <= end;) {
    const char* const comma = std::find(at, end, ',');
    std::int32_t id = 0;
    const auto [last, error] = std::from_chars(at, comma, id);
    if (error != std::errc() || last != comma)
      throw InputError("--tokens " + text, fmt::format("'{}' is no token", std::string(at, comma)),
                       "give ids with commas between them, as in --tokens 1,15043");
    ids.push_back(id);
    at = comma + 1;
  }
  return ids;
}

program::WeightFormat parse_format(const std::string& text) {
  using enum program::WeightFormat;
  for (const program::WeightFormat format : {f32, f16, bf16, q4_k, nf4})
    if (text == program::name(format)) return format;
  throw InputError("--weights " + text, "is no format of weights", "use f32, f16, bf16, q4_k or nf4");
}

double parse_temperature(const std::string& text) {
  double value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || last != text.data() + text.size() || !(value >= 0 && std::isfinite(value)))
    throw InputError("--temperature " + text, "is no temperature", "use 0, which is greedy, or more");
  return value;
}

/// Returns the largest, or NaN if there is one. In lanes, as a compiler vectorizes it: a vocabulary has 100,000 words.
float largest(std::span<const float> logits) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> most;
  std::array<bool, kLanes> is_nan{};
  most.fill(-INFINITY);
  const auto take = [&](std::size_t lane, float x) {
    most[lane] = x > most[lane] ? x : most[lane];
    is_nan[lane] |= x != x;
  };
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, logits[i + lane]);
  for (; i < logits.size(); ++i) take(0, logits[i]);
  return std::ranges::find(is_nan, true) != is_nan.end() ? NAN : std::ranges::max(most);
}

/// The most likely token, the first of several; or one by its probability at a temperature.
std::int32_t choose(std::span<const float> logits, double temperature, falsify::Random& random) {
  const float most = largest(logits);
  if (!std::isfinite(most))
    throw InputError("logits", fmt::format("one is {}", most), "check the model's weights: their products overflow");
  const auto greedy = std::ranges::find(logits, most);
  if (temperature <= 0) return static_cast<std::int32_t>(greedy - logits.begin());
  std::vector<double> sums;
  double sum = 0;
  for (const float logit : logits) sums.push_back(sum += std::exp((logit - *greedy) / temperature));
  const auto at = std::ranges::upper_bound(sums, random.uniform() * sum);
  return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(at - sums.begin(), std::ssize(sums) - 1));
}

/// Bytes of a step's tensors, caches by their whole capacity. A table of embeddings, of which it reads a row, is left out.
double bytes_of(const Session& session, std::size_t s) {
  const program::Program& p = session.program();
  const program::Step& step = p.steps[s];
  double bytes = 0;
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const auto own = static_cast<double>(p[step.tensors[t]].shape.size()) *
                     static_cast<double>(size_of(p.storage_of(step.tensors[t]).dtype));
    const bool table = step.op->name == "embedding" && step.op->tensors[t].name == "table";
    bytes += table ? 0 : own;
  }
  return bytes;
}

/// Bytes a second that the device copies, of a copy too large for its caches.
double copy_bandwidth(Device& device) {
  constexpr Index kRows = 8192, kColumns = 4096;
  program::Builder b;
  const program::Value x = b.state("x", {kRows, kColumns}), y = scale(b, x, 1);
  b.output(y);
  Session copy(b.take(), device);
  double best = INFINITY;
  for (int run = 0; run < 5; ++run) {
    copy.run();
    best = std::min(best, copy.seconds());
  }
  return 2.0 * sizeof(float) * kRows * kColumns / best;
}

json profile(Session& session) {
  struct Row {
    double seconds = 0, bytes = 0;
    int steps = 0;
  };
  std::map<std::string, Row> rows;
  const std::vector<double> seconds = session.step_seconds();
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    std::string label = session.program().steps[s].label;
    if (const std::string_view layers = "model.layers."; label.starts_with(layers))
      label.replace(layers.size(), label.find('.', layers.size()) - layers.size(), "N");
    Row& row = rows[fmt::format("{} ({})", label, session.kernel(s).id)];
    row.seconds += seconds[s], row.bytes += bytes_of(session, s), ++row.steps;
  }
  const double bandwidth = copy_bandwidth(session.device());
  std::vector<std::pair<std::string, Row>> slowest(rows.begin(), rows.end());
  std::ranges::sort(slowest, std::greater<>(), [](const auto& row) { return row.second.seconds; });
  json passes = json::array();
  for (const auto& [label, row] : slowest)
    passes.push_back({{"pass", label},
                      {"steps", row.steps},
                      {"seconds", row.seconds},
                      {"bytes", row.bytes},
                      {"share_of_bandwidth", row.bytes / row.seconds / bandwidth}});
  return {{"copy_bandwidth", bandwidth},
          {"seconds_step_by_step", std::accumulate(seconds.begin(), seconds.end(), 0.0)},
          {"seconds_in_one_submission", session.seconds()},
          {"passes", std::move(passes)}};
}

/// Bytes of a session's storages, by kind.
json memory(const Session& session) {
  std::map<std::string, std::size_t> bytes{{"weights", 0}, {"caches", 0}, {"others", 0}};
  std::vector<bool> counted(session.plan().slot_bytes.size());
  for (std::size_t i = 0; i < session.program().storages.size(); ++i) {
    const auto slot = static_cast<std::size_t>(session.plan().slot_of[i]);
    if (counted[slot]) continue;
    counted[slot] = true;
    const program::Kind kind = session.program().storages[i].kind;
    bytes[kind == program::Kind::parameter ? "weights"
          : kind == program::Kind::state   ? "caches"
                                           : "others"] += session.plan().slot_bytes[slot];
  }
  return bytes;
}

void print(const json& j) {
  const auto seconds = [&](const char* key) { return j[key].get<double>(); };
  std::vector<std::int32_t> ids = j["tokens"];
  fmt::print("tokens   {}\n", fmt::join(ids, ","));
  fmt::print("prompt   {} tokens in {:.3f} s\n", j["prompt"].dump(), seconds("prompt_seconds"));
  if (const auto made = static_cast<double>(ids.size()); seconds("decode_seconds") > 0)
    fmt::print("decode   {:.1f} tokens a second\n", (made - 1) / seconds("decode_seconds"));
  for (const auto& [kind, bytes] : j["memory"].items())
    fmt::print("{:<8} {:.1f} MB\n", kind, bytes.get<double>() / 1e6);
  if (j.contains("checked"))
    fmt::print("checked  {} steps, {} elements: {}\n", j["checked"]["steps"].dump(), j["checked"]["elements"].dump(),
               j["checked"].value("fault", "every one within its bound"));
  if (!j.contains("profile")) return;
  const json& p = j["profile"];
  fmt::print("\na copy moves {:.1f} GB/s; one token takes {:.3f} ms in one submission, {:.3f} ms step by step\n",
             p["copy_bandwidth"].get<double>() / 1e9, 1e3 * p["seconds_in_one_submission"].get<double>(),
             1e3 * p["seconds_step_by_step"].get<double>());
  fmt::print("{:>9} {:>7} {:>9} {:>6}  pass\n", "ms", "steps", "MB", "share");
  for (const json& pass : p["passes"])
    fmt::print("{:>9.4f} {:>7} {:>9.2f} {:>6.2f}  {}\n", 1e3 * pass["seconds"].get<double>(), pass["steps"].get<int>(),
               pass["bytes"].get<double>() / 1e6, pass["share_of_bandwidth"].get<double>(),
               pass["pass"].get<std::string>());
}

int run(const Options& o) {
  program::TransformerConfig config = program::read_configuration(o.model);
  config.trains = false;
  if (!o.weights.empty()) config.weights = parse_format(o.weights);
  if (o.layers > 0) config.layers = o.layers;
  const std::vector<std::int32_t> prompt = parse_tokens(o.tokens);
  const double temperature = parse_temperature(o.temperature);
  const std::uint64_t seed = parse_seed(o.seed);
  Device& device = assay::device(backend_from(o.backend));
  const Index needed = std::ssize(prompt) + o.count;
  KernelOfSteps kernel(o.kernel, device, "give its --backend");
  program::SessionOptions options;
  options.choose = std::ref(kernel);
  falsify::CheckedRun checked;
  options.check = falsify::steps_within_bounds(checked, seed), options.check_every = o.check_every;
  std::optional<Decoder> opened;
  try {
    opened.emplace(config, program::DecoderOptions{.capacity = o.capacity > 0 ? o.capacity : needed, .chunk = o.chunk},
                   device, options);
  } catch (const falsify::WrongStep& wrong) {
    if (o.json) fmt::print("{}\n", json{{"schema", "assay-run/1"}, {"checked", {{"fault", wrong.what()}}}}.dump(1));
    else fmt::print("checked  {}\n", wrong.what());
    return kFalsified;
  }
  Decoder& decoder = *opened;
  kernel.expect_taken(std::array{&std::as_const(decoder.session()), decoder.chunk_session()}, "model",
                      "`assay run --profile` lists its steps");
  Session& session = decoder.session();
  const fs::path model = o.model;
  const bool whole = fs::is_directory(model) || program::is_gguf(model);
  if (o.random) {
    initialize(session, seed);
  } else if (const auto unused = load(session, program::Weights(whole ? model : model.parent_path()),
                                      o.layers > 0 ? program::Layers::some : program::Layers::all);
             !unused.empty()) {
    fmt::print(stderr, "assay: {}: no parameter of the model takes {}\n", o.model, fmt::join(unused, ", "));
  }
  falsify::Random random(seed);
  json j{{"schema", "assay-run/1"},
         {"device", device.description()},
         {"prompt", prompt.size()},
         {"prompt_seconds", 0.0},
         {"decode_seconds", 0.0}};
  std::vector<std::int32_t> made;
  bool right = true;
  try {
    auto begin = Clock::now();
    made.push_back(choose(decoder.prompt(0, prompt), temperature, random));
    j["prompt_seconds"] = seconds_since(begin);
    begin = Clock::now();
    while (std::ssize(made) < o.count)
      made.push_back(choose(decoder.step(std::span(made).last(1)), temperature, random));
    j["decode_seconds"] = seconds_since(begin);
    if (o.check) session.run(program::Check::steps);
  } catch (const falsify::WrongStep& wrong) {
    right = false;
    j["checked"]["fault"] = wrong.what();
  }
  j["tokens"] = made;
  j["memory"] = memory(session);
  if (o.check || o.check_every > 0)
    j["checked"].update({{"steps", checked.steps}, {"elements", checked.elements}, {"worst", checked.worst}});
  if (o.profile) j["profile"] = profile(session);
  if (o.json) fmt::print("{}\n", j.dump(1));
  else print(j);
  return right ? kNothingFalsified : kFalsified;
}

}  // namespace
}  // namespace run_command

Command add_run(Parser& parser) {
  using namespace run_command;
  auto o = std::make_shared<Options>();
  auto command =
      parser.command("run", "Decodes with a model on a back end: tokens, time of every pass, steps checked", *o);
  command
      .option("MODEL", o->model, "Folder with config.json and safetensors, a GGUF file, or a config.json with --random")
      .required();
  command.option("--tokens", o->tokens, "Prompt: ids with commas between them").with_default();
  command.option("--count", o->count, "Tokens to make").with_default().range(1, 1 << 20);
  command.option("--backend", o->backend, "cpu, cuda-host, vulkan or cuda").with_default();
  command.option("--kernel", o->kernel, "A kernel, or a mutant, for every step of its operation");
  command.option("--weights", o->weights,
                 "Format of the projections' weights: f32, q4_k or nf4, or f16 or bf16 of the whole model with its "
                 "caches; f32, or q4_k of a GGUF file that has it");
  command.option("--capacity", o->capacity, "Tokens that the caches hold; as many as are needed").range(1, 1 << 20);
  command.option("--chunk", o->chunk, "Tokens of the prompt that are taken at once; one by one").range(1, 1 << 16);
  command.option("--layers", o->layers, "Only so many layers").range(1, 1 << 16);
  command.option("--temperature", o->temperature, "0 takes the most likely token").with_default();
  command.option("--seed", o->seed, "Seed of the sampling, and of --random").with_default();
  command.flag("--random", o->random, "Weights as they begin, by the seed, in place of a model's");
  command.flag("--profile", o->profile, "Device time of every pass, bytes, and their share of a copy's bandwidth");
  command.flag("--check", o->check, "Holds every step of one more token to its own bound");
  command
      .option("--check-every", o->check_every,
              "Holds every step of every N-th token to its own bound; stops at the first wrong one")
      .range(1, 1 << 20);
  return {command, [o] { return run(*o); }};
}

}  // namespace assay::cli
