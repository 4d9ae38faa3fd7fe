#include "program/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "contract/composition.hpp"
#include "core/errors.hpp"

namespace assay::program {
namespace {

/// Parameters begin at multiples of so many elements: 256 bytes, which vector loads of every back end ask for at most.
constexpr Index kAlignment = 64;

/// Elements of a value. Throws InputError where an extent is negative, or where the bytes of a storage of them are too
/// many to count.
Index elements_of(const std::string& name, const Shape& shape, DType dtype) {
  constexpr Index kMostBytes = Index{1} << 60;  // sums over the storages of a program stay below 2^64
  Index bytes = static_cast<Index>(size_of(dtype));
  bool counts = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0)
      throw InputError(name, fmt::format("its shape {} has a negative extent", to_string(shape)), "give 0 or more");
    counts = counts && !__builtin_mul_overflow(bytes, std::max<Index>(shape[axis], 1), &bytes) && bytes <= kMostBytes;
  }
  if (!counts)
    throw InputError(name, fmt::format("its shape {} has more elements than can be counted", to_string(shape)),
                     "give smaller extents");
  return shape.size();
}

/// The name of zeros, which Builder::zeros() makes once.
std::string zeros_name(const Shape& shape, DType dtype) {
  const std::string format = dtype == DType::f32 ? "" : fmt::format(" in {}", name(dtype));
  return fmt::format("zeros {}{}", to_string(shape), format);
}

bool dense(const ValueInfo& v) { return View<const float>(nullptr, v.shape, v.strides).contiguous(); }

}  // namespace

std::string_view name(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return "f32";
    case WeightFormat::q4_k: return "q4_k";
    case WeightFormat::nf4: return "nf4";
    case WeightFormat::f16: return "f16";
    case WeightFormat::bf16: return "bf16";
  }
  return "?";
}

bool is_packed(WeightFormat format) { return format == WeightFormat::q4_k || format == WeightFormat::nf4; }

DType activation_dtype(WeightFormat format) {
  return format == WeightFormat::f16 ? DType::f16 : format == WeightFormat::bf16 ? DType::bf16 : DType::f32;
}

Index row_bytes(WeightFormat format, Index columns) {
  switch (format) {
    case WeightFormat::f32: return 4 * columns;
    case WeightFormat::q4_k: return (columns + 255) / 256 * 144;
    case WeightFormat::nf4: return (columns + 63) / 64 * 32;
    case WeightFormat::f16:
    case WeightFormat::bf16: return 2 * columns;
  }
  throw std::logic_error("no such format");
}

std::string describe(const Step& step) { return fmt::format("{} ({})", step.label, step.op->name); }

void Program::refuse(Value v) {
  if (!v) throw InputError("value", "it names nothing: it was never set", "pass a value that a builder returned");
  throw InputError(fmt::format("value {}", v.id), "it is no value of this program",
                   "pass values that the builder of this program made");
}

Builder::Builder() {
  static std::atomic<std::uint32_t> programs{0};
  program_.identity = ++programs;
}

Builder::Builder(Program program) : program_(std::move(program)) {
  writes_.resize(program_.storages.size());
  for (const Storage& s : program_.storages)
    if (s.kind != Kind::temporary && s.kind != Kind::constant) names_.insert(s.name);
  for (const Parameter& p : program_.parameters) names_.insert(p.name);
  for (std::size_t i = 0; i < program_.values.size(); ++i)
    if (const Value v{static_cast<std::int32_t>(i), program_.identity};
        program_.storage_of(v).kind == Kind::constant && program_.base_of(v) == v)
      zeros_.emplace(zeros_name(program_[v].shape, program_.storage_of(v).dtype), v);
  for (const Step& step : program_.steps) {
    ++labels_[step.label];
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
      if (step.op->tensors[t].role != Role::in) write(program_[step.tensors[t]]);
  }
  for (const Parameter& p : program_.parameters)
    if (p.trainable) flat_ = program_[p.value].storage;
}

Builder::Scope::Scope(Builder& builder, std::string_view name) : builder_(builder), length_(builder.prefix_.size()) {
  builder_.prefix_.append(name).push_back('.');
}

bool Builder::is_own(Value v) const {
  return program_.holds(v) && (v.program == program_.identity || v.program == 0 || program_.identity == 0);
}

const ValueInfo& Builder::own(Value v) const {
  if (!is_own(v)) Program::refuse(v);
  return program_[v];
}

Value Builder::add(ValueInfo info) {
  const Value v{static_cast<std::int32_t>(program_.values.size()), program_.identity};
  if (!info.base) info.base = v;
  program_.values.push_back(std::move(info));
  return v;
}

std::int32_t Builder::add(Storage storage) {
  program_.storages.push_back(std::move(storage));
  writes_.emplace_back();
  return static_cast<std::int32_t>(program_.storages.size()) - 1;
}

Value Builder::whole(Storage storage, const Shape& shape) {
  std::string name = storage.name;
  storage.elements = elements_of(name, shape, storage.dtype);
  return add({std::move(name), add(std::move(storage)), 0, shape, row_major_strides(shape), 0, {}});
}

Value Builder::input(std::string name, const Shape& shape, DType dtype) {
  name.insert(0, prefix_);
  expect_new("an input", name);
  return whole({std::move(name), Kind::input, dtype, 0}, shape);
}

Value Builder::state(std::string name, const Shape& shape, DType dtype) {
  name.insert(0, prefix_);
  expect_new("a state", name);
  return whole({std::move(name), Kind::state, dtype, 0}, shape);
}

Value Builder::gradient(std::string name, const Shape& shape) {
  name.insert(0, prefix_);
  expect_new("a gradient", name);
  return whole({std::move(name), Kind::gradient, DType::f32, 0}, shape);
}

Value Builder::zeros(const Shape& shape, DType dtype) {
  const std::string of = zeros_name(shape, dtype);
  if (const auto known = zeros_.find(of); known != zeros_.end()) return known->second;
  return zeros_[of] = whole({of, Kind::constant, dtype, 0}, shape);
}

Value Builder::cast(Value v, DType dtype) {
  if (this->dtype(v) == dtype) return v;
  const Shape shape = this->shape(v), row{1, shape.size()};
  const Scope scope(*this, "cast");
  if (dtype == DType::f32) {
    const Value reads[] = {reshape(v, row)};
    return reshape(call("bias_add_backward", reads)[1], shape);
  }
  const Value reads[] = {zeros(row, dtype), reshape(v, {shape.size()})};
  return reshape(call("bias_add", reads)[0], shape);
}

void Builder::expect_new(std::string_view what, const std::string& name) {
  if (!names_.insert(name).second)
    throw InputError(name, fmt::format("{} cannot have this name, which something has already", what),
                     "give every parameter, input, state and gradient a name of its own");
}

std::string Builder::free_name(const std::string& name) const {
  std::string free = name;
  for (int n = 1; names_.contains(prefix_ + free); ++n) free = fmt::format("{}.{}", name, n);
  return free;
}

Value Builder::parameter(std::string name, const Shape& shape, bool trainable, DType dtype) {
  name.insert(0, prefix_);
  if (trainable && dtype != DType::f32)
    throw InputError(name, fmt::format("it trains, and is {}", assay::name(dtype)), "train parameters in f32");
  elements_of(name, shape, dtype);
  expect_new("a parameter", name);
  const Value v = trainable ? flat(name, shape) : whole({name, Kind::parameter, dtype, 0}, shape);
  const WeightFormat format = dtype == DType::f16    ? WeightFormat::f16
                              : dtype == DType::bf16 ? WeightFormat::bf16
                                                     : WeightFormat::f32;
  program_.parameters.push_back({std::move(name), v, trainable, shape, format});
  return v;
}

Value Builder::flat(std::string name, const Shape& shape) {
  if (flat_ < 0) {
    expect_new("the storage of parameters that train", "parameters");
    flat_ = add({"parameters", Kind::parameter, DType::f32, 0});
  }
  Storage& storage = program_.storages[static_cast<std::size_t>(flat_)];
  const Index offset = storage.elements;
  elements_of(storage.name, {offset + shape.size() + kAlignment}, storage.dtype);
  storage.elements = (offset + shape.size() + kAlignment - 1) / kAlignment * kAlignment;
  return add({std::move(name), flat_, offset, shape, row_major_strides(shape), 0, {}});
}

Parameter Builder::frozen_parameter(std::string name, const Shape& shape, WeightFormat format, Index rows,
                                    bool zero_row) {
  name.insert(0, prefix_);
  if (shape.rank() != 2)
    throw InputError(name, fmt::format("its shape {} is no matrix's", to_string(shape)), "give [rows, columns]");
  if (rows < 1)
    throw InputError(name, fmt::format("parts of {} rows hold none of it", rows), "have parts of one row or more");
  elements_of(name, shape, DType::f32);
  expect_new("a parameter", name);
  Parameter p{name, {}, false, shape, format};
  const DType dtype = is_packed(format) ? DType::u8 : activation_dtype(format);
  const Index columns = row_bytes(format, shape[1]) / static_cast<Index>(size_of(dtype));
  for (Index begin = 0; begin < shape[0] || begin == 0; begin += rows) {
    const Index end = std::min(shape[0], begin + rows), stored = end - begin + (zero_row ? 1 : 0);
    const std::string own = rows < shape[0] ? fmt::format("{} rows {} to {}", name, begin, end) : name;
    PartOfRows part{begin, end, whole({own, Kind::parameter, dtype, 0}, {stored, columns})};
    if (zero_row) part.value = this->rows(part.value, 0, end - begin);
    if (format == WeightFormat::nf4)
      part.scales = whole({own + ".absmax", Kind::parameter, DType::f32, 0}, {stored, (shape[1] + 63) / 64});
    p.parts.push_back(part);
  }
  p.value = p.parts[0].value, p.scales = p.parts[0].scales;
  program_.parameters.push_back(p);
  if (p.parts.size() == 1) program_.parameters.back().parts.clear();
  return p;
}

Value Builder::frozen_stack(std::span<const NamedDim> matrices, Index columns, WeightFormat format) {
  std::string all;
  Index rows = 0;
  for (const auto& [name, extent] : matrices) all += (all.empty() ? "" : " and ") + full_name(name), rows += extent;
  if (matrices.empty() || format == WeightFormat::nf4)
    throw InputError(all, "no matrices, or scales apart from their codes, make no stack", "have them one by one");
  elements_of(all, {rows, columns}, DType::f32);
  const DType dtype = is_packed(format) ? DType::u8 : activation_dtype(format);
  const Index width = row_bytes(format, columns) / static_cast<Index>(size_of(dtype));
  const Shape whole{rows, width};
  const std::int32_t storage = add(Storage{all, Kind::parameter, dtype, whole.size()});
  Index begin = 0;
  Value first;
  for (const auto& [name, extent] : matrices) {
    const std::string own = full_name(name);
    elements_of(own, {extent, columns}, DType::f32);
    expect_new("a parameter", own);
    const Shape shape{extent, width};
    const Value v = add({own, storage, begin * width, shape, row_major_strides(shape), 0, {}});
    program_.parameters.push_back({own, v, false, {extent, columns}, format});
    if (!first) first = v;
    begin += extent;
  }
  return add({all, storage, 0, whole, row_major_strides(whole), 0, first});
}

Value Builder::join(std::span<const Value> parts) {
  if (parts.empty()) throw InputError("join", "it was given no part", "give one or more");
  if (parts.size() == 1) return parts[0];
  const Index rows = shape(parts[0]).rank() > 0 ? shape(parts[0])[0] : 0;
  Index width = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    expect_joined(parts[p], rows, dtype(parts[0]));
    for (std::size_t other = 0; other < p; ++other)
      if (program_[parts[p]].storage == program_[parts[other]].storage)
        throw InputError("join", fmt::format("{} is given twice", program_[parts[p]].name), "give each part once");
    width += shape(parts[p])[1];
  }
  Value all = whole({program_[program_.base_of(parts[0])].name + " and others", Kind::temporary, dtype(parts[0]), 0},
                    {rows, width});
  const std::int32_t storage = program_[all].storage;
  Index column = 0;
  for (const Value part : parts) {
    const std::int32_t own = program_[part].storage;
    const Index columns = shape(part)[1];
    for (auto i = static_cast<std::size_t>(program_.base_of(part).id); i < program_.values.size(); ++i)
      if (ValueInfo& v = program_.values[i]; v.storage == own) {
        v.storage = storage, v.offset = column;
        v.strides = v.shape.rank() == 1 ? Shape{1} : Shape{width, 1};
      }
    program_.storages[static_cast<std::size_t>(own)].elements = 0;
    ValueInfo& written = program_.values[static_cast<std::size_t>(program_.base_of(part).id)];
    written.version = write(written);
    column += columns;
  }
  program_.values[static_cast<std::size_t>(all.id)].version = static_cast<std::int32_t>(parts.size());
  return all;
}

void Builder::expect_joined(Value part, Index rows, DType dtype) const {
  const ValueInfo& info = own(part);
  const auto refuse = [&](const std::string& problem, const char* remedy) {
    throw InputError("join", fmt::format("{} {}", info.name, problem), remedy);
  };
  if (info.shape.rank() != 2 || info.shape[0] != rows)
    refuse(fmt::format("has shape {}, and the first part {} rows", to_string(info.shape), rows),
           "join matrices with one number of rows");
  const Storage& storage = program_.storage_of(part);
  const Value base = program_.base_of(part);
  if (storage.dtype != dtype)
    refuse(fmt::format("is {}, and the first part {}", assay::name(storage.dtype), assay::name(dtype)),
           "join results of one format");
  if (storage.kind != Kind::temporary || !is_floating(dtype) || info.shape.size() != storage.elements)
    refuse("is not the whole result of a step", "join results, or copy what is none with tensor_layout first");
  for (auto step = program_.steps.rbegin(); step != program_.steps.rend(); ++step)
    for (std::size_t t = 0; t < step->tensors.size(); ++t) {
      if (program_[step->tensors[t]].storage != info.storage) continue;
      if (step->op->tensors[t].role == Role::out && step->tensors[t] == base) return;
      refuse(fmt::format("is used by {} already", describe(*step)), "join results before anything reads them");
    }
}

Value Builder::reshape(Value v, const Shape& shape) {
  ValueInfo info = own(v);
  if (info.shape == shape) return v;
  elements_of(info.name, shape, program_.storage_of(v).dtype);
  if (shape.size() != info.shape.size() || !dense(info))
    throw InputError(info.name,
                     fmt::format("{} of shape {} cannot be seen as {}", dense(info) ? "a value" : "a value with gaps",
                                 to_string(info.shape), to_string(shape)),
                     "keep the number of elements, and copy what has gaps with tensor_layout first");
  info.shape = shape;
  info.strides = row_major_strides(shape);
  info.base = v;
  return add(std::move(info));
}

Value Builder::rows(Value v, Index begin, Index end) {
  ValueInfo info = own(v);
  if (info.shape.rank() == 0 || begin < 0 || begin > end || end > info.shape[0])
    throw InputError(info.name,
                     fmt::format("rows {} to {} of shape {} do not exist", begin, end, to_string(info.shape)),
                     "name rows that it has");
  info.offset += begin * info.strides[0];
  info.shape[0] = end - begin;
  info.base = v;
  return add(std::move(info));
}

Value Builder::latest(Value v) {
  ValueInfo info = own(v);
  if (is_current(info)) return v;
  info.version = static_cast<std::int32_t>(writes_[static_cast<std::size_t>(info.storage)].size());
  info.base = {};
  return add(std::move(info));
}

std::int32_t Builder::write(const ValueInfo& v) {
  std::vector<Write>& writes = writes_[static_cast<std::size_t>(v.storage)];
  writes.push_back({v.offset, v.offset + View<const float>(nullptr, v.shape, v.strides).extent()});
  return static_cast<std::int32_t>(writes.size());
}

bool Builder::is_current(const ValueInfo& v) const {
  const std::vector<Write>& writes = writes_[static_cast<std::size_t>(v.storage)];
  const Index end = v.offset + View<const float>(nullptr, v.shape, v.strides).extent();
  for (std::size_t n = writes.size(); n > static_cast<std::size_t>(v.version); --n)
    if (writes[n - 1].begin < end && v.offset < writes[n - 1].end) return false;
  return true;
}

void Builder::expect_current(Value v, const std::string& reader) const {
  if (!is_own(v))
    throw InputError(reader, "an operand is no value of this program", "pass values that this builder made");
  const ValueInfo& info = program_[v];
  if (!is_current(info))
    throw InputError(reader, fmt::format("it reads {} as it was before a later step changed it in place", info.name),
                     "read the value that the later step returned, or move this step before it");
}

std::vector<Value> Builder::call(std::string_view name, std::span<const Value> reads,
                                 std::span<const NamedNumber> params, std::span<const NamedDim> dims) {
  const OpDescriptor& op = operation(name);
  Step step{&op, {}, {}, {}, prefix_ + std::string(name)};
  if (const int n = labels_[step.label]++; n > 0) step.label += fmt::format(".{}", n);
  const std::string where = describe(step);

  std::vector<int> read, written;
  for (int t = 0; t < static_cast<int>(op.tensors.size()); ++t) {
    const Role role = op.tensors[static_cast<std::size_t>(t)].role;
    if (role != Role::out) read.push_back(t);
    if (role != Role::in) written.push_back(t);
  }
  if (read.size() != reads.size())
    throw InputError(where, fmt::format("it reads {} tensors and was given {}", read.size(), reads.size()),
                     fmt::format("see assay explain {}", name));

  contract::DimBinding binding(op, where);
  std::optional<DType> stored;  // the format of the tensors whose contract leaves it open
  for (std::size_t i = 0; i < read.size(); ++i) {
    expect_current(reads[i], where);
    const TensorInfo& info = op.tensors[static_cast<std::size_t>(read[i])];
    const Storage& storage = program_.storage_of(reads[i]);
    if (storage.dtype != info.dtype && !(info.storage && is_floating(storage.dtype)))
      throw InputError(where,
                       fmt::format("{} is {}, and the contract wants {} in {}", program_[reads[i]].name,
                                   assay::name(storage.dtype), info.name, assay::name(info.dtype)),
                       "pass a value of that type");
    if (info.storage && stored.value_or(storage.dtype) != storage.dtype)
      throw InputError(where,
                       fmt::format("{} is {}, and a tensor before it {}", program_[reads[i]].name,
                                   assay::name(storage.dtype), assay::name(*stored)),
                       "pass values of one storage format");
    if (info.storage) stored = storage.dtype;
    binding.shape(read[i], program_[reads[i]].shape);
  }
  for (const NamedDim& d : dims) binding.dim(d.name, d.extent);
  step.dims = binding.dims();

  for (const ParamInfo& info : op.params) {
    const auto given = std::ranges::find(params, info.name, &NamedNumber::name);
    if (given == params.end())
      throw InputError(where, fmt::format("the parameter {} is not given", info.name),
                       fmt::format("see assay explain {}", name));
    step.params.push_back(given->value);
  }
  for (const NamedNumber& p : params) {
    if (std::ranges::find(op.params, p.name, &ParamInfo::name) == op.params.end())
      throw InputError(where, fmt::format("there is no parameter {}", p.name),
                       fmt::format("see assay explain {}", name));
    if (std::ranges::count(params, p.name, &NamedNumber::name) > 1)
      throw InputError(where, fmt::format("the parameter {} is given twice", p.name), "give it once");
  }

  step.tensors.resize(op.tensors.size());
  for (std::size_t i = 0; i < read.size(); ++i) step.tensors[static_cast<std::size_t>(read[i])] = reads[i];
  std::vector<Value> results;
  for (const int t : written) {
    const TensorInfo& info = op.tensors[static_cast<std::size_t>(t)];
    Value& tensor = step.tensors[static_cast<std::size_t>(t)];
    const std::string result_name = fmt::format("{}.{}", step.label, info.name);
    if (info.role == Role::out) {
      const DType dtype = info.storage ? stored.value_or(info.dtype) : info.dtype;
      tensor = whole({result_name, Kind::temporary, dtype, 0}, info.shape(step.dims));
      program_.values.back().version = write(program_.values.back());
    } else {
      ValueInfo after = program_[tensor];
      const Kind kind = program_.storage_of(tensor).kind;
      if (kind == Kind::input || kind == Kind::constant)
        throw InputError(where,
                         fmt::format("it would overwrite {}, which is {}", after.name,
                                     kind == Kind::input ? "an input" : "constant"),
                         "copy it with tensor_layout first");
      after.version = write(after);
      after.base = {};
      tensor = add(std::move(after));
    }
    results.push_back(tensor);
  }
  program_.steps.push_back(std::move(step));
  return results;
}

void Builder::output(Value v) {
  expect_current(v, "output");
  program_.outputs.push_back(v);
}

}  // namespace assay::program
