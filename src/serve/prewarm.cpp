#include "serve/prewarm.hpp"

#include <algorithm>

#include "contract/descriptor.hpp"
#include "core/errors.hpp"
#include "serve/select.hpp"

namespace assay::contract {
namespace {

InputError wrong(const PlannedCall& planned, std::string problem) {
  return InputError("planned call of " + planned.op, std::move(problem), "give what its contract asks for");
}

/// Returns the call with dense tensors without memory. Throws InputError if the contract does not admit it.
Call call_of(const PlannedCall& planned) {
  const OpDescriptor& op = operation(planned.op);
  if (planned.dims.size() != op.dims.size())
    throw wrong(planned, std::to_string(planned.dims.size()) + " dims, not " + std::to_string(op.dims.size()));
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (planned.dims[d] < op.dims[d].min || planned.dims[d] > op.dims[d].max)
      throw wrong(planned, std::string(op.dims[d].name) + " = " + std::to_string(planned.dims[d]) + " is not within " +
                               std::to_string(op.dims[d].min) + " and " + std::to_string(op.dims[d].max));
  Call call{planned.dims, planned.params, {}};
  if (call.params.empty())
    for (const ParamInfo& param : op.params) call.params.push_back(param.typical);
  if (call.params.size() != op.params.size())
    throw wrong(planned, std::to_string(call.params.size()) + " params, not " + std::to_string(op.params.size()));
  for (const TensorInfo& tensor : op.tensors) {
    const Shape shape = tensor.shape(planned.dims);
    const DType dtype = tensor.storage ? planned.storage : tensor.dtype;
    call.tensors.push_back({dtype, nullptr, shape, row_major_strides(shape)});
  }
  return call;
}

/// Returns whether the call has nothing to do: every tensor that it writes is empty.
bool empty(const PlannedCall& planned) {
  const std::span<const OpDescriptor* const> all = operations();
  const auto op = std::ranges::find(all, planned.op, [](const OpDescriptor* o) { return o->name; });
  if (op == all.end() || planned.dims.size() != (*op)->dims.size()) return false;
  return std::ranges::all_of((*op)->tensors, [&](const TensorInfo& tensor) {
    return tensor.role == Role::in || tensor.shape(planned.dims).size() == 0;
  });
}

template <class Prepare>
Prewarmed prewarm_all(std::span<const PlannedCall> calls, const Prepare& prepare) {
  Prewarmed result;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto before = calls.first(i);
    if (std::ranges::find(before, calls[i]) != before.end()) continue;
    if (std::ranges::find(calls[i].dims, 0) != calls[i].dims.end() && empty(calls[i])) continue;
    try {
      result.prepared.push_back({calls[i], prepare(calls[i].op, call_of(calls[i]))});
    } catch (const InputError& e) {
      result.refused.push_back({calls[i], e.what()});
    } catch (const Unavailable& e) {
      result.refused.push_back({calls[i], e.what()});
    } catch (const DeviceError& e) {
      result.refused.push_back({calls[i], e.what()});
    }
  }
  return result;
}

}  // namespace

Prewarmed prewarm(std::span<const PlannedCall> calls, Backend backend) {
  return prewarm_all(calls, [backend](std::string_view op, const Call& call) {
    const Kernel& kernel = select_kernel(op, backend, call);
    device(backend).prepare(kernel, call);
    return &kernel;
  });
}

Prewarmed prewarm(std::span<const PlannedCall> calls, Automatic) {
  return prewarm_all(calls, [](std::string_view op, const Call& call) {
    return dispatch(op, call, nullptr, [&call](const Kernel& k, Device& d) { d.prepare(k, call); }).kernel;
  });
}

}  // namespace assay::contract
