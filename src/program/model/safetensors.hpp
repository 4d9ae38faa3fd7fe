// Weights in safetensors files, https://github.com/huggingface/safetensors (README, "Format"), and in GGUF (gguf.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/session.hpp"

namespace assay::program {

/// Tensors by name, in one file or in several shards. Only headers are in memory.
class Weights {
 public:
  struct Entry {
    std::filesystem::path file;
    std::string dtype;  ///< as the format writes it: "F32", "BF16", "I64", "Q4_K"
    std::vector<Index> shape;
    std::uint64_t begin = 0, bytes = 0;  ///< of the elements in the file, row-major and little-endian
    Index interleaved_heads = 0;  ///< heads whose rows the file holds as 0, d/2, 1, d/2 + 1, ...; 0: rows are in order
  };

  /// Opens a .safetensors file, an index of shards (.safetensors.index.json), a GGUF file, or a folder that holds
  /// model.safetensors or its index. Reads and checks every header. Throws InputError for whatever the format forbids:
  /// overlapping tensors, gaps, repeated names, bytes that do not fit a shape.
  explicit Weights(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// Throws InputError if no tensor has this name.
  const Entry& entry(std::string_view name) const;
  /// Returns a tensor's elements. F32, F16, BF16 and Q4_K are exact in float32; throws InputError for other types.
  std::vector<float> read(std::string_view name) const;
  /// The same. Throws InputError for an element that is infinite or no number, with its place.
  std::vector<float> read_finite(std::string_view name) const;
  /// Throws InputError for types that read() does not take.
  void expect_readable(std::string_view name) const;
  /// Returns a tensor's bytes, with its rows in order.
  std::string bytes(std::string_view name) const;
  /// The same of a type that read() takes. Throws as read_finite() does.
  std::string bytes_finite(std::string_view name) const;

 private:
  void add_file(const std::filesystem::path& file);
  void add_shards(const std::filesystem::path& index);

  std::filesystem::path path_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Sets a parameter to the tensor of its name, whose shape is the parameter's: to its bytes as they are where both have
/// one format, else to its elements. Throws InputError for types that read() does not take, and for an element that is
/// not finite.
void set_parameter(Session& session, const Parameter& parameter, const Weights& weights);

/// all: the program has every layer of the weights; some: it may have fewer.
enum class Layers { all, some };

/// Sets every parameter of the session's program to the tensor of its name. Throws InputError, before any parameter
/// changes, for a parameter that has no tensor or one of another shape or of a type that cannot be read, for a bias
/// or a norm of heads that a layer of the program lacks, and for further layers unless the program has only `some`; and,
/// where those before it are set already, for a tensor with an element that is not finite. Returns the tensors that no
/// parameter takes.
std::vector<std::string> load(Session& session, const Weights& weights, Layers layers = Layers::all);

/// Throws InputError if the parameter has no tensor: its name, shape and file, and what the file has like it.
void expect_tensor(const Program& program, const Weights& weights, const Parameter& parameter);

/// Throws InputError if one of the tensors that no parameter takes is a bias or a norm of heads of one of the program's
/// layers: without it the layer is another one.
void expect_whole_layers(const Program& program, std::span<const std::string> unused);

/// Throws InputError if some of the tensors that no parameter takes are of further layers: it names these.
void expect_no_more_layers(const Program& program, std::span<const std::string> unused);

std::vector<Index> extents(const Shape& shape);

/// A tensor to be saved as it is: dense, row-major elements.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Index> shape;
  std::string bytes;
};

/// Writes one file, whole or not at all.
void save(const std::filesystem::path& file, std::span<const StoredTensor> tensors);

/// A tensor to be saved.
struct NamedTensor {
  std::string name;
  std::vector<Index> shape;
  std::span<const float> elements;
};

/// Writes one file, whole or not at all. Elements are rounded to nearest even where `dtype` is f16 or bf16.
void save(const std::filesystem::path& file, std::span<const NamedTensor> tensors, DType dtype = DType::f32);
/// Writes every parameter of the session's program. Throws InputError where one is packed.
void save(Session& session, const std::filesystem::path& file, DType dtype = DType::f32);

}  // namespace assay::program
