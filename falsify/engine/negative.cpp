#include "falsify/engine/negative.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "contract/enforce.hpp"
#include "core/errors.hpp"
#include "falsify/engine/case.hpp"
#include "runtime/registry.hpp"

namespace assay::falsify {
namespace {

/// Address space that uses memory only where touched: tensors at the limits of an operation exceed the machine's
/// memory, and no condition reads their elements.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    address_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address_ == MAP_FAILED) throw Unavailable("address space", fmt::format("{} bytes could not be mapped", bytes_));
  }
  Reserved(Reserved&& other) noexcept : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Reserved& operator=(Reserved&&) = delete;
  ~Reserved() {
    if (address_ != nullptr) munmap(address_, bytes_);
  }

  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A call with its memory; the words of all tensors are distinct, so that any store shows.
struct Sample {
  Call call;
  std::vector<std::vector<std::uint32_t>> memory;
  std::vector<Reserved> large{};
  Index room = 0;  ///< words behind each tensor, so that a tensor moved onto it reaches no third

  /// Integers hold the least value that their contract admits.
  void place(std::size_t tensor, const TensorInfo& info, const Shape& shape, const Shape& strides) {
    const Index extent = std::max<Index>(1, View<const float>(nullptr, shape, strides).extent());
    std::vector<std::uint32_t>& words = memory[tensor];
    constexpr Index kLarge = Index{1} << 24;
    if (extent > kLarge && info.least == nullptr) {
      words.clear();
      large.emplace_back(static_cast<std::size_t>(extent) * sizeof(std::uint32_t));
      call.tensors[tensor] = {info.dtype, large.back().address(), shape, strides};
      return;
    }
    words.resize(static_cast<std::size_t>(extent + room));
    std::uint32_t word = 0x3f800001 + (static_cast<std::uint32_t>(tensor) << 20);
    if (info.least != nullptr) std::ranges::fill(words, static_cast<std::uint32_t>(info.least(call.dims)));
    else std::ranges::generate(words, [&] { return word++; });
    call.tensors[tensor] = {info.dtype, words.data(), shape, strides};
  }
};

std::vector<Index> small_dims(const OpDescriptor& op) {
  std::vector<Index> dims;
  for (const DimInfo& dim : op.dims)
    dims.push_back(std::clamp<Index>((2 + std::ssize(dims)) * dim.multiple, dim.min, dim.max));
  for (std::size_t d = 0; d < dims.size(); ++d)  // twice the dim of which this one is a multiple
    if (op.dims[d].multiple_of >= 0)
      dims[d] = std::min(op.dims[d].max, 2 * dims[static_cast<std::size_t>(op.dims[d].multiple_of)]);
  make_valid(op, dims);
  return dims;
}

/// Returns the dense call with these dims.
Sample valid_sample(const OpDescriptor& op, std::vector<Index> dims) {
  Sample sample{{std::move(dims), {}, std::vector<Tensor>(op.tensors.size())}, {}};
  sample.memory.resize(op.tensors.size());
  for (const ParamInfo& param : op.params) sample.call.params.push_back(param.typical);
  constexpr Index kSmall = Index{1} << 16;
  for (const TensorInfo& info : op.tensors)
    if (const Index size = info.shape(sample.call.dims).size(); size <= kSmall)
      sample.room = std::max(sample.room, size);
  for (std::size_t i = 0; i < op.tensors.size(); ++i) {
    const Shape shape = op.tensors[i].shape(sample.call.dims);
    sample.place(i, op.tensors[i], shape, row_major_strides(shape));
  }
  return sample;
}

Sample broken_sample(const OpDescriptor& op, const Violation& violation) {
  const std::vector<Index> dims = small_dims(op);
  const auto changed = static_cast<std::size_t>(violation.tensor);
  const Shape value = violation.value != nullptr ? violation.value(dims) : Shape{};
  if (violation.kind == Violation::Kind::dim) {
    std::vector<Index> other = dims;
    other[changed] = value[0];
    return valid_sample(op, std::move(other));
  }
  Sample sample = valid_sample(op, dims);
  std::vector<Tensor>& tensors = sample.call.tensors;
  switch (violation.kind) {
    case Violation::Kind::dim: break;
    case Violation::Kind::shape: sample.place(changed, op.tensors[changed], value, row_major_strides(value)); break;
    case Violation::Kind::strides: sample.place(changed, op.tensors[changed], tensors[changed].shape, value); break;
    case Violation::Kind::alias: tensors[changed].data = tensors[static_cast<std::size_t>(violation.other)].data; break;
    case Violation::Kind::null: tensors[changed].data = nullptr; break;
    case Violation::Kind::param: sample.call.params[changed] = violation.number; break;
    case Violation::Kind::value: sample.memory[changed].front() = static_cast<std::uint32_t>(value[0]); break;
  }
  return sample;
}

bool reached = false;
const Kernel kProbe{.op = "any",
                    .id = "any/cpu/probe",
                    .source = "falsify/engine/negative.cpp",
                    .summary = "computes nothing; says that it was reached",
                    .run = [](const Call&, Device&) { reached = true; }};

/// Enables checks of requires clauses but not of ensures clauses, since the probe computes nothing.
class LevelPre {
 public:
  LevelPre() { contract::set_level(contract::Level::pre); }
  ~LevelPre() { contract::set_level(before_); }
  LevelPre(const LevelPre&) = delete;
  LevelPre& operator=(const LevelPre&) = delete;

 private:
  contract::Level before_ = contract::level();
};

/// Runs the probe behind the contract; returns the violation, if any.
std::optional<ContractViolation> run_probe(const OpDescriptor& op, const Call& call) {
  const LevelPre in_force;
  reached = false;
  try {
    op.checked(call, kProbe, device(Backend::cpu));
    return std::nullopt;
  } catch (const ContractViolation& e) {
    return e;
  }
}

/// Returns strides with gaps: one element after each row (for packed bits up to the next word) and, if the tensor
/// allows it, two between neighbours.
Shape padded_strides(const TensorInfo& info, const Shape& shape) {
  Shape strides = shape;
  Index step = info.unit_inner_stride ? 1 : 3;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step = step * shape[axis] + 1;
    if (info.dtype == DType::u8) step = (step + 3) / 4 * 4;
  }
  return strides;
}

Shape column_major_strides(const Shape& shape) {
  Shape strides = shape;
  Index step = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

/// Returns one sentence if the valid call does not reach the kernel.
std::string refusal(const OpDescriptor& op, const Call& call, std::string_view which) {
  if (const auto violation = run_probe(op, call)) return fmt::format("{} is refused: {}", which, violation->what());
  return reached ? "" : fmt::format("{} does not reach the kernel", which);
}

/// Returns the refusal of a call with one dim at a limit; calls without elements also without memory.
std::string refusal_at_limits(const OpDescriptor& op) {
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    for (const Index limit : {op.dims[d].min, op.dims[d].max}) {
      std::vector<Index> dims = small_dims(op);
      dims[d] = limit;
      make_valid(op, dims);
      Sample sample = valid_sample(op, dims);
      for (Tensor& tensor : sample.call.tensors)
        if (tensor.shape.size() == 0) tensor.data = nullptr;
      const std::string fault =
          refusal(op, sample.call, fmt::format("a valid call with {} = {}", op.dims[d].name, limit));
      if (!fault.empty()) return fault;
    }
  return {};
}

}  // namespace

std::string broken_call_fault(const OpDescriptor& op, std::string_view clause, const Violation& violation) {
  const std::string fault = refusal(op, valid_sample(op, small_dims(op)).call, "a valid call");
  if (!fault.empty()) return fault;
  const Sample broken = broken_sample(op, violation);
  const auto memory_before = broken.memory;
  const auto caught = run_probe(op, broken.call);
  if (!caught) return fmt::format("the call that breaks {} is accepted", clause);
  if (caught->clause != clause || caught->op != op.name)
    return fmt::format("the call that breaks {} is stopped by another clause: {}", clause, caught->what());
  if (reached) return fmt::format("the kernel ran although {} was broken", clause);
  if (broken.memory != memory_before) return fmt::format("memory changed although {} was broken", clause);
  return {};
}

std::string valid_calls_fault(const OpDescriptor& op) {
  std::string fault = refusal_at_limits(op);
  for (std::size_t i = 0; i < op.tensors.size() && fault.empty(); ++i) {
    Sample sample = valid_sample(op, small_dims(op));
    const Shape shape = sample.call.tensors[i].shape;
    sample.place(i, op.tensors[i], shape, padded_strides(op.tensors[i], shape));
    fault = refusal(op, sample.call, fmt::format("a valid call with padded {}", op.tensors[i].name));
    if (op.tensors[i].unit_inner_stride || !fault.empty()) continue;
    sample.place(i, op.tensors[i], shape, column_major_strides(shape));
    fault = refusal(op, sample.call, fmt::format("a valid call with column-major {}", op.tensors[i].name));
  }
  return fault;
}

}  // namespace assay::falsify
