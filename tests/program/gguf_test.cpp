// Models in GGUF: what gguf wrote and transformers read (tests/golden/gguf_models.py), and what the format forbids.
#include "program/model/gguf.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "blocks.hpp"
#include "core/errors.hpp"
#include "core/files.hpp"
#include "program/model/configuration.hpp"
#include "program/model/decode.hpp"
#include "program/model/parameters.hpp"

namespace assay::program::gguf_test {
namespace {

using falsify::Execution;
namespace fs = std::filesystem;

const std::vector<double> kIds{3, 1, 4, 1, 5, 9, 2, 6};

fs::path golden(const std::string& file) { return fs::path(ASSAY_GOLDEN) / file; }

/// Elements of a tensor in F64.
std::vector<double> doubles(const Weights& weights, const std::string& name) {
  const std::string bytes = weights.bytes(name);
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// Logits of kIds with the weights of a file.
template <class T>
std::vector<T> logits(const std::string& file) {
  TransformerConfig config = read_configuration(golden(file));
  config.trains = false;
  const Weights weights(golden(file));
  Builder b;
  const Sequences of = sequences(b, config, std::ssize(kIds));
  const Value ids = b.input("ids", {std::ssize(kIds)}, DType::i32), y = decoder(b, config, ids, of);
  b.output(y);
  const Program program = b.take();
  const Plan where = plan(program);
  Execution<T> execution(program, where, T(std::nan("")));
  const auto set = [&](Value v, const auto& values) {
    write(execution[v], std::vector<double>(values.begin(), values.end()));
  };
  for (const Parameter& p : program.parameters) set(p.value, weights.read(p.name));
  std::vector<double> positions(kIds.size());
  std::iota(positions.begin(), positions.end(), 0);
  set(ids, kIds), set(of.positions, positions), set(of.starts, std::vector{0.0});
  set(of.lengths, std::vector{static_cast<double>(kIds.size())});
  execution.run();
  std::vector<T> all;
  for (Index i = 0; i < execution[y].size(); ++i) all.push_back(execution[y].data()[i]);
  return all;
}

TEST(Gguf, LogitsAreThoseOfTransformers) {
  const Weights golden_logits(golden("gguf.safetensors"));
  for (const std::string model : {"llama", "qwen2"}) {
    const std::vector<double> want = doubles(golden_logits, model), got = logits<double>(model + ".gguf");
    const std::vector<Bounded> bounded = logits<Bounded>(model + ".gguf");
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double bound = 2 * 0x1p-29 * bounded[i].error;  // of double, and of PyTorch's double
      ASSERT_LT(bound, 1e-6 * (1 + std::fabs(want[i]))) << model << " " << i << ": no bound";
      EXPECT_LE(std::fabs(got[i] - want[i]), bound) << model << " " << i;
    }
  }
}

TEST(Gguf, PackedWeightsStayAsTheyAre) {
  TransformerConfig config = read_configuration(golden("llama.gguf"));
  EXPECT_EQ(config.weights, WeightFormat::f32) << "o and down are stored in 16 bits";
  config.weights = WeightFormat::q4_k;
  const Weights weights(golden("llama.gguf"));
  Decoder decoder(config, {.capacity = 8}, device(Backend::cpu));
  EXPECT_EQ(load(decoder.session(), weights), std::vector<std::string>());
  int packed = 0;
  for (const Parameter& p : decoder.session().program().parameters) {
    if (p.format != WeightFormat::q4_k || weights.entry(p.name).dtype != "Q4_K") continue;
    ++packed;
    const std::vector<std::uint8_t> held = decoder.session().get<std::uint8_t>(p.value);
    EXPECT_EQ(std::string(held.begin(), held.end()), weights.bytes(p.name)) << p.name;
  }
  EXPECT_EQ(packed, 6) << "q, k, v, gate, up and the head";
}

std::string error_of(const fs::path& path) {
  try {
    read_configuration(path);
    Weights weights(path);
    for (const auto& [name, entry] : weights.entries()) weights.read(name);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

class GgufFiles : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  /// The error for a file of these bytes.
  std::string error_of_bytes(std::string_view bytes) const {
    files::write(path_, bytes);
    return error_of(path_);
  }
  /// The error where the bytes that follow `after` by `skip` are replaced by `to`.
  std::string error_of_edit(std::string_view after, std::size_t skip, std::string_view to) const {
    std::string bytes = whole_;
    const std::size_t at = bytes.find(after);
    EXPECT_NE(at, std::string::npos) << after;
    bytes.replace(at + after.size() + skip, to.size(), to);
    return error_of_bytes(bytes);
  }
  fs::path path_ = fs::temp_directory_path() /
                   (std::string("assay-") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf");
  std::string whole_ = files::read(golden("llama.gguf"), "");
};

TEST_F(GgufFiles, AreRefusedInWords) {
  using namespace std::string_view_literals;
  EXPECT_EQ(error_of_bytes(whole_), "");
  const auto expect = [](const std::string& error, std::string_view part) {
    EXPECT_NE(error.find(part), std::string::npos) << "'" << error << "' lacks '" << part << "'";
  };
  expect(error_of_edit("GGUF", 0, "\x04"sv), "is of version 4");
  expect(error_of_edit("general.architecture", 12, "gemma"), "general.architecture: is gemma");
  expect(error_of_edit("llama.block_count", 4, "\x00"sv), "llama.block_count: is 0");
  expect(error_of_edit("llama.rope.dimension_count", 4, "\x08"sv), "llama.rope.dimension_count: is 8");
  expect(error_of_edit("llama.attention.value_length", 4, "\x08"sv), "llama.attention.value_length: is 8");
  expect(error_of_edit("llama.attention.head_count", 4, "\x03"sv), "self_attn.q_proj.weight: its rows are no pairs");
  // name, rank, two extents, type, offset
  expect(error_of_edit("blk.0.ffn_down.weight", 20, "\x63"sv), "blk.0.ffn_down.weight of type 99, which is unknown");
  expect(error_of_edit("blk.0.ffn_down.weight", 20, "\x0e"sv), "blk.0.ffn_down.weight with rows of 16 in Q6_K");
  expect(error_of_edit("blk.0.attn_q.weight", 20, "\x0b"sv), "stored in Q3_K");
  expect(error_of_edit("blk.0.ffn_down.weight", 0, "\x09"sv), "blk.0.ffn_down.weight with 9 dims");
  expect(error_of_edit("blk.0.ffn_down.weight", 24, "\x01"sv), "is not aligned to 32");
  expect(error_of_edit("blk.0.ffn_down.weight", 24, "\x00\x00"sv), "overlap");
  expect(error_of_edit("blk.0.ffn_down.weight", 30, "\x01"sv), "ends before model.layers.0.mlp.down_proj.weight does");
  EXPECT_EQ(error_of_edit("blk.0.ffn_u", 0, "x"), "");  // another name: the configuration stands, the load does not
  for (std::size_t bytes = 0; bytes < whole_.size(); bytes += bytes < 2000 ? 37 : 3001)
    EXPECT_NE(error_of_bytes(whole_.substr(0, bytes)), "") << bytes;
}

/// Each byte of the header, changed: the file is taken or refused, and nothing else happens.
TEST_F(GgufFiles, AreTakenOrRefused) {
  const std::size_t header = whole_.find("blk.0.ffn_norm.weight") + 60;
  constexpr char kFlips[] = {'\x01', '\x80', '\xff'};
  for (std::size_t at = 0; at < header; ++at) {
    std::string bytes = whole_;
    bytes[at] = static_cast<char>(bytes[at] ^ kFlips[at % 3]);
    EXPECT_NO_THROW(error_of_bytes(bytes)) << at;
  }
}

}  // namespace
}  // namespace assay::program::gguf_test
