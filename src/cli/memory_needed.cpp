#include "cli/memory_needed.hpp"

#include <fmt/format.h>

#include "core/bounded.hpp"
#include "core/errors.hpp"
#include "falsify/engine/joint.hpp"
#include "falsify/engine/random.hpp"
#include "runtime/device.hpp"

namespace assay::cli {
namespace {

/// Returns the number of elements as double: the product of extents may overflow an Index.
double elements_of(const TensorInfo& tensor, std::span<const Index> dims) {
  const Shape shape = tensor.shape(dims);
  double size = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) size *= static_cast<double>(shape[axis]);
  return size;
}

double available_bytes() { return static_cast<double>(device(Backend::cpu).memory().available); }

/// Formats as "1.5 GiB" or "8.8e+12 GiB"; small sizes in MiB.
std::string figure(double bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  return bytes < kGiB ? fmt::format("{:.3g} MiB", bytes / kMiB) : fmt::format("{:.3g} GiB", bytes / kGiB);
}

}  // namespace

double bytes_of(const TensorInfo& tensor, std::span<const Index> dims) {
  return elements_of(tensor, dims) * static_cast<double>(size_of(tensor.dtype));
}

double bytes_of_tensors(const OpDescriptor& op, std::span<const Index> dims) {
  double bytes = 0;
  for (const TensorInfo& tensor : op.tensors) bytes += bytes_of(tensor, dims);
  return bytes;
}

double bytes_to_judge(const OpDescriptor& op, std::span<const Index> dims) {
  constexpr double kValues = 5 * sizeof(float);  // drawn, read back, and kept of two calls: a lower bound
  double all = 0, outputs = 0;
  for (const TensorInfo& tensor : op.tensors) {
    const double elements = elements_of(tensor, dims);
    all += elements;
    if (tensor.role != Role::in) outputs += elements;
  }
  const double bytes = bytes_of_tensors(op, dims) + kValues * all + sizeof(Bounded) * outputs;
  // With a sample the oracle holds few inputs. sample_of() is called only for sizes that can be counted.
  const bool whole = bytes < available_bytes() && !falsify::sample_of(op, dims, falsify::Random(1));
  return bytes + (whole ? sizeof(Bounded) * (all - outputs) : 0);
}

void expect_room(const OpDescriptor& op, std::span<const Index> dims, int at_once, const std::string& where,
                 const std::string& remedy) {
  const double needed = bytes_to_judge(op, dims) * at_once, available = available_bytes();
  if (needed <= available) return;
  throw InputError(where,
                   fmt::format("judging {} needs {} of memory at least, of which its tensors are {}; {} are free",
                               at_once == 1 ? "a case" : fmt::format("{} cases at once", at_once), figure(needed),
                               figure(bytes_of_tensors(op, dims) * at_once), figure(available)),
                   remedy);
}

}  // namespace assay::cli
