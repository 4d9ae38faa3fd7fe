// Replay files: writing and reading round-trip, and malformed files are refused with a place and a remedy.
#include "falsify/engine/case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"

namespace assay::falsify::case_test {
namespace {

using nlohmann::json;

Case sample() {
  Case c;
  c.dims = {1, 2, 1};
  c.strategy = Strategy::huge;
  c.layout = Layout::mixed;
  c.placement = Placement::page_start;
  c.seed = 0xffffffffffffffffu;
  c.prelude = {3, 4, 5};
  c.values = {{0x1.fffffep127f, -0.0f}, {1e-45f, 3.0f}, {}};
  return c;
}

/// Returns the reader's message on an extent in a replay file.
std::string said_of(std::string_view op_name, std::string_view dim, int extent) {
  const OpDescriptor& op = operation(op_name);
  Case c;
  for (const DimInfo& d : op.dims) c.dims.push_back(std::max<Index>(d.multiple, d.min));
  for (const ParamInfo& param : op.params) c.params.push_back(param.min);
  json file = to_json(op, c);
  file["dims"][std::string(dim)] = extent;
  try {
    case_from_json(op, file, "file");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(CaseJson, ExtentsAreWholeOrMultiples) {
  const std::string whole = said_of("matmul", "m", -1), multiple = said_of("rope", "d", 5);
  EXPECT_NE(whole.find("use an integer from"), std::string::npos) << whole;
  EXPECT_NE(multiple.find("use a multiple of"), std::string::npos) << multiple;
}

TEST(CaseJson, RoundTripKeepsEveryBit) {
  const OpDescriptor& op = operation("matmul");
  Case c = sample();
  c.values[0][1] = std::bit_cast<float>(0xffc12345u);
  const Case back = case_from_json(op, json::parse(to_json(op, c).dump()), "here");
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.values[0][1]), 0xffc12345u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.values[1][0]), std::bit_cast<std::uint32_t>(1e-45f));
  c.values = {};
  Case rest = back;
  rest.values = {};
  EXPECT_EQ(rest, c);
}

TEST(Case, IsDescribedWithAllThatDeterminesIt) {
  Case c = sample();
  c.dims = {2, 1, 3};
  EXPECT_EQ(
      describe(operation("matmul"), c),
      "m=2 k=1 n=3, explicit values, mixed, page_start, seed 18446744073709551615, after a call with m=3 k=4 n=5");
  c.prelude.clear();
  c.values.clear();
  c.seed = 5;
  EXPECT_EQ(describe(operation("matmul"), c), "m=2 k=1 n=3, huge, mixed, page_start, seed 5");
}

TEST(CaseJson, ValuesAreThoseOfInputs) {
  const json values = to_json(operation("matmul"), sample())["values"];
  EXPECT_EQ(values.size(), 2U);
  EXPECT_TRUE(values.contains("a") && values.contains("b")) << values;
}

TEST(CaseJson, AParameterIsANumber) {
  const OpDescriptor& op = operation("rmsnorm");
  Case c;
  c.dims = {3, 5};
  c.params = {0.5};
  json j = to_json(op, c);
  j["params"]["eps"] = "half";
  try {
    case_from_json(op, j, "here");
    FAIL() << "accepted: " << j.dump();
  } catch (const InputError& e) {
    EXPECT_EQ(e.where, "here.params.eps");
    EXPECT_NE(std::string(e.what()).find("\"half\" is not a number"), std::string::npos) << e.what();
  }
}

TEST(CaseJson, ParametersLayoutAndPreludeComeBack) {
  const OpDescriptor& op = operation("rmsnorm");
  Case c;
  c.dims = {3, 5};
  c.params = {0x1p-10};
  c.layout = Layout::padded;
  c.placement = Placement::page_end;
  c.seed = 77;
  c.prelude = {2, 7};
  EXPECT_EQ(case_from_json(op, json::parse(to_json(op, c).dump()), "here"), c);
}

TEST(CaseJson, MalformedDocumentsNameThePlaceAndARemedy) {
  const OpDescriptor& op = operation("matmul");
  const json good = to_json(op, sample());
  const auto broken = [&](auto change) {
    json j = good;
    change(j);
    return j;
  };
  const std::pair<const char*, json> documents[] = {
      {"here.dims", broken([](json& j) { j["dims"].erase("k"); })},
      {"here.dims.m", broken([](json& j) { j["dims"]["m"] = "three"; })},
      {"here.dims.m", broken([](json& j) { j["dims"]["m"] = -1; })},
      {"here.dims.n", broken([](json& j) { j["dims"]["n"] = 1e30; })},
      {"here", broken([](json& j) { j.erase("dims"); })},
      {"here.strategy", broken([](json& j) { j["strategy"] = "lucky"; })},
      {"here.strategy", broken([](json& j) { j["strategy"] = 4; })},
      {"here.layout", broken([](json& j) { j["layout"] = ""; })},
      {"here.placement", broken([](json& j) { j["placement"] = nullptr; })},
      {"here.seed", broken([](json& j) { j["seed"] = "-3"; })},
      {"here.seed", broken([](json& j) { j["seed"] = 1.5; })},
      {"here.prelude", broken([](json& j) { j["prelude"].erase("n"); })},
      {"here.values.a", broken([](json& j) { j["values"]["a"] = {1}; })},
      {"here.values.a", broken([](json& j) { j["values"]["a"][0] = "one"; })},
      {"here.values.b", broken([](json& j) { j["values"]["b"][0] = "nan:xyz"; })},
      {"here.values", broken([](json& j) { j["values"].erase("b"); })},
      {"here", json::array()},
      {"here", json("text")},
  };
  for (const auto& [place, document] : documents) {
    try {
      case_from_json(op, document, "here");
      ADD_FAILURE() << "accepted: " << document.dump();
    } catch (const InputError& e) {
      EXPECT_EQ(e.where, place) << e.what();
      EXPECT_FALSE(e.remedy.empty());
    }
  }
}

/// An operation of three dims, the last a multiple of the first, with two parameters and a tensor of a x b.
OpDescriptor of_steps() {
  static const DimInfo dims[] = {{"a", 0, 50, ""}, {"b", 2, 22, "", 4}, {"c", 1, 30, "", 1, 0}};
  static const ParamInfo params[] = {{"eps", 0, 2, 1, ""}, {"window", 0, 9, 4, "", true}};
  static const TensorInfo tensors[] = {[] {
    TensorInfo info;
    info.name = "x";
    info.shape = [](std::span<const Index> extents) { return Shape{extents[0], extents[1]}; };
    return info;
  }()};
  OpDescriptor op{};
  op.dims = dims;
  op.params = params;
  op.tensors = tensors;
  return op;
}

TEST(Case, ExtentsAreBroughtToTheNearestThatIsAllowedBelow) {
  const OpDescriptor op = of_steps();
  using Dims = std::vector<Index>;
  const std::pair<Dims, Dims> wanted[] = {
      {{5, 7, 13}, {5, 4, 10}},    {{5, 8, 15}, {5, 8, 15}},     {{-1, 0, 0}, {0, 4, 1}},
      {{0, 3, 7}, {0, 4, 7}},      {{51, 25, 60}, {50, 20, 50}}, {{7, 20, 3}, {7, 20, 7}},
      {{7, 22, 100}, {7, 20, 28}}, {{1, 4, 31}, {1, 4, 30}},     {{30, 4, 30}, {30, 4, 30}}};
  for (const auto& [from, to] : wanted) {
    Dims dims = from;
    make_valid(op, dims);
    EXPECT_EQ(dims, to) << testing::PrintToString(from);
    EXPECT_EQ(valid(op, from), from == to) << testing::PrintToString(from);
    EXPECT_TRUE(valid(op, to)) << testing::PrintToString(to);
  }
}

TEST(Case, ParametersAreDescribedBehindDims) {
  Case c;
  c.dims = {6, 4, 12};
  c.params = {0.5, 3};
  c.strategy = Strategy::graded;
  EXPECT_EQ(describe(of_steps(), c), "a=6 b=4 c=12 eps=0.5 window=3, graded, tight, sentinels, seed 0");
}

/// Returns a replay file of these dims.
json steps(const std::vector<Index>& dims) {
  Case c;
  c.dims = dims;
  c.params = {0.5, 3};
  return to_json(of_steps(), c);
}

std::vector<std::string> said(const json& file) {
  try {
    case_from_json(of_steps(), file, "file");
  } catch (const InputError& e) {
    return {e.where, e.problem, e.remedy};
  }
  return {};
}

TEST(CaseJson, ExtentsReachFromTheLeastToTheMostAllowed) {
  const std::vector<std::string> taken;
  for (const std::vector<Index>& dims :
       {std::vector<Index>{0, 4, 1}, {0, 4, 30}, {50, 20, 50}, {1, 4, 30}, {7, 8, 28}}) {
    const std::vector<std::string> parts = said(steps(dims));
    if (dims[2] <= 30) EXPECT_EQ(parts, taken) << testing::PrintToString(dims);
    else
      EXPECT_EQ(parts, (std::vector<std::string>{"file.dims.c", "50 is not an extent of this operation",
                                                 "use a multiple of 50 from 1 to 30"}));
  }
  using Parts = std::vector<std::string>;
  EXPECT_EQ(said(steps({-1, 4, 1})),
            (Parts{"file.dims.a", "-1 is not an extent of this operation", "use an integer from 0 to 50"}));
  EXPECT_EQ(said(steps({51, 4, 51})),
            (Parts{"file.dims.a", "51 is not an extent of this operation", "use an integer from 0 to 50"}));
  EXPECT_EQ(said(steps({1, 0, 1})),
            (Parts{"file.dims.b", "0 is not an extent of this operation", "use a multiple of 4 from 2 to 22"}));
  EXPECT_EQ(said(steps({1, 24, 1})),
            (Parts{"file.dims.b", "24 is not an extent of this operation", "use a multiple of 4 from 2 to 22"}));
  EXPECT_EQ(said(steps({1, 6, 1})),
            (Parts{"file.dims.b", "6 is not an extent of this operation", "use a multiple of 4 from 2 to 22"}));
  EXPECT_EQ(said(steps({1, 4, 0})),
            (Parts{"file.dims.c", "0 is not an extent of this operation", "use an integer from 1 to 30"}));
  EXPECT_EQ(said(steps({7, 4, 15})),
            (Parts{"file.dims.c", "15 is not an extent of this operation", "use a multiple of 7 from 1 to 30"}));
  json file = steps({7, 4, 14});
  file["prelude"] = {{"a", 2}, {"b", 4}, {"c", 3}};
  EXPECT_EQ(said(file),
            (Parts{"file.prelude.c", "3 is not an extent of this operation", "use a multiple of 2 from 1 to 30"}));
}

TEST(CaseJson, ASeedHasUpToTwentyDigits) {
  const OpDescriptor op = of_steps();
  json file = steps({1, 4, 1});
  const std::pair<json, std::uint64_t> taken[] = {{"18446744073709551615", 18446744073709551615U},
                                                  {"0", 0},
                                                  {7, 7},
                                                  {18446744073709551615U, 18446744073709551615U}};
  for (const auto& [seed, value] : taken) {
    file["seed"] = seed;
    EXPECT_EQ(case_from_json(op, file, "file").seed, value);
  }
  for (const json& seed : {json("018446744073709551615"), json(""), json(-1), json("1 "), json("x"), json(true)}) {
    file["seed"] = seed;
    EXPECT_EQ(said(file), (std::vector<std::string>{"file.seed", seed.dump() + " is not a seed",
                                                    "use a non-negative integer of 64 bits"}));
  }
}

TEST(CaseJson, NamesThatAreUnknownAreAnsweredWithThoseThatAre) {
  json file = steps({1, 4, 1});
  file["layout"] = "loose";
  EXPECT_EQ(said(file), (std::vector<std::string>{"file.layout", "has \"loose\", which names nothing known",
                                                  "use one of tight, padded, offset, mixed, pitched, own, far_rows"}));
  file = steps({1, 4, 1});
  file["placement"] = 1;
  EXPECT_EQ(said(file), (std::vector<std::string>{"file.placement", "has 1, which names nothing known",
                                                  "use one of sentinels, page_end, page_start"}));
  file = steps({1, 4, 1});
  file.erase("strategy");
  EXPECT_EQ(said(file), (std::vector<std::string>{"file", "the key 'strategy' is missing",
                                                  "replay files are written by `assay falsify`"}));
  file = steps({1, 4, 1});
  file["params"].erase("window");
  EXPECT_EQ(said(file), (std::vector<std::string>{"file.params", "the key 'window' is missing",
                                                  "replay files are written by `assay falsify`"}));
  for (int s = 0; s < kStrategies; ++s) {
    file = steps({1, 4, 1});
    file["strategy"] = name(static_cast<Strategy>(s));
    EXPECT_EQ(case_from_json(of_steps(), file, "file").strategy, static_cast<Strategy>(s));
  }
}

TEST(CaseJson, FloatsAreNumbersHexadecimalOrBitsOfANaN) {
  json file = steps({1, 4, 1});
  file["values"]["x"] = {0.5, "-0x1.8p+1", "nan:0xffc12345", "inf"};
  const std::vector<float> x = case_from_json(of_steps(), file, "file").values.at(0);
  ASSERT_EQ(x.size(), 4U);
  EXPECT_EQ(x[0], 0.5F);
  EXPECT_EQ(x[1], -3);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(x[2]), 0xffc12345U);
  EXPECT_EQ(x[3], INFINITY);
  for (const json& wrong :
       {json("nan:"), json("nan:0x7fc0000g"), json("nan:x"), json(""), json("1x"), json("one"), json(true), json()}) {
    file["values"]["x"][2] = wrong;
    EXPECT_EQ(said(file), (std::vector<std::string>{"file.values.x", wrong.dump() + " is not a float",
                                                    "use a number, a hexadecimal float or nan:0x7fc00001"}));
  }
  for (const std::size_t count : {3U, 5U}) {
    file["values"]["x"] = std::vector<int>(count, 1);
    EXPECT_EQ(said(file), (std::vector<std::string>{"file.values.x",
                                                    "holds " + std::to_string(count) + " values where the shape " +
                                                        to_string(Shape{1, 4}) + " needs 4",
                                                    "give every element, row by row"}));
  }
}

}  // namespace
}  // namespace assay::falsify::case_test
