#include "contract/enforce.hpp"

// Boost.Contract's flag that stops contracts from being checked inside contracts is one for the whole process
// and behind a mutex: it would switch off the checks of other threads' calls. Ours never nest, so it goes.
#define BOOST_CONTRACT_ALL_DISABLE_NO_ASSERTION
#define BOOST_CONTRACT_NO_EXCEPTS
#define BOOST_CONTRACT_NO_INVARIANTS
#include <fmt/format.h>

#include <atomic>
#include <boost/contract.hpp>
#include <utility>

#include "contract/certificates.hpp"
#include "contract/transfer.hpp"
#include "core/errors.hpp"
#include "runtime/registry.hpp"
#include "runtime/select.hpp"
#include "runtime/trace.hpp"

namespace assay::contract {
namespace {

#ifdef ASSAY_CONTRACTS_OFF
constexpr bool kCompiledIn = false;
#else
constexpr bool kCompiledIn = true;
#endif

std::atomic<Level> current_level{kCompiledIn ? Level::pre : Level::off};

/// Boost.Contract's own handlers print and terminate; the library throws.
const bool handlers_set = [] {
  const auto rethrow = [](boost::contract::from) { throw; };
  boost::contract::set_precondition_failure(rethrow);
  boost::contract::set_postcondition_failure(rethrow);
  return true;
}();

[[noreturn]] void violated(const Enforced& contract, std::size_t clause, std::string values) {
  const ClauseInfo& info = contract.op->clauses[clause];
  const auto kind = info.kind == ClauseKind::requires_clause ? ContractViolation::Kind::precondition
                                                             : ContractViolation::Kind::postcondition;
  throw ContractViolation(std::string(contract.op->name), kind, std::string(info.id), std::string(info.says),
                          std::move(values));
}

void evaluate(const Enforced& contract, std::size_t clause, const void* args) {
  const ClauseCheck& check = contract.checks[clause];
  std::atomic_ref(contract.counts[clause]).fetch_add(1, std::memory_order_relaxed);
  if (check.certify != nullptr) {
    Certified certified = check.certify(args);
    if (!certified.holds) violated(contract, clause, std::move(certified.values));
  } else if (!check.holds(args)) {
    violated(contract, clause, check.values(args));
  }
}

void check_requires(const Enforced& contract, const void* args) {
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size() && clauses[i].kind == ClauseKind::requires_clause; ++i)
    evaluate(contract, i, args);
}

/// Ensures clauses read elements: tensors that the host cannot see are fetched first, whole extents.
void ensure_on_host(const Enforced& contract, const Call& call, const Kernel& kernel, Device& device) {
  device.synchronize();
  if (device.host_visible()) return contract.ensure(call, kernel);
  Call host = call;
  std::vector<std::vector<std::byte>> memory(call.tensors.size());
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Tensor& tensor = call.tensors[i];
    const Index extent = View<const std::byte>(nullptr, tensor.shape, tensor.strides).extent();
    if (extent == 0) continue;
    memory[i].resize(static_cast<std::size_t>(extent) * size_of(tensor.dtype));
    device.download(memory[i].data(), tensor.data, memory[i].size());
    host.tensors[i].data = memory[i].data();
  }
  contract.ensure(host, kernel);
}

struct Target {
  const Kernel* kernel = nullptr;
  Device* device = nullptr;
};

/// "m=3 k=4 n=5"
std::string shape_text(const OpDescriptor& op, const Call& call) {
  std::string text;
  for (std::size_t d = 0; d < call.dims.size(); ++d)
    text += fmt::format("{}{}={}", d == 0 ? "" : " ", op.dims[d].name, call.dims[d]);
  return text;
}

/// Runs `run`, which runs this kernel on this device, inside a span.
template <class Run>
void traced(const OpDescriptor& op, const Call& call, const Kernel& kernel, Device& device, const Run& run) {
  const trace::Scope span(op.name, [&](trace::Span& s) {
    s.attributes = {{"shape", shape_text(op, call)},
                    {"kernel", std::string(kernel.id)},
                    {"backend", std::string(name(device.backend()))}};
  });
  run();
  if (span.recording()) device.synchronize();
}

Target run_here(const Enforced& contract, const Call& call, const Kernel& kernel, Device& device) {
  traced(*contract.op, call, kernel, device, [&] { kernel.run(call, device); });
  return {&kernel, &device};
}

/// `execute` runs a kernel and says which, and where the call's tensors are; it is called once the requires clauses hold.
template <class Execute>
void guarded(const Enforced& contract, const void* args, const Call& call, const Execute& execute) {
  Target target;
  const auto run = [&] { target = execute(); };
  if (!kCompiledIn) return run();
  const auto requires_hold = [&] { check_requires(contract, args); };
  switch (level()) {
    case Level::off:
      return run();
    case Level::pre: {
      const boost::contract::check checked = boost::contract::function().precondition(requires_hold);
      return run();
    }
    case Level::full: {
      const auto ensures_hold = [&] { ensure_on_host(contract, call, *target.kernel, *target.device); };
      const boost::contract::check checked =
          boost::contract::function().precondition(requires_hold).postcondition(ensures_hold);
      return run();
    }
  }
}

}  // namespace

Level level() { return current_level.load(std::memory_order_relaxed); }

void set_level(Level level) {
  if (!kCompiledIn && level != Level::off)
    throw Unavailable("contract checking", "this build compiles contracts out; configure with -DASSAY_CONTRACTS=ON");
  current_level.store(level, std::memory_order_relaxed);
}

std::vector<std::string_view> never_evaluated(const OpDescriptor& op) {
  std::vector<std::string_view> ids;
  const std::span<const std::uint64_t> counts = op.counters();
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0) ids.push_back(op.clauses[i].id);
  return ids;
}

void enforce(const Enforced& contract, const void* args, const Call& call, const Kernel& kernel, Device& device) {
  guarded(contract, args, call, [&] { return run_here(contract, call, kernel, device); });
}

void enforce(const Enforced& contract, const void* args, const Call& call, Backend backend) {
  guarded(contract, args, call, [&] {
    return run_here(contract, call, select_kernel(contract.op->name, backend, call), device(backend));
  });
}

Dispatched enforce(const Enforced& contract, const void* args, const Call& call, Automatic) {
  Dispatched dispatched;
  guarded(contract, args, call, [&] {
    Device* const home = residence(call);
    dispatched = dispatch(contract.op->name, call, home, [&](const Kernel& kernel, Device& device) {
      traced(*contract.op, call, kernel, device, [&] {
        if (home != nullptr) kernel.run(call, device);
        else run_with_copies(*contract.op, kernel, call, device);
      });
    });
    return Target{dispatched.kernel, home != nullptr ? home : &device(Backend::cpu)};
  });
  return dispatched;
}

void check_ensures(const Enforced& contract, const void* args, const Kernel& kernel) {
  const ArithmeticScope in_force(kernel.arithmetic);
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i)
    if (clauses[i].kind != ClauseKind::requires_clause) evaluate(contract, i, args);
}

}  // namespace assay::contract
