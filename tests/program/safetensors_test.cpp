// Weights in safetensors files: what the reference implementation wrote, what is written here, what the format forbids.
#include "program/model/safetensors.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "core/half.hpp"
#include "blocks.hpp"

namespace assay::program::safetensors_test {
namespace {

namespace fs = std::filesystem;

/// A folder of this test's own.
class WeightFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, std::string_view header, std::string_view data) const {
    const std::uint64_t length = header.size();
    std::string text(sizeof length, '\0');
    std::memcpy(text.data(), &length, sizeof length);
    files::write(folder_ / name, text.append(header).append(data));
    return folder_ / name;
  }
  fs::path folder_ = fs::temp_directory_path() /
                     (std::string("assay-") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::string error_of(const fs::path& path) {
  try {
    Weights weights(path);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float x : values) all.push_back(std::bit_cast<std::uint32_t>(x));
  return all;
}

TEST_F(WeightFiles, OfTheReferenceImplementationAreRead) {
  const Weights weights(ASSAY_GOLDEN "/weights.safetensors");
  EXPECT_EQ(weights.entries().size(), 6u);
  EXPECT_EQ(weights.entry("model.norm.weight").shape, (std::vector<Index>{2, 3}));
  EXPECT_EQ(bits(weights.read("model.norm.weight")),
            (std::vector<std::uint32_t>{0x3F800000, 0xC0490FDB, 1, 0x80000000, 0x7F7FFFFF, 0x33D6BF95}));
  EXPECT_EQ(weights.read("lm_head.weight"), (std::vector{1.0F, -65504.0F, 0x1p-24F}));
  EXPECT_EQ(weights.read("layer.0.bias"), (std::vector{1.0F, -3.140625F}));
  EXPECT_EQ(weights.read("scalar"), std::vector{0.5F});
  EXPECT_TRUE(weights.read("empty").empty());
  EXPECT_THROW(weights.read("ids"), InputError);
  EXPECT_THROW(weights.read("absent"), InputError);
}

TEST_F(WeightFiles, HoldWhatWasSaved) {
  const std::vector<float> a{1, 1 + 0x1p-10F + 0x1p-23F, -0.0F, 0x1p-149F, 3}, b{7};
  const NamedTensor tensors[] = {{"b", {1, 1}, b}, {"a", {5}, a}};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    save(folder_ / "x.safetensors", tensors, dtype);
    const Weights weights(folder_ / "x.safetensors");
    std::vector<float> rounded;
    for (const float x : a) rounded.push_back(dtype == DType::f32 ? x : stored(dtype, x));
    EXPECT_EQ(bits(weights.read("a")), bits(rounded)) << name(dtype);
    EXPECT_EQ(weights.read("b"), b);
    EXPECT_EQ(weights.entry("b").shape, (std::vector<Index>{1, 1}));
    EXPECT_EQ(weights.entry("a").begin % 8, 0u);
  }
  const NamedTensor twice[] = {{"a", {5}, a}, {"a", {5}, a}}, wrong[] = {{"a", {4}, a}};
  EXPECT_THROW(save(folder_ / "y.safetensors", twice), InputError);
  EXPECT_THROW(save(folder_ / "y.safetensors", wrong), InputError);
  EXPECT_THROW(save(folder_ / "y.safetensors", tensors, DType::i32), InputError);
  EXPECT_FALSE(fs::exists(folder_ / "y.safetensors"));
}

TEST_F(WeightFiles, MustBeWhole) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(error_of(write("right", "{" + a + "}", "1234")), "");
  const auto of_b = [&](std::string_view b) { return "{" + a + ",\"b\":" + std::string(b) + "}"; };
  struct Bad {
    std::string header;
    std::string_view data, says;
  };
  const Bad all[] = {
      {"{" + a + "}", "123", "where its tensors end"},
      {"{" + a + "}", "12345", "where its tensors end"},
      {"{" + a, "1234", "is no JSON"},
      {"[1]", "", "does not begin"},
      {"{" + a + "," + a + "}", "1234", "key 'a' twice"},
      {of_b(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "1234", "overlap"},
      {of_b(R"({"dtype":"F32","shape":[1],"data_offsets":[5,9]})"), "123456789", "gap"},
      {of_b(R"({"dtype":"F32","shape":[2],"data_offsets":[4,8]})"), "12345678", "takes 8"},
      {of_b(R"({"dtype":"F32","shape":[1],"data_offsets":[8,4]})"), "12345678", "bytes 8 to 4"},
      {of_b(R"({"dtype":"F33","shape":[1],"data_offsets":[4,8]})"), "12345678", "unknown"},
      {of_b(R"({"dtype":"F32","shape":[-1],"data_offsets":[4,8]})"), "12345678", "size is expected"},
      {of_b(R"({"dtype":"F32","shape":[1.0],"data_offsets":[4,8]})"), "12345678", "size is expected"},
      {of_b(R"({"dtype":"F32","shape":1,"data_offsets":[4,8]})"), "12345678", "no list"},
      {of_b(R"({"dtype":"F32","shape":[1],"data_offsets":[4]})"), "12345678", "no pair"},
      {of_b(R"({"dtype":"F32","shape":[1]})"), "12345678", "is no object with"},
      {of_b(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[4,4]})"), "1234", "too many"},
      {of_b(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[4,8]})"), "12345678", "too large"},
      {of_b("3"), "1234", "is no object with"},
  };
  for (const Bad& bad : all) {
    const std::string says = error_of(write("bad", bad.header, bad.data));
    EXPECT_NE(says.find(bad.says), std::string::npos) << bad.header << ": " << says;
  }
  files::write(folder_ / "short", "1234567");
  EXPECT_NE(error_of(folder_ / "short").find("too few"), std::string::npos);
  files::write(folder_ / "long", std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}");
  EXPECT_NE(error_of(folder_ / "long").find("announces"), std::string::npos);
  EXPECT_NE(error_of(folder_ / "absent").find("absent"), std::string::npos);
  EXPECT_NE(error_of(folder_).find("holds neither"), std::string::npos);
}

TEST_F(WeightFiles, MayBeShards) {
  const std::vector<float> one{1}, two{2};
  const NamedTensor a[] = {{"a", {1}, one}}, b[] = {{"b", {1}, two}};
  save(folder_ / "model-1.safetensors", a), save(folder_ / "model-2.safetensors", b);
  const fs::path index = folder_ / "model.safetensors.index.json";
  const auto map = [&](std::string_view text) {
    files::write(index, fmt::format(R"({{"metadata":{{}},"weight_map":{{{}}}}})", text));
    return error_of(folder_);
  };
  EXPECT_EQ(map(R"("a":"model-1.safetensors","b":"model-2.safetensors")"), "");
  EXPECT_EQ(Weights(folder_).read("b"), two);
  EXPECT_EQ(Weights(index).read("a"), one);
  EXPECT_NE(map(R"("a":"model-2.safetensors","b":"model-1.safetensors")").find("which it has not"), std::string::npos);
  EXPECT_NE(map(R"("a":"model-1.safetensors","c":"model-2.safetensors")").find("which it has not"), std::string::npos);
  EXPECT_NE(map(R"("a":"model-1.safetensors","b":"../model-2.safetensors")").find("no file of its folder"),
            std::string::npos);
  EXPECT_NE(map(R"("a":"model-1.safetensors","b":"model-3.safetensors")").find("model-3"), std::string::npos);
  const NamedTensor both[] = {{"b", {1}, two}, {"c", {1}, two}};
  save(folder_ / "model-2.safetensors", both);
  EXPECT_NE(map(R"("a":"model-1.safetensors","b":"model-2.safetensors")").find("does not list c"), std::string::npos);
}

TEST_F(WeightFiles, FillASession) {
  Block block(block_case("feed_forward"));
  Session saved(block.builder.program(), device(Backend::cpu)), loaded(block.builder.program(), device(Backend::cpu));
  float next = 0;
  for (const Parameter& p : saved.program().parameters) {
    std::vector<float> values(static_cast<std::size_t>(saved.program()[p.value].shape.size()));
    for (float& x : values) x = ++next;
    saved.set(p.value, values);
  }
  save(saved, folder_ / "w.safetensors");
  EXPECT_TRUE(load(loaded, Weights(folder_ / "w.safetensors")).empty());
  for (const Parameter& p : saved.program().parameters)
    EXPECT_EQ(loaded.get<float>(p.value), saved.get<float>(p.value)) << p.name;
}

TEST_F(WeightFiles, OfAnotherModelChangeNothing) {
  Block block(block_case("feed_forward"));
  Session session(block.builder.program(), device(Backend::cpu));
  const std::vector<float> values(60, 1.0F), norm(6, 1.0F);
  std::vector<NamedTensor> tensors{{"post_attention_layernorm.weight", {6}, norm},
                                   {"mlp.gate_proj.weight", {10, 6}, values},
                                   {"mlp.up_proj.weight", {10, 6}, values},
                                   {"mlp.down_proj.weight", {10, 6}, values}};
  const auto error = [&]() -> std::string {
    save(folder_ / "w.safetensors", tensors);
    try {
      load(session, Weights(folder_ / "w.safetensors"));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  std::string says = error();
  EXPECT_NE(says.find("mlp.down_proj.weight: has the shape [10, 6] where the model has [6, 10]: it is transposed"),
            std::string::npos)
      << says;
  tensors[3].shape = {60};
  says = error();
  EXPECT_NE(says.find("[60] where the model has [6, 10]"), std::string::npos) << says;
  EXPECT_EQ(says.find("transposed"), std::string::npos) << says;
  tensors[3].name = "mlp.down.weight";
  EXPECT_NE(error().find("has no tensor mlp.down_proj.weight"), std::string::npos);
  for (const Parameter& p : session.program().parameters)
    for (const float x : session.get<float>(p.value)) EXPECT_EQ(x, 0);
  tensors[3] = {"mlp.down_proj.weight", {6, 10}, values};
  tensors.push_back({"extra", {6}, norm});
  save(folder_ / "w.safetensors", tensors);
  EXPECT_EQ(load(session, Weights(folder_ / "w.safetensors")), std::vector<std::string>{"extra"});
}

}  // namespace
}  // namespace assay::program::safetensors_test
