#include "plugin/shim.hpp"

#include <ffi.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>

#include "assay/plugin.h"
#include "core/view.hpp"
#include "plugin/dlpack_call.hpp"
#include "plugin/workspace.hpp"
#include "runtime/device.hpp"

namespace assay::plugin {

namespace {

using Type = Shim::Type;
using What = Shim::What;

union Value {
  signed char character;
  std::int32_t int32;
  std::int64_t int64;
  std::size_t size;
  float real32;
  double real64;
  void* pointer;
  ffi_arg returned;
};

const Tensor& tensor_at(const Call& call, int index) { return call.tensors[static_cast<std::size_t>(index)]; }

bool is_integer(Type type) {
  return type == Type::int32 || type == Type::int64 || type == Type::size || type == Type::character;
}

/// Returns whether this type of the function can represent the number.
bool fits(double number, Type type) {
  if (type == Type::size) return number >= 0 && number < 0x1p64;
  const double most = type == Type::int64 ? 0x1p63 : type == Type::int32 ? 0x1p31 : 0x1p7;
  return number >= -most && number < most;
}

double number_of(const Shim::Argument& argument, const Call& call) {
  switch (argument.what) {
    case What::dim: return static_cast<double>(call.dims[static_cast<std::size_t>(argument.index)]);
    case What::param: return call.params[static_cast<std::size_t>(argument.index)];
    case What::stride: {
      const Tensor& tensor = tensor_at(call, argument.index);
      const std::size_t unit = argument.in_bytes ? size_of(tensor.dtype) : 1;
      return static_cast<double>(tensor.strides[argument.axis]) * static_cast<double>(unit);
    }
    case What::number:
    case What::workspace: return argument.expression.value(scope_of(call));
    case What::constant: return argument.number;
    case What::text: return argument.type == Type::character ? static_cast<double>(argument.text[0]) : 0;
    default: return 0;
  }
}

Value value_of(double number, Type type) {
  Value value{};
  switch (type) {
    case Type::character: value.character = static_cast<signed char>(number); break;
    case Type::int32: value.int32 = static_cast<std::int32_t>(number); break;
    case Type::int64: value.int64 = static_cast<std::int64_t>(number); break;
    case Type::size: value.size = static_cast<std::size_t>(number); break;
    case Type::real32: value.real32 = static_cast<float>(number); break;
    case Type::real64: value.real64 = number; break;
    case Type::pointer: break;
  }
  return value;
}

ffi_type* ffi_type_of(Type type) {
  ffi_type* const types[] = {&ffi_type_sint32, &ffi_type_sint64, &ffi_type_uint64, &ffi_type_schar,
                             &ffi_type_float,  &ffi_type_double, &ffi_type_pointer};
  return types[static_cast<int>(type)];
}

/// State shared by all calls of a loop.
struct LoopContext {
  const Call& whole;
  Device& device;
  std::deque<Workspace> memory;       ///< workspaces, joined tensors and sequences, in the order of the arguments
  std::vector<std::int64_t> indices;  ///< loop indices
};

/// Returns the first element as a number.
double first_of(const Tensor& tensor, Device& device) {
  std::uint32_t bits = 0;
  device.download(&bits, tensor.data, size_of(tensor.dtype));
  return tensor.dtype == DType::i32 ? static_cast<double>(static_cast<std::int32_t>(bits))
                                    : static_cast<double>(std::bit_cast<float>(bits));
}

/// Concatenates the tensors along an axis, dense, in host memory.
std::vector<std::byte> joined(const std::vector<int>& tensors, int axis, const Call& call, Device& device) {
  std::vector<std::byte> bytes;
  std::vector<std::vector<std::byte>> held;
  Index outer = 1;
  for (const int t : tensors) {
    const Tensor& tensor = tensor_at(call, t);
    const View<const std::byte> view(nullptr, tensor.shape, tensor.strides);
    held.emplace_back(static_cast<std::size_t>(view.extent()) * size_of(tensor.dtype));
    if (!held.back().empty()) device.download(held.back().data(), tensor.data, held.back().size());
  }
  const Tensor& first = tensor_at(call, tensors[0]);
  for (int a = 0; a < axis; ++a) outer *= first.shape[a];
  for (Index o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& tensor = tensor_at(call, tensors[i]);
      const std::size_t unit = size_of(tensor.dtype);
      Index inner = 1;
      for (int a = axis; a < tensor.shape.rank(); ++a) inner *= tensor.shape[a];
      for (Index e = 0; e < inner; ++e) {
        Index rest = e, offset = 0;
        for (int a = tensor.shape.rank() - 1; a >= axis; --a)
          offset += rest % tensor.shape[a] * tensor.strides[a], rest /= tensor.shape[a];
        rest = o;
        for (int a = axis - 1; a >= 0; --a)
          offset += rest % tensor.shape[a] * tensor.strides[a], rest /= tensor.shape[a];
        const std::byte* from = held[i].data() + static_cast<std::size_t>(offset) * unit;
        bytes.insert(bytes.end(), from, from + unit);
      }
    }
  return bytes;
}

/// Allocates the memory that the function gets in addition to the tensors.
void lend(const Shim& shim, LoopContext& lent) {
  for (const Shim::Argument& a : shim.arguments) {
    if (a.what == What::workspace) {
      lent.memory.emplace_back(lent.device, a.text, static_cast<std::size_t>(std::max(0.0, number_of(a, lent.whole))));
    } else if (a.what == What::joined) {
      lent.memory.emplace_back(lent.device, a.text, joined(a.tensors, a.axis, lent.whole, lent.device));
    } else if (a.what == What::sequence) {
      const double first = lent.whole.params[static_cast<std::size_t>(a.index)],
                   count = a.expression.value(scope_of(lent.whole));
      std::vector<std::int32_t> numbers(static_cast<std::size_t>(std::max(0.0, count)));
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<std::int32_t>(first) + static_cast<std::int32_t>(i);
      const auto bytes = std::as_bytes(std::span(numbers));
      lent.memory.emplace_back(lent.device, a.text, std::vector(bytes.begin(), bytes.end()));
    }
  }
}

/// An axis of a tensor that a loop iterates over.
struct Step {
  std::size_t loop, tensor;
  int axis;
  Index share;  ///< iterations with the same start: query heads that share a key-value head
};

std::vector<Step> steps_of(const Shim& shim, const OpDescriptor& op, const Call& call) {
  std::vector<Step> steps;
  const std::vector<Index> ones(op.dims.size(), 1);
  for (std::size_t loop = 0; loop < shim.loops.size(); ++loop) {
    const auto looped = static_cast<std::size_t>(shim.loops[loop]);
    for (std::size_t d = 0; d < op.dims.size(); ++d) {
      const bool shared = op.dims[looped].multiple_of == static_cast<int>(d) &&
                          std::ranges::find(shim.loops, static_cast<int>(d)) == shim.loops.end();
      if (d != looped && !shared) continue;
      std::vector<Index> other = ones;
      other[d] = 2;
      for (std::size_t t = 0; t < op.tensors.size(); ++t) {
        const Shape one = op.tensors[t].shape(ones), two = op.tensors[t].shape(other);
        for (int axis = 0; axis < one.rank(); ++axis)
          if (two[axis] == one[axis] + 1)
            steps.push_back({loop, t, axis, std::max<Index>(1, call.dims[looped] / std::max<Index>(1, call.dims[d]))});
      }
    }
  }
  return steps;
}

/// Returns the call with tensors that start at the current loop indices.
Call part_of(const std::vector<Step>& steps, const LoopContext& lent) {
  Call part = lent.whole;
  for (const Step& step : steps) {
    Tensor& tensor = part.tensors[step.tensor];
    if (tensor.shape[step.axis] == 0) continue;
    const Index offset = lent.indices[step.loop] / step.share * tensor.strides[step.axis];
    tensor.data = static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(offset) * size_of(tensor.dtype);
    tensor.shape[step.axis] = 1;
  }
  return part;
}

}  // namespace

std::optional<std::string> Shim::refuse(const OpDescriptor& op, const Call& call) const {
  if (requirements)
    if (auto why = requirements->refuse(call.dims, call.params)) return why;
  for (std::size_t t = 0; t < call.tensors.size(); ++t) {
    const Tensor& tensor = call.tensors[t];
    const View<const std::byte> view(nullptr, tensor.shape, tensor.strides);
    const auto layout = [&](std::string_view wanted) {
      return fmt::format("its shim requires {} tensors, and {} of shape {} has strides {}", wanted, op.tensors[t].name,
                         to_string(tensor.shape), to_string(tensor.strides));
    };
    if (dense && !view.contiguous()) return layout("dense row-major");
    if (row_major && !assay::row_major(view)) return layout("row-major");
    if (near && view.extent() > INT32_MAX)
      return fmt::format("its shim requires offsets below 2^31, and {} spans {} elements", op.tensors[t].name,
                         view.extent());
    if (view.size() > 0 && reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0)
      return fmt::format("its shim requires tensors aligned to {} bytes, and {} is not", alignment, op.tensors[t].name);
  }
  for (const Argument& a : arguments) {
    const double number = number_of(a, call);
    if (!is_integer(a.type) || fits(number, a.type)) continue;
    return std::isnan(number) ? fmt::format("{} divides by 0", a.text)
                              : fmt::format("{} = {:.0f} does not fit the type of its argument", a.text, number);
  }
  return std::nullopt;
}

Limits Shim::limits() const {
  Limits limits;
  if (requirements && requirements->any()) {
    const Requirements& required = *requirements;
    limits.listed = required.listed();
    limits.refuse = [required](auto dims, auto params) { return required.refuse(dims, params); };
    limits.repair = [required](auto& dims, auto& params, std::uint64_t seed) {
      return required.repair(dims, params, seed);
    };
  }
  for (const Fixed& f : fixed)
    limits.fixed.push_back({f.tensor, [value = f.value.value](auto dims, auto params) {
                              return value(Scope{dims, params});
                            }});
  limits.dense = dense;
  limits.aligned = alignment > 1;
  limits.near = near;
  limits.absent = absent;
  limits.zeroed = zeroed;
  limits.starts_as = in_place;
  limits.rejects = rejects;
  return limits;
}

std::uint32_t Shim::word_of(const Argument& argument, const Call& call) {
  return std::bit_cast<std::uint32_t>(value_of(number_of(argument, call), argument.type).int32);
}

int Shim::call(void* function, const OpDescriptor& op, const Call& whole, Device& device, char* message,
               std::size_t message_bytes) const {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  std::vector<ffi_type*> types;
  for (const Argument& a : arguments) types.push_back(a.by_address ? &ffi_type_pointer : ffi_type_of(a.type));
  ffi_type* const returned = returns_status         ? &ffi_type_sint32
                             : returned_tensor >= 0 ? ffi_type_of(returned_type)
                                                    : &ffi_type_void;
  ffi_cif interface;
  if (ffi_prep_cif(&interface, FFI_DEFAULT_ABI, static_cast<unsigned>(types.size()), returned, types.data()) != FFI_OK)
    throw std::logic_error("libffi takes no call of these types");
  LoopContext lent{whole, device, {}, std::vector<std::int64_t>(loops.size())};
  lend(*this, lent);
  const std::vector<Step> steps = steps_of(*this, op, whole);
  Index calls = 1;
  for (const int d : loops) calls *= whole.dims[static_cast<std::size_t>(d)];
  int answer = ASSAY_DONE;
  for (Index number = 0; number < calls && answer == ASSAY_DONE; ++number) {
    Index rest = number;
    for (std::size_t loop = loops.size(); loop-- > 0;) {
      const Index count = whole.dims[static_cast<std::size_t>(loops[loop])];
      lent.indices[loop] = rest % count, rest /= count;
    }
    const Call part = loops.empty() ? whole : part_of(steps, lent);
    std::vector<Value> values(arguments.size());
    std::vector<void*> pointed(arguments.size()), addresses(arguments.size());
    std::size_t lent_next = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      double n = number_of(a, part);
      if (a.what == What::index) n = static_cast<double>(lent.indices[static_cast<std::size_t>(a.index)]);
      if (a.what == What::value) n = first_of(tensor_at(part, a.index), device);
      values[i] = value_of(n, a.type);
      if (a.what == What::tensor)
        values[i].pointer =
            std::ranges::find(absent, a.index) != absent.end() ? nullptr : tensor_at(part, a.index).data;
      if (a.what == What::text && a.type == Type::pointer) values[i].pointer = const_cast<char*>(a.text.c_str());
      if (a.what == What::stream) values[i].pointer = stream_of(device);
      if (a.what == What::workspace || a.what == What::joined || a.what == What::sequence)
        values[i].pointer = lent.memory[lent_next++].address();
      pointed[i] = &values[i];
      addresses[i] = a.by_address ? static_cast<void*>(&pointed[i]) : static_cast<void*>(&values[i]);
    }
    Value result{};
    ffi_call(&interface, reinterpret_cast<void (*)()>(function), &result, addresses.data());
    if (returned_tensor >= 0) {
      const float element = returned_type == Type::real64 ? static_cast<float>(result.real64) : result.real32;
      const Tensor& output = tensor_at(part, returned_tensor);
      if (output.shape.size() > 0) device.upload(output.data, &element, sizeof element);
    }
    const int status = returns_status ? static_cast<int>(result.returned) : done;
    if (status == done) continue;
    const bool refuses = others_refuse || std::ranges::find(refused, status) != refused.end();
    fmt::format_to_n(message, message_bytes - 1, "it returned {}{}", status, refuses ? ", by which it refuses" : "");
    answer = refuses ? ASSAY_REFUSED : ASSAY_FAILED;
  }
  if (!lent.memory.empty()) device.synchronize();
  for (const Workspace& memory : lent.memory)
    if (const auto damage = memory.damage()) throw std::runtime_error(*damage);
  return answer;
}

}  // namespace assay::plugin
