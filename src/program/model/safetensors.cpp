#include "program/model/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
<<<<<<< f07dcf1b005ab8fb5fc965db19e52d6793b04bce
#include <charconv>
=======
>>>>>>> variants
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.hpp"
#include "core/files.hpp"
#include "core/half.hpp"
#include "core/q4_k.hpp"
#include "program/model/gguf.hpp"
#include "program/model/parameters.hpp"

namespace assay::program {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "files are little-endian, and so is what is copied from them");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // of the reference implementation
constexpr std::string_view kRemedy = "write the file anew";

struct StoredType {
  std::string_view name;
  std::size_t bytes;
};
constexpr StoredType kTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                                 {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                 {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

std::string_view stored_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
  }
  return "?";
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw InputError(where, what, std::string(kRemedy));
}

/// Parses JSON without repeated keys: of two tensors of one name, neither is the one that was meant.
json parse(const std::string& where, std::string_view text) {
  std::vector<std::set<std::string>> open;
  std::string repeated;
  const auto see = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      repeated = parsed.get<std::string>();
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(text, see);
  } catch (const json::exception& e) {
    refuse(where, fmt::format("is no JSON: {}", e.what()));
  }
  if (!repeated.empty()) refuse(where, fmt::format("has the key '{}' twice", repeated));
  if (!parsed.is_object()) refuse(where, "is no JSON object");
  return parsed;
}

std::uint64_t natural(const std::string& where, const json& number) {
  if (!number.is_number_unsigned()) refuse(where, fmt::format("has {} where a size is expected", number.dump()));
  return number.get<std::uint64_t>();
}

/// Bytes of a shape's elements.
std::uint64_t bytes_of(const std::string& where, const std::vector<Index>& shape, std::size_t element) {
  std::uint64_t bytes = element;
  for (const Index extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      refuse(where, fmt::format("has a shape of too many elements: [{}]", fmt::join(shape, ", ")));
  return bytes;
}

Weights::Entry entry_of(const fs::path& file, const std::string& name, const json& j, std::uint64_t data) {
  const std::string where = fmt::format("{}: {}", file.string(), name);
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    refuse(where, "is no object with dtype, shape and data_offsets");
  Weights::Entry entry{.file = file, .dtype = {}, .shape = {}};
  const auto type =
      std::ranges::find(kTypes, j["dtype"].is_string() ? j["dtype"].get<std::string>() : "", &StoredType::name);
  if (type == std::end(kTypes)) refuse(where, fmt::format("has a dtype that is unknown: {}", j["dtype"].dump()));
  entry.dtype = type->name;
  const json &shape = j["shape"], &offsets = j["data_offsets"];
  if (!shape.is_array()) refuse(where, fmt::format("has no list as its shape: {}", shape.dump()));
  for (const json& extent : shape) {
    const std::uint64_t n = natural(where, extent);
    if (n > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
      refuse(where, fmt::format("has too large an extent: {}", n));
    entry.shape.push_back(static_cast<Index>(n));
  }
  if (!offsets.is_array() || offsets.size() != 2)
    refuse(where, fmt::format("has data_offsets that are no pair: {}", offsets.dump()));
  const std::uint64_t begin = natural(where, offsets[0]), end = natural(where, offsets[1]);
  const std::uint64_t wanted = bytes_of(where, entry.shape, type->bytes);
  if (end < begin || end - begin != wanted)
    refuse(where, fmt::format("has the bytes {} to {}, and [{}] in {} takes {}", begin, end,
                              fmt::join(entry.shape, ", "), entry.dtype, wanted));
  entry.begin = data + begin;
  entry.bytes = wanted;
  return entry;
}

std::string shape_text(std::span<const Index> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::vector<Index> extents(const Shape& shape) {
  std::vector<Index> all;
  for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
  return all;
}

Weights::Weights(const fs::path& path) : path_(path) {
  if (is_gguf(path)) {
    entries_ = gguf_tensors(path);
    return;
  }
  fs::path file = path;
  if (fs::is_directory(path)) {
    file = path / "model.safetensors.index.json";
    if (!fs::exists(file)) file = path / "model.safetensors";
    if (!fs::exists(file))
      throw InputError(path.string(), "holds neither model.safetensors nor model.safetensors.index.json",
                       "name a folder or a file with weights");
  }
  if (file.extension() == ".json") add_shards(file);
  else add_file(file);
}

void Weights::add_file(const fs::path& file) {
  const std::string where = file.string();
  files::expect_regular(file, "name a .safetensors file");
  std::ifstream in(file, std::ios::binary);
  const std::uint64_t size = fs::file_size(file);
  std::uint64_t length = 0;
  if (size < sizeof length || !in.read(reinterpret_cast<char*>(&length), sizeof length))
    refuse(where, fmt::format("has {} bytes, too few for a header", size));
  if (length > kLongestHeader || length > size - sizeof length)
    refuse(where, fmt::format("announces a header of {} bytes in a file of {}", length, size));
  std::string header(length, ' ');
  if (!in.read(header.data(), static_cast<std::streamsize>(length))) refuse(where, "cannot be read");
  if (!header.starts_with('{')) refuse(where, "has a header that does not begin with '{'");
  const std::uint64_t data = sizeof length + length;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches;
  const json parsed = parse(where, header);
  for (const auto& [name, j] : parsed.items()) {
    if (name == "__metadata__") continue;
    const Entry entry = entry_of(file, name, j, data);
    stretches.emplace_back(entry.begin, entry.begin + entry.bytes);
    if (const auto [other, added] = entries_.emplace(name, entry); !added)
      refuse(where, fmt::format("has the tensor {}, which {} has too", name, other->second.file.string()));
  }
  std::ranges::sort(stretches);
  std::uint64_t end = data;
  for (const auto& [begin, next] : stretches) {
    if (begin != end)
      refuse(where, fmt::format("has tensors that overlap, or a gap, at byte {}", std::min(begin, end)));
    end = next;
  }
  if (end != size) refuse(where, fmt::format("has {} bytes where its tensors end at {}", size, end));
}

void Weights::add_shards(const fs::path& index) {
  const std::string where = index.string();
  const json parsed = parse(where, files::read(index, "name an index of shards"));
  if (!parsed.contains("weight_map") || !parsed["weight_map"].is_object()) refuse(where, "has no weight_map");
  std::set<std::string> shards;
  for (const auto& [name, shard] : parsed["weight_map"].items()) {
    if (!shard.is_string() || fs::path(shard.get<std::string>()).filename() != shard.get<std::string>())
      refuse(where, fmt::format("names no file of its folder for {}: {}", name, shard.dump()));
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) add_file(index.parent_path() / shard);
  for (const auto& [name, shard] : parsed["weight_map"].items()) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.file.filename() != shard.get<std::string>())
      refuse(where, fmt::format("says that {} has {}, which it has not", shard.get<std::string>(), name));
  }
  for (const auto& [name, entry] : entries_)
    if (!parsed["weight_map"].contains(name))
      refuse(where, fmt::format("does not list {}, which {} has", name, entry.file.filename().string()));
}

const Weights::Entry& Weights::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw InputError(path_.string(), fmt::format("has no tensor {}", name), "name one that it has");
  return found->second;
}

std::string Weights::bytes(std::string_view name) const {
  const Entry& e = entry(name);
  std::string bytes(e.bytes, '\0');
  std::ifstream in(e.file, std::ios::binary);
  if (!in.seekg(static_cast<std::streamoff>(e.begin)) || !in.read(bytes.data(), static_cast<std::streamsize>(e.bytes)))
    refuse(fmt::format("{}: {}", e.file.string(), name), "cannot be read: the file has changed");
  if (e.interleaved_heads == 0) return bytes;
  const auto rows = static_cast<std::size_t>(e.shape[0]), row = e.bytes / std::max<std::size_t>(rows, 1),
             d = rows / static_cast<std::size_t>(e.interleaved_heads);
  std::string ordered;
  for (std::size_t r = 0; r < rows; ++r)
    ordered.append(bytes, (r / d * d + r % (d / 2) * 2 + r % d / (d / 2)) * row, row);
  return ordered;
}

void Weights::expect_readable(std::string_view name) const {
  constexpr std::string_view readable[] = {"F32", "F16", "BF16", "Q4_K"};
  if (const Entry& e = entry(name); std::ranges::find(readable, e.dtype) == std::end(readable))
    throw InputError(fmt::format("{}: {}", e.file.string(), name), fmt::format("is stored in {}", e.dtype),
                     "convert it to F32, F16, BF16 or Q4_K");
}

namespace {

/// Throws for an element of a tensor that is infinite or no number.
[[noreturn]] void refuse_element(const Weights& weights, std::string_view name, Index at) {
  const Weights::Entry& e = weights.entry(name);
  const float element = weights.read(name)[static_cast<std::size_t>(at)];
  std::vector<Index> place(e.shape.size());
  for (std::size_t axis = e.shape.size(); axis-- > 0; at /= e.shape[axis]) place[axis] = at % e.shape[axis];
  throw InputError(fmt::format("{}: {}", e.file.string(), name),
                   fmt::format("has the element {} at {}", element, shape_text(place)),
                   "take weights that are finite numbers");
}

/// The first element that is infinite or no number, among bytes in a type that read() takes; or -1.
Index first_not_finite(std::string_view dtype, std::string_view bytes) {
  const auto first = [&]<class T>(T element, auto widened) -> Index {
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      if (!std::isfinite(widened(element))) return static_cast<Index>(i);
    }
    return -1;
  };
  if (dtype == "F32") return first(0.0F, [](float x) { return x; });
  if (dtype == "F16") return first(Half{}, [](Half x) { return widen(x); });
  if (dtype == "BF16") return first(BFloat16{}, [](BFloat16 x) { return widen(x); });
  // Values of a block are finite where its two factors, the first of its bytes, are.
  for (std::size_t block = 0; block < bytes.size(); block += q4_k::kBytes) {
    Half factors[2];
    std::memcpy(factors, bytes.data() + block, sizeof factors);
    if (std::isfinite(widen(factors[0])) && std::isfinite(widen(factors[1]))) continue;
    for (Index i = 0; i < q4_k::kValues; ++i)
      if (!std::isfinite(q4_k::value_at(reinterpret_cast<const std::uint8_t*>(bytes.data()) + block, i)))
        return static_cast<Index>(block / q4_k::kBytes) * q4_k::kValues + i;
  }
  return -1;
}

}  // namespace

std::string Weights::bytes_finite(std::string_view name) const {
  expect_readable(name);
  std::string bytes = this->bytes(name);
  if (const Index at = first_not_finite(entry(name).dtype, bytes); at >= 0) refuse_element(*this, name, at);
  return bytes;
}

std::vector<float> Weights::read_finite(std::string_view name) const {
  std::vector<float> values = read(name);
  const auto at = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  if (at != values.end()) refuse_element(*this, name, at - values.begin());
  return values;
}

std::vector<float> Weights::read(std::string_view name) const {
  expect_readable(name);
  const Entry& e = entry(name);
  const std::string bytes = this->bytes(name);
  const auto as = [&]<class T>(T element, auto widened) {
    std::vector<float> values(e.bytes / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = widened(element);
    }
    return values;
  };
  if (e.dtype == "F32") return as(0.0F, [](float x) { return x; });
  if (e.dtype == "F16") return as(Half{}, [](Half x) { return widen(x); });
  if (e.dtype == "BF16") return as(BFloat16{}, [](BFloat16 x) { return widen(x); });
  std::vector<float> values;
  for (std::size_t block = 0; block < bytes.size(); block += q4_k::kBytes)
    for (Index i = 0; i < q4_k::kValues; ++i)
      values.push_back(q4_k::value_at(reinterpret_cast<const std::uint8_t*>(bytes.data()) + block, i));
  return values;
}

void set_parameter(Session& session, const Parameter& p, const Weights& weights) {
  const std::string_view own = p.format == WeightFormat::q4_k  ? "Q4_K"
                               : p.format == WeightFormat::nf4 ? ""
                                                               : stored_name(activation_dtype(p.format));
  if (weights.entry(p.name).dtype == own && p.shape.size() > 0) set_stored(session, p, weights.bytes_finite(p.name));
  else set_parameter(session, p.name, p.shape, weights.read_finite(p.name));
<<<<<<< f07dcf1b005ab8fb5fc965db19e52d6793b04bce
=======
}

namespace {

/// The name without its numbers: tensors of all layers are alike.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c < '0' || c > '9') text += c;
  return text;
}

/// Throws for a parameter whose tensor is missing: what the model has, and what the weights have like it.
[[noreturn]] void refuse_missing(const Program& program, const Weights& weights, const Parameter& missing) {
  constexpr std::size_t kListed = 3;
  std::vector<std::string> alike;
  const std::string kind = without_numbers(missing.name);
  const std::string_view end =
      std::string_view(missing.name).substr(missing.name.rfind('.', missing.name.rfind('.') - 1) + 1);
  for (const bool same_kind : {true, false}) {
    for (const auto& [name, entry] : weights.entries())
      if (same_kind ? without_numbers(name) == kind : name.ends_with(end))
        alike.push_back(fmt::format("{} {}", name, shape_text(entry.shape)));
    if (!alike.empty()) break;
  }
  const std::size_t more = alike.size() - std::min(alike.size(), kListed);
  alike.resize(alike.size() - more);
  const auto count_like = [&](const auto& names) {
    return std::ranges::count_if(names, [&](const auto& named) { return without_numbers(named) == kind; });
  };
  std::vector<std::string> own, theirs;
  for (const Parameter& p : program.parameters) own.push_back(p.name);
  for (const auto& [name, entry] : weights.entries()) theirs.push_back(name);
  const auto wanted = count_like(own), given = count_like(theirs);
  std::string remedy = "check the model's configuration, or take its own weights";
  if (given > 0 && given != wanted)
    remedy = fmt::format("check the number of layers: the model has {} tensors of this kind, and the file {}", wanted,
                         given);
  throw InputError(
      weights.path().string(),
      fmt::format("has no tensor {}, which the model has as {}; {}{}{}", missing.name,
                  shape_text(extents(missing.shape)), alike.empty() ? "it has none like it" : "like it, it has ",
                  fmt::join(alike, ", "), more > 0 ? fmt::format(" and {} more", more) : ""),
      remedy);
}

}  // namespace

void expect_tensor(const Program& program, const Weights& weights, const Parameter& p) {
  if (!weights.entries().contains(p.name)) refuse_missing(program, weights, p);
>>>>>>> variants
}

namespace {

/// The name without its numbers: tensors of all layers are alike.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c < '0' || c > '9') text += c;
  return text;
}

/// Throws for a parameter whose tensor is missing: what the model has, and what the weights have like it.
[[noreturn]] void refuse_missing(const Program& program, const Weights& weights, const Parameter& missing) {
  constexpr std::size_t kListed = 3;
  std::vector<std::string> alike;
  const std::string kind = without_numbers(missing.name);
  const std::string_view end =
      std::string_view(missing.name).substr(missing.name.rfind('.', missing.name.rfind('.') - 1) + 1);
  for (const bool same_kind : {true, false}) {
    for (const auto& [name, entry] : weights.entries())
      if (same_kind ? without_numbers(name) == kind : name.ends_with(end))
        alike.push_back(fmt::format("{} {}", name, shape_text(entry.shape)));
    if (!alike.empty()) break;
  }
  const std::size_t more = alike.size() - std::min(alike.size(), kListed);
  alike.resize(alike.size() - more);
  const auto count_like = [&](const auto& names) {
    return std::ranges::count_if(names, [&](const auto& named) { return without_numbers(named) == kind; });
  };
  std::vector<std::string> own, theirs;
  for (const Parameter& p : program.parameters) own.push_back(p.name);
  for (const auto& [name, entry] : weights.entries()) theirs.push_back(name);
  const auto wanted = count_like(own), given = count_like(theirs);
  std::string remedy = "check the model's configuration, or take its own weights";
  if (given > 0 && given != wanted)
    remedy = fmt::format("check the number of layers: the model has {} tensors of this kind, and the file {}", wanted,
                         given);
  throw InputError(
      weights.path().string(),
      fmt::format("has no tensor {}, which the model has as {}; {}{}{}", missing.name,
                  shape_text(extents(missing.shape)), alike.empty() ? "it has none like it" : "like it, it has ",
                  fmt::join(alike, ", "), more > 0 ? fmt::format(" and {} more", more) : ""),
      remedy);
}

}  // namespace

void expect_tensor(const Program& program, const Weights& weights, const Parameter& p) {
  if (!weights.entries().contains(p.name)) refuse_missing(program, weights, p);
}

std::vector<std::string> load(Session& session, const Weights& weights, Layers layers) {
  const Program& program = session.program();
  std::set<std::string, std::less<>> unused;
  for (const auto& [name, entry] : weights.entries()) unused.insert(name);
  for (const Parameter& p : program.parameters) {
    expect_tensor(program, weights, p);
    const Weights::Entry& entry = weights.entry(p.name);
    weights.expect_readable(p.name);
    const std::vector<Index> wanted = extents(p.shape);
    if (entry.shape != wanted) {
      const bool transposed = entry.shape.size() == 2 && wanted == std::vector{entry.shape[1], entry.shape[0]};
      throw InputError(fmt::format("{}: {}", entry.file.string(), p.name),
                       fmt::format("has the shape {} where the model has {}{}", shape_text(entry.shape),
                                   shape_text(wanted), transposed ? ": it is transposed" : ""),
                       transposed ? "store weights as [outputs, inputs]" : "check the model's configuration");
    }
    unused.erase(p.name);
  }
  const std::vector<std::string> left(unused.begin(), unused.end());
  expect_whole_layers(program, left);
  if (layers == Layers::all) expect_no_more_layers(program, left);
  for (const Parameter& p : program.parameters) set_parameter(session, p, weights);
  return left;
}

void expect_whole_layers(const Program& program, std::span<const std::string> unused) {
  const auto has = [&](std::string_view layer, std::string_view rest) {
    return std::ranges::any_of(program.parameters, [&](const Parameter& p) {
      return p.name.size() == layer.size() + rest.size() && p.name.starts_with(layer) && p.name.ends_with(rest);
    });
  };
  for (const std::string& name : unused) {
    const std::string_view layer = std::string_view(name).substr(0, name.rfind('.') + 1),
                           block = layer.substr(0, layer.empty() ? 0 : layer.rfind('.', layer.size() - 2) + 1);
    if ((name == fmt::format("{}bias", layer) && has(layer, "weight")) ||
        (name == fmt::format("{}q_norm.weight", block) && has(block, "q_proj.weight")) ||
        (name == fmt::format("{}k_norm.weight", block) && has(block, "k_proj.weight")))
      throw InputError(name, "is in the weights, and the model's layer has none",
                       "check the model's configuration: biases, q_norm, k_norm");
  }
}

void expect_no_more_layers(const Program& program, std::span<const std::string> unused) {
  std::map<std::string, std::set<Index>, std::less<>> own, more;  // by what is before the number
  const auto add = [](std::string_view name, auto& to) {
    constexpr std::string_view kDigits = "0123456789";
    for (std::size_t at = name.find('.'); at != name.npos; at = name.find('.', at + 1)) {
      const std::size_t end = std::min(name.find_first_not_of(kDigits, at + 1), name.size());
      Index number = 0;
      if (end == at + 1 || end == name.size() || name[end] != '.' ||
          std::from_chars(name.data() + at + 1, name.data() + end, number).ptr != name.data() + end)
        continue;
      to[std::string(name.substr(0, at + 1))].insert(number);
      return;
    }
  };
  for (const Parameter& p : program.parameters) add(p.name, own);
  for (const std::string& name : unused) add(name, more);
  for (const auto& [stack, numbers] : own) {
    std::vector<std::string> over;
    for (const Index n : more[stack])
      if (!numbers.contains(n)) over.push_back(fmt::format("{}{}", stack, n));
    if (over.empty()) continue;
    const std::string first = over.front(), last = over.back();
    throw InputError(
        over.size() == 1 ? first : fmt::format("{} to {}", first, last),
        fmt::format("the weights have {}, and the model has {}",
                    over.size() == 1 ? "this layer" : fmt::format("these {} layers", over.size()), numbers.size()),
        "check the number of layers in the model's configuration");
  }
}

void save(const fs::path& file, std::span<const StoredTensor> tensors) {
  json header = json::object();
  std::string data;
  std::vector<const StoredTensor*> sorted;
  for (const StoredTensor& t : tensors) sorted.push_back(&t);
  std::ranges::sort(sorted, {}, &StoredTensor::name);
  for (const StoredTensor* t : sorted) {
    if (header.contains(t->name) || t->name == "__metadata__")
      throw InputError(file.string(), fmt::format("{} cannot be the name of a tensor, or not of two", t->name),
                       "rename it");
    const std::size_t begin = data.size();
    data += t->bytes;
    header[t->name] = {{"dtype", stored_name(t->dtype)}, {"shape", t->shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // aligned elements, as the reference implementation writes them
  const std::uint64_t length = text.size();
  files::write(file, std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data);
}

void save(const fs::path& file, std::span<const NamedTensor> tensors, DType dtype) {
  if (!is_floating(dtype)) throw InputError(file.string(), "weights are no integers", "store them as f32, f16 or bf16");
  std::vector<StoredTensor> stored;
  for (const NamedTensor& t : tensors) {
    const std::string where = fmt::format("{}: {}", file.string(), t.name);
    if (bytes_of(where, t.shape, 1) != t.elements.size())
      throw InputError(where, fmt::format("{} elements for {}", t.elements.size(), shape_text(t.shape)),
                       "give as many as the shape has");
    std::string bytes;
    const auto append = [&](const auto& element) {
      bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
    };
    for (const float x : t.elements) {
      if (dtype == DType::f32) append(x);
      if (dtype == DType::f16) append(to_half(x));
      if (dtype == DType::bf16) append(to_bfloat16(x));
    }
    stored.push_back({t.name, dtype, t.shape, std::move(bytes)});
  }
  save(file, stored);
}

void save(Session& session, const fs::path& file, DType dtype) {
  const Program& program = session.program();
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const Parameter& p : program.parameters) {
    values.push_back(get_parameter(session, p));
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    tensors.push_back({program.parameters[i].name, extents(program.parameters[i].shape), values[i]});
  save(file, tensors, dtype);
}

}  // namespace assay::program
