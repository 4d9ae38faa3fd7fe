// What the engine computes for fixed seeds, beside what it computed when it was last recorded: cases drawn, inputs, their places,
// expected values, bounds, what certificates say of results that are off, and the reports of campaigns against a right and a wrong
// kernel. The search of tests/numbers finds bounds that are too small; one that has become too large is seen here.
//
//   ASSAY_RECORD=1 test_recorded     records what is computed now: look at the difference, it is the change's effect
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/gradients.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

constexpr double kSame = 1e-8;       // one unit of the ninth digit, which is recorded last; mathematics libraries differ in the seventeenth
constexpr Index kElements = 6000;    // of all tensors of a case
constexpr std::size_t kLongest = 16; // lists of numbers that are longer are summed up

const Arithmetic kArithmetics[] = {
    {},
    {.inputs = Format::tf32, .block = 4},
    {.functions = FunctionLibrary::highway, .online_tile = 16},
    {.inputs = Format::f16, .block = 8},
    {.flushes_subnormals = true, .functions = FunctionLibrary::cuda},
    {.inputs = Format::tf32x3, .block = 4},
    {.fuses_products = false, .functions = FunctionLibrary::vulkan, .online_tile = 1},
    {.inputs = Format::bf16, .input_rounding = Rounding::toward_zero, .accumulation = Rounding::toward_zero},
    {.accumulator = Format::f16, .functions = FunctionLibrary::cuda_exp2},
};

json number(double x) {
  if (!std::isfinite(x)) return fmt::format("{}", x);
  return std::strtod(fmt::format("{:.9g}", x).c_str(), nullptr);
}

/// Sums that every element has a part in, small ones too; weights tell places apart.
json summary(const std::vector<double>& values) {
  double sum = 0, logs = 0;
  Index zeros = 0, infinite = 0, nan = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], weight = 1 + static_cast<double>(i % 13) / 16;
    nan += std::isnan(x), infinite += std::isinf(x), zeros += x == 0;
    if (!std::isfinite(x) || x == 0) continue;
    sum += x > 0 ? weight : -weight;
    logs += weight * std::log2(std::fabs(x));
  }
  return {values.size(), zeros, infinite, nan, number(sum), number(logs)};
}

/// Of an error map, whose rows are texts.
json picture(const json& cells) {
  std::vector<double> all;
  for (const json& row : cells) {
    std::istringstream words(row.get<std::string>());
    for (std::string word; words >> word;) all.push_back(std::strtod(word.c_str(), nullptr));
  }
  return summary(all);
}

constexpr std::string_view kLeftOut[] = {"seconds", "source", "device", "claim", "if_fails", "says", "expr", "line", "shrink"};

/// Without times and what the contract says, and long lists summed up.
json condensed(const json& j) {
  if (j.is_object()) {
    json result = json::object();
    for (const auto& [key, value] : j.items()) {
      if (key == "cells") result[key] = picture(value);
      else if (std::ranges::find(kLeftOut, key) == std::end(kLeftOut)) result[key] = condensed(value);
    }
    return result;
  }
  if (j.is_number_float()) return number(j.get<double>());
  if (!j.is_array()) return j;
  if (j.size() > kLongest && std::ranges::all_of(j, [](const json& x) { return x.is_number(); })) return summary(j.get<std::vector<double>>());
  json result = json::array();
  for (const json& x : j) result.push_back(condensed(x));
  return result;
}

bool same(double x, double y) { return std::fabs(x - y) <= kSame * std::max(std::fabs(x), std::fabs(y)); }

/// Where two documents differ first; empty where they are the same.
std::string difference(const json& now, const json& before, const std::string& where = "") {
  if (now.is_number() && before.is_number()) {
    if (same(now.get<double>(), before.get<double>())) return "";
  } else if (now.is_array() && before.is_array() && now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i)
      if (std::string found = difference(now[i], before[i], fmt::format("{}/{}", where, i)); !found.empty()) return found;
    return "";
  } else if (now.is_object() && before.is_object()) {
    for (const auto& [key, value] : now.items())
      if (!before.contains(key)) return fmt::format("{}/{} is new", where, key);
      else if (std::string found = difference(value, before[key], where + "/" + key); !found.empty()) return found;
    for (const auto& [key, value] : before.items())
      if (!now.contains(key)) return fmt::format("{}/{} is gone", where, key);
    return "";
  } else if (now == before) {
    return "";
  }
  return fmt::format("{} is {}, recorded is {}", where, now.dump(), before.dump());
}

std::filesystem::path file_of(std::string_view name) { return std::filesystem::path(ASSAY_RECORDED) / fmt::format("{}.json", name); }

/// What f returns in a process of its own: certificates draw their signs from a count of calls, which begins there.
template <class F>
json apart(const F& f) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = f().dump();
    } catch (const std::exception& e) {
      text = json(e.what()).dump();
    }
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t written = ::write(ends[1], text.data() + at, text.size() - at);
      if (written <= 0) break;
      at += static_cast<std::size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? json::parse(text) : json("the process ended");
}

/// A file, one part of it at a time.
void expect_recorded(const std::filesystem::path& file, const std::string& part, const json& now) {
  ASSERT_TRUE(now.is_array()) << now;
  json all = json::object();
  if (std::ifstream in(file); in) all = json::parse(in);
  if (std::getenv("ASSAY_RECORD") != nullptr) {
    all[part] = now;
    std::ofstream out(file);
    const char* before_part = "{\n";
    for (const auto& [name, entries] : all.items()) {  // an entry a line
      out << std::exchange(before_part, ",\n") << json(name) << ": [";
      const char* before_entry = "\n";
      for (const json& entry : entries) out << std::exchange(before_entry, ",\n") << entry;
      out << "\n]";
    }
    out << "\n}\n";
    return;
  }
  ASSERT_TRUE(all.contains(part)) << file << " lacks this part: run this test with ASSAY_RECORD=1";
  const std::string found = difference(now, all[part]);
  EXPECT_EQ(found, "") << "if that is meant, run this test with ASSAY_RECORD=1 and commit what has changed";
}

template <class F>
void expect_recorded(const OpDescriptor& op, const std::string& part, const F& compute) {
  expect_recorded(file_of(op.name), part, apart([&] { return compute(op); }));
}

struct Drawn {
  const Obligation* obligation;
  Case the_case;
  Arithmetic arithmetic;
  DType storage;
  Problem problem;
};

/// The first case of each obligation that has few elements, each under another arithmetic.
std::vector<Drawn> drawn(const OpDescriptor& op) {
  constexpr DType kStorages[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Drawn> all;
  const bool open = std::ranges::any_of(op.tensors, &TensorInfo::storage);
  for (const Obligation& o : obligations(op.name)) {
    const std::size_t i = all.size();
    Arithmetic arithmetic = kArithmetics[i % std::size(kArithmetics)];
    if (op.name.starts_with("rope") && arithmetic.functions != FunctionLibrary::c_library)
      arithmetic.functions = FunctionLibrary::octant;  // not all others promise a sine
    const DType storage = open ? kStorages[i % 3] : DType::f32;
    for (std::uint64_t n = i;; ++n) {
      Case c = draw(op, *o.info, 11, n, 48).value();
      Index elements = 0;
      for (const TensorInfo& t : op.tensors) elements += t.shape(c.dims).size();
      if (elements == 0 || elements > kElements) continue;
      all.push_back({&o, c, arithmetic, storage, make_problem(op, c, arithmetic, storage)});
      break;
    }
  }
  return all;
}

/// f(element, dense index) for each of a tensor's elements.
template <class T, class F>
void each(const Tensor& t, F f) {
  const View<T> view = t.as<T>();
  for (Index i = 0; i < t.shape.size(); ++i) {
    Index offset = 0, rest = i;
    for (int axis = t.shape.rank() - 1; axis >= 0; --axis) offset += rest % t.shape[axis] * t.strides[axis], rest /= t.shape[axis];
    f(view.data()[offset], static_cast<std::size_t>(i));
  }
}

std::vector<float> read(const Tensor& t) {
  std::vector<float> values(static_cast<std::size_t>(t.shape.size()));
  switch (t.dtype) {
    case DType::f32: each<float>(t, [&](float x, std::size_t i) { values[i] = x; }); break;
    case DType::f16: each<Half>(t, [&](Half x, std::size_t i) { values[i] = widen(x); }); break;
    case DType::bf16: each<BFloat16>(t, [&](BFloat16 x, std::size_t i) { values[i] = widen(x); }); break;
    case DType::i32: each<std::int32_t>(t, [&](std::int32_t x, std::size_t i) { values[i] = static_cast<float>(x); }); break;
    case DType::u8: each<std::uint8_t>(t, [&](std::uint8_t x, std::size_t i) { values[i] = x; }); break;
  }
  return values;
}

void write(const Tensor& t, const std::vector<float>& values) {
  switch (t.dtype) {
    case DType::f32: each<float>(t, [&](float& x, std::size_t i) { x = values[i]; }); break;
    case DType::f16: each<Half>(t, [&](Half& x, std::size_t i) { x = to_half(values[i]); }); break;
    case DType::bf16: each<BFloat16>(t, [&](BFloat16& x, std::size_t i) { x = to_bfloat16(values[i]); }); break;
    case DType::i32: each<std::int32_t>(t, [&](std::int32_t& x, std::size_t i) { x = static_cast<std::int32_t>(values[i]); }); break;
    case DType::u8: each<std::uint8_t>(t, [&](std::uint8_t& x, std::size_t i) { x = static_cast<std::uint8_t>(values[i]); }); break;
  }
}

template <class T>
std::vector<std::vector<float>> by_reference(const OpDescriptor& op, const Call& call, ReferenceFn<T> reference) {
  std::vector<std::vector<T>> held;
  std::vector<View<T>> views;
  for (const Tensor& t : call.tensors) {
    const std::vector<float> values = read(t);
    held.emplace_back(values.begin(), values.end());
    views.emplace_back(held.back().data(), t.shape);
  }
  reference(views, call.params);
  std::vector<std::vector<float>> outputs;
  for (const int t : outputs_of(op)) outputs.emplace_back(held[static_cast<std::size_t>(t)].begin(), held[static_cast<std::size_t>(t)].end());
  return outputs;
}

/// The floats nearest to the reference in double; where roundings are pinned, the reference in float. `off`, where there is one, then
/// moves the middle element of an output.
struct Off {
  std::size_t output = 0;
  double relative = 0;  ///< to the largest element
};

void nearest(const OpDescriptor& op, const Call& call, const Off* off) {
  const bool pinned = op.copies || op.name == "adamw_step";  // whose contract says what is rounded to float32
  auto outputs = pinned ? by_reference<float>(op, call, oracle(op.name).mirror) : by_reference<double>(op, call, oracle(op.name).exact);
  if (off != nullptr) {
    std::vector<float>& y = outputs[off->output];
    float largest = 0;
    for (const float x : y)
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
    if (!y.empty()) {
      float& x = y[y.size() / 2];
      const bool real = is_floating(call.tensors[static_cast<std::size_t>(outputs_of(op)[off->output])].dtype);
      x = real ? x + static_cast<float>(off->relative * std::max<double>(largest, 1e-3)) : x > 0 ? x - 1 : x + 1;
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) write(call.tensors[static_cast<std::size_t>(outputs_of(op)[o])], outputs[o]);
}

Kernel reference_kernel(const OpDescriptor& op, std::string_view id, const Off* off) {
  Kernel k;
  k.op = op.name;
  k.id = id;
  k.run = [&op, off](const Call& call, Device&) { nearest(op, call, off); };
  return k;
}

class Recorded : public testing::TestWithParam<const OpDescriptor*> {};

json draws(const OpDescriptor& op) {
  Arena arena(std::size_t{1} << 24);
  json all = json::array();
  for (const Drawn& d : drawn(op)) {
    Kernel kernel = reference_kernel(op, "recorded", nullptr);
    kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
    Worker worker(std::chrono::seconds(60), std::size_t{1} << 20);
    json inputs = json::array(), places = json::array(), outputs = json::array();
    for (const auto& values : d.problem.values) inputs.push_back(summary({values.begin(), values.end()}));
    const Stage stage(arena, 0, d.problem, d.the_case, Poison::nan);
    for (const Placed& p : stage.tensors()) {
      json strides = json::array();
      for (int axis = 0; axis < p.strides.rank(); ++axis) strides.push_back(p.strides[axis]);
      places.push_back({name(p.dtype), p.region, p.region_bytes, p.data, p.fence_before, p.fence_after, strides});
    }
    for (const auto& y : Trial(op, kernel, d.the_case, worker).oracle(d.problem)) {
      std::vector<double> value, error, statistical, overflows;
      for (const Bounded& x : y) {
        value.push_back(x.value), error.push_back(x.error), statistical.push_back(x.statistical), overflows.push_back(x.may_overflow);
      }
      outputs.push_back({summary(value), summary(error), summary(statistical), summary(overflows)});
    }
    all.push_back({{"of", d.obligation->info->id}, {"case", describe(op, d.the_case)}, {"arithmetic", to_string(d.arithmetic)}, {"storage", name(d.storage)},
                   {"inputs", inputs}, {"places", places}, {"outputs", outputs}});
  }
  return all;
}

TEST_P(Recorded, Draws) {
  expect_recorded(*GetParam(), "draws", [](const OpDescriptor& op) { return draws(op); });
}

/// Each output is moved by more and more, until the postconditions refuse it.
json refusals(const OpDescriptor& op) {
  contract::set_level(contract::Level::full);
  json all = json::array();
  for (const Drawn& d : drawn(op)) {
    for (std::size_t o = 0; o < outputs_of(op).size(); ++o) {
      json refused = nullptr;
      for (int k = -31; k < 12 && refused.is_null(); ++k) {
        const Off off{o, k < -30 ? 0 : std::ldexp(1.0, k)};
        Kernel kernel = reference_kernel(op, "recorded", &off);
        kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
        try {
          run_here(kernel, d.problem);
        } catch (const ContractViolation& violation) {
          refused = {k, violation.what()};
        }
      }
      all.push_back({d.obligation->info->id, o, refused});
    }
  }
  return all;
}

TEST_P(Recorded, Refusals) {
  expect_recorded(*GetParam(), "refusals", [](const OpDescriptor& op) { return refusals(op); });
}

json campaign(const OpDescriptor& op, const Kernel& kernel, int cases) {
  CampaignOptions options;
  options.cases = cases;
  options.seed = 7;
  options.largest = 40;
  options.limit = std::chrono::minutes(5);
  options.shrink = false;  // it ends by a time
  json result = to_json(op, run_campaign(op, kernel, options)), all = json::array();
  for (const json& obligation : result["obligations"]) all.push_back(condensed(obligation));
  result.erase("obligations");
  all.push_back(condensed(result));
  return all;
}

TEST_P(Recorded, RightKernel) {
  expect_recorded(*GetParam(), "right", [](const OpDescriptor& op) { return campaign(op, reference_kernel(op, "right", nullptr), 2); });
}

TEST_P(Recorded, WrongKernel) {
  expect_recorded(*GetParam(), "wrong", [](const OpDescriptor& op) {
    const Off off{0, 0x1p-7};
    return campaign(op, reference_kernel(op, "wrong", &off), 1);
  });
}

/// Of many cases of each obligation and of what they shrink to, one number.
json cases(const OpDescriptor& op) {
  json all = json::array();
  for (const Obligation& o : obligations(op.name)) {
    std::uint64_t drawn = 0, shrunk = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
      const Case c = draw(op, *o.info, 5, n).value();
      drawn = derive(drawn, to_json(op, c).dump() + describe(op, c));
      for (const Case& s : simpler(op, draw_spec(o.info->by), c)) shrunk = derive(shrunk, to_json(op, s).dump());
    }
    all.push_back({o.info->id, fmt::format("{:016x}", drawn), fmt::format("{:016x}", shrunk)});
  }
  return all;
}

TEST_P(Recorded, Cases) { expect_recorded(*GetParam(), "cases", &cases); }

INSTANTIATE_TEST_SUITE_P(Of, Recorded, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

json lines(const std::string& text) {
  json all = json::array();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// A run over a right kernel, a wrong one, one that refuses and one that finds its device missing.
json mixed_report() {
  const OpDescriptor& op = operation("rmsnorm");
  const Off off{0, 0x1p-7};
  Kernel right = reference_kernel(op, "rmsnorm/cpu/right", nullptr), wrong = reference_kernel(op, "rmsnorm/cpu/wrong", &off), refusing = right, absent = right;
  right.source = "tests/recorded/right.cpp", wrong.source = "/elsewhere/a b.cpp";
  refusing.id = "rmsnorm/cpu/refusing", refusing.refuse = [](const Call&) { return std::optional<std::string>("it takes nothing"); };
  absent.id = "rmsnorm/cuda/absent", absent.run = [](const Call&, Device&) { throw Unavailable("cuda", "there is none"); };
  CampaignOptions options;
  options.shrink = false;
  options.seed = 3;
  std::vector<json> kernels;
  for (const Kernel* k : {&right, &wrong, &refusing, &absent}) {
    options.cases = k == &wrong ? 3 : 2;
    json entry = to_json(op, run_campaign(op, *k, options));
    entry["seconds"] = 12.5, entry["device"] = "a device";
    for (json& o : entry["obligations"]) o["seconds"] = 0.25;
    kernels.push_back(std::move(entry));
  }
  // As after a run of hours.
  kernels[0]["obligations"][0]["elements"] = 12'345'678'901;
  return make_report(kernels, {{"seed", "3"}, {"cases", 2}}, 3725);
}

TEST(RecordedReports, Texts) {
  const json texts = apart([] {
    json report = mixed_report();
    report["version"] = "0";
    for (json& k : report["kernels"])
      for (json& o : k["obligations"])
        if (o.contains("counterexample")) o["counterexample"]["shrink"] = {{"tried", 0}, {"seconds", 0.0}, {"complete", true}};
    json all = json::array({lines(table(report)), lines(junit_xml(report)), json::parse(sarif(report)), lines(annotations(report)), lines(step_summary(report))});
    return all;
  });
  ASSERT_TRUE(texts.is_array()) << texts;
  const char* const parts[] = {"table", "junit", "sarif", "annotations", "summary"};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    json part = texts[i].is_array() ? texts[i] : json::array({texts[i]});
    if (std::string_view(parts[i]) == "sarif") part[0]["runs"][0]["tool"]["driver"].erase("version");
    expect_recorded(file_of("reports"), parts[i], part);
  }
}

}  // namespace
}  // namespace assay::falsify
