// Replay files: what is written is read back, and what is malformed is refused with a place and a remedy.
#include "falsify/engine/case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"

namespace assay::falsify {
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

/// What a reader of replay files says of an extent.
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
  c.values = {}; Case rest = back; rest.values = {};
  EXPECT_EQ(rest, c);
}

TEST(Case, IsDescribedWithAllThatDeterminesIt) {
  Case c = sample();
  c.dims = {2, 1, 3};
  EXPECT_EQ(describe(operation("matmul"), c),
            "m=2 k=1 n=3, explicit values, mixed, page_start, seed 18446744073709551615, after a call with dims 3, 4, 5");
  c.prelude.clear();
  c.values.clear();
  c.seed = 5;
  EXPECT_EQ(describe(operation("matmul"), c), "m=2 k=1 n=3, huge, mixed, page_start, seed 5");
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
  const auto broken = [&](auto change) { json j = good; change(j); return j; };
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

}  // namespace
}  // namespace assay::falsify
