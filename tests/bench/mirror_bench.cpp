// Compares every default CPU kernel with the scalar mirror of its operation, the reference run with float:
// <kernel>/mirror/<dims>.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "contract/descriptor.hpp"
#include "falsify/engine/arena.hpp"
#include "falsify/engine/oracle.hpp"
#include "paired.hpp"
#include "runtime/registry.hpp"

namespace assay::bench {
namespace {

/// A call on Gaussian values, laid out as in campaigns, with the same values for the mirror.
class DrawnCall {
 public:
  DrawnCall(const OpDescriptor& op, const std::vector<Index>& dims)
      : problem_(falsify::make_problem(op, case_of(op, dims), Arithmetic{})),
        stage_(arena_, problem_, case_of(op, dims), falsify::Poison::finite) {
    call_.dims = problem_.dims;
    call_.params = problem_.params;
    for (const falsify::Placed& t : stage_.tensors())
      call_.tensors.push_back({t.dtype, arena_.base() + t.data, t.shape, t.strides});
    for (std::size_t t = 0; t < problem_.values.size(); ++t) {
      const Shape shape = problem_.shape(static_cast<int>(t));
      problem_.values[t].resize(static_cast<std::size_t>(shape.size()));
      views_.emplace_back(problem_.values[t].data(), shape);
    }
  }
  const Call& get() const { return call_; }
  void run_mirror() const { falsify::oracle(problem_.op->name).mirror(views_, problem_.params); }

 private:
  static falsify::Case case_of(const OpDescriptor& op, const std::vector<Index>& dims) {
    falsify::Case c;
    c.dims = dims;
    for (const ParamInfo& p : op.params) c.params.push_back(p.typical);
    return c;
  }
  falsify::Arena arena_{std::size_t{1} << 30};
  falsify::Problem problem_;
  falsify::Stage stage_;
  Call call_;
  std::vector<View<float>> views_;
};

/// Returns dims of activations of a few tokens, which fit the caches. At sizes bound by memory, all kernels that move
/// the same bytes are equally fast.
std::vector<Index> cached_dims(const OpDescriptor& op) {
  static const std::map<std::string_view, Index> by_name{
      {"m", 32},       {"n", 256}, {"k", 256},       {"rows", 32}, {"classes", 1024}, {"t", 64},
      {"v", 64},       {"h", 256}, {"b", 32},        {"s", 64},    {"batch", 1},      {"heads", 8},
      {"kv_heads", 2}, {"d", 64},  {"capacity", 64}, {"in", 256},  {"out", 256},      {"r", 16}};
  std::vector<Index> dims;
  for (const DimInfo& d : op.dims) {
    const auto found = by_name.find(d.name);
    dims.push_back(std::clamp(found == by_name.end() ? Index{1} : found->second, d.min, d.max));
  }
  if (op.name == "adamw_step" || op.dims.size() == 1) dims[0] = 8192;
  falsify::make_valid(op, dims);
  return dims;
}

void beside_mirror(benchmark::State& state, const Kernel& kernel, const std::vector<Index>& dims) {
  const DrawnCall call(operation(kernel.op), dims);
  Device& cpu = device(Backend::cpu);
  const Rounds rounds =
      measure(state, {{"kernel", [&] { kernel.run(call.get(), cpu); }}, {"mirror", [&] { call.run_mirror(); }}});
  bar_at_least(state, "ratio", median_of(rounds, 1, 0, [](double peer, double own) { return peer / own; }), 3);
}

}  // namespace

void register_mirrors() {
  for (const OpDescriptor* op : operations()) {
    const Kernel* preferred = nullptr;
    for (const Kernel* k : kernels_of(op->name)) {
      if (k->backend != Backend::cpu || k->storage != DType::f32) continue;
      if (preferred == nullptr || k->priority > preferred->priority) preferred = k;
    }
    if (preferred == nullptr) continue;
    const std::vector<Index> dims = cached_dims(*op);
    const std::string name = fmt::format("{}/mirror/{}", preferred->id, fmt::join(dims, "x"));
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { beside_mirror(state, *preferred, dims); })
        ->UseManualTime()
        ->Iterations(rounds_for(1e-3));
  }
}

}  // namespace assay::bench
