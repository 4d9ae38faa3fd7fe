#include "plugin/shim.hpp"

#include <ffi.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "assay/plugin.h"
#include "core/view.hpp"

namespace assay::plugin {

namespace {

union Value {
  std::int32_t int32;
  std::int64_t int64;
  std::size_t size;
  float real32;
  double real64;
  void* pointer;
  ffi_arg returned;
};

const Tensor& tensor_at(const Call& call, int index) { return call.tensors[static_cast<std::size_t>(index)]; }

/// Whether an integer type of the function holds the number.
bool fits(double number, bool wide, bool is_signed) {
  const double most = wide ? 0x1p63 : 0x1p31;
  return is_signed ? number >= -most && number < most : number >= 0 && number < 2 * most;
}

double number_of(const Shim::Argument& argument, const Call& call) {
  using What = Shim::What;
  switch (argument.what) {
    case What::dim:
      return static_cast<double>(call.dims[static_cast<std::size_t>(argument.index)]);
    case What::param:
      return call.params[static_cast<std::size_t>(argument.index)];
    case What::stride:
      return static_cast<double>(tensor_at(call, argument.index).strides[argument.axis]);
    case What::constant:
      return argument.number;
    case What::tensor:
    case What::stream:
      return 0;
  }
  return 0;
}

Value value_of(const Shim::Argument& argument, const Call& call, void* stream) {
  using Type = Shim::Type;
  using What = Shim::What;
  Value value{};
  const double number = number_of(argument, call);
  switch (argument.type) {
    case Type::int32:
      value.int32 = static_cast<std::int32_t>(number);
      break;
    case Type::int64:
      value.int64 = static_cast<std::int64_t>(number);
      break;
    case Type::size:
      value.size = static_cast<std::size_t>(number);
      break;
    case Type::real32:
      value.real32 = static_cast<float>(number);
      break;
    case Type::real64:
      value.real64 = number;
      break;
    case Type::pointer:
      value.pointer = argument.what == What::tensor   ? tensor_at(call, argument.index).data
                      : argument.what == What::stream ? stream
                                                      : nullptr;
      break;
  }
  return value;
}

}  // namespace

std::optional<std::string> Shim::refuse(const OpDescriptor& op, const Call& call) const {
  for (std::size_t t = 0; t < call.tensors.size(); ++t) {
    const Tensor& tensor = call.tensors[t];
    const View<const std::byte> view(nullptr, tensor.shape, tensor.strides);
    const auto layout = [&](std::string_view wanted) {
      return fmt::format("its shim requires {} tensors, and {} of shape {} has strides {}", wanted, op.tensors[t].name,
                         to_string(tensor.shape), to_string(tensor.strides));
    };
    if (dense && !view.contiguous()) return layout("dense row-major");
    if (row_major && !assay::row_major(view)) return layout("row-major");
    if (nonempty && view.size() == 0)
      return fmt::format("its shim requires tensors with elements, and {} has shape {}", op.tensors[t].name,
                         to_string(tensor.shape));
    if (view.size() > 0 && reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0)
      return fmt::format("its shim requires tensors aligned to {} bytes, and {} is not", alignment, op.tensors[t].name);
  }
  for (const Argument& a : arguments) {
    if (a.type != Type::int32 && a.type != Type::int64 && a.type != Type::size) continue;
    const double number = number_of(a, call);
    if (!fits(number, a.type != Type::int32, a.type != Type::size))
      return fmt::format("{} = {:.0f} does not fit the type of its argument", a.text, number);
  }
  return std::nullopt;
}

std::uint32_t Shim::word_of(const Argument& argument, const Call& call) {
  return std::bit_cast<std::uint32_t>(value_of(argument, call, nullptr).int32);
}

int Shim::call(void* function, const Call& call, void* stream, char* message, std::size_t message_bytes) const {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  ffi_type* const ffi_types[] = {&ffi_type_sint32, &ffi_type_sint64, &ffi_type_uint64,
                                 &ffi_type_float,  &ffi_type_double, &ffi_type_pointer};
  std::vector<Value> values;
  std::vector<ffi_type*> types;
  for (const Argument& a : arguments) {
    values.push_back(value_of(a, call, stream));
    types.push_back(ffi_types[static_cast<int>(a.type)]);
  }
  std::vector<void*> addresses;
  for (Value& value : values) addresses.push_back(&value);
  ffi_cif interface;
  if (ffi_prep_cif(&interface, FFI_DEFAULT_ABI, static_cast<unsigned>(types.size()),
                   returns_status ? &ffi_type_sint32 : &ffi_type_void, types.data()) != FFI_OK)
    throw std::logic_error("libffi takes no call of these types");
  Value result{};
  ffi_call(&interface, reinterpret_cast<void (*)()>(function), &result, addresses.data());
  const int status = returns_status ? static_cast<int>(result.returned) : 0;
  if (status == 0) return ASSAY_DONE;
  const bool refuses = refused == status;
  fmt::format_to_n(message, message_bytes - 1, "it returned {}{}", status, refuses ? ", by which it refuses" : "");
  return refuses ? ASSAY_REFUSED : ASSAY_FAILED;
}

}  // namespace assay::plugin
