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

void expect_compiled_in() {
  if (!kCompiledIn)
    throw Unavailable("contract checking", "this build compiles contracts out; configure with -DASSAY_CONTRACTS=ON");
}

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

/// A call whose tensors the host cannot see, some of them fetched, whole extents.
class Fetched {
 public:
  Fetched(const Call& call, Device& device) : call_(call), memory_(call.tensors.size()), device_(device) {}

  void fetch(std::size_t tensor) {
    const Tensor& there = call_.tensors[tensor];
    const Index extent = View<const std::byte>(nullptr, there.shape, there.strides).extent();
    if (extent == 0) return;
    memory_[tensor].resize(static_cast<std::size_t>(extent) * size_of(there.dtype));
    device_.download(memory_[tensor].data(), there.data, memory_[tensor].size());
    call_.tensors[tensor].data = memory_[tensor].data();
  }
  const Call& call() const { return call_; }

 private:
  Call call_;
  std::vector<std::vector<std::byte>> memory_;
  Device& device_;
};

/// `device_of_call` is asked for only where a condition reads elements.
template <class DeviceOfCall>
void check_requires(const Enforced& contract, const void* args, const Call& call, const DeviceOfCall& device_of_call) {
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size() && clauses[i].kind == ClauseKind::requires_clause; ++i) {
    if (clauses[i].reads.empty()) {
      evaluate(contract, i, args);
      continue;
    }
    Device& where = device_of_call();
    if (where.host_visible()) {
      evaluate(contract, i, args);
      continue;
    }
    where.synchronize();
    Fetched host(call, where);
    for (const int tensor : clauses[i].reads) host.fetch(static_cast<std::size_t>(tensor));
    contract.require(host.call(), i);
  }
}

/// Ensures clauses read elements.
void ensure_on_host(const Enforced& contract, const Call& call, const Kernel& kernel, Device& device) {
  if (contract.op->clauses.empty() || contract.op->clauses.back().kind == ClauseKind::requires_clause) return;
  device.synchronize();
  if (device.host_visible()) return contract.ensure(call, kernel);
  Fetched host(call, device);
  for (std::size_t i = 0; i < call.tensors.size(); ++i) host.fetch(i);
  contract.ensure(host.call(), kernel);
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
  if (const auto why = refuses_storage(kernel, call)) throw Unavailable(std::string(kernel.id), *why);
  traced(*contract.op, call, kernel, device, [&] { kernel.run(call, device); });
  return {&kernel, &device};
}

/// `execute` runs a kernel and says which, and where the call's tensors are; it is called once the requires clauses hold.
/// `device_of_call` is where the tensors are before.
template <class DeviceOfCall, class Execute>
void guarded(const Enforced& contract, const void* args, const Call& call, const DeviceOfCall& device_of_call,
             const Execute& execute) {
  Target target;
  const auto run = [&] { target = execute(); };
  if (!kCompiledIn) return run();
  const auto check_before = [&] { check_requires(contract, args, call, device_of_call); };
  // By one reference: Boost.Contract keeps larger closures on the heap.
  const auto requires_hold = [&check_before] { check_before(); };
  switch (level()) {
    case Level::off:
      return run();
    case Level::pre: {
      const boost::contract::check checked = boost::contract::function().precondition(requires_hold);
      return run();
    }
    case Level::full: {
      const auto check_after = [&] { ensure_on_host(contract, call, *target.kernel, *target.device); };
      const auto ensures_hold = [&check_after] { check_after(); };
      const boost::contract::check checked =
          boost::contract::function().precondition(requires_hold).postcondition(ensures_hold);
      return run();
    }
  }
}

}  // namespace

Level level() { return current_level.load(std::memory_order_relaxed); }

void set_level(Level level) {
  if (level != Level::off) expect_compiled_in();
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
  guarded(contract, args, call, [&]() -> Device& { return device; },
          [&] { return run_here(contract, call, kernel, device); });
}

void enforce(const Enforced& contract, const void* args, const Call& call, Backend backend) {
  guarded(contract, args, call, [&]() -> Device& { return device(backend); }, [&] {
    return run_here(contract, call, select_kernel(contract.op->name, backend, call), device(backend));
  });
}

Dispatched enforce(const Enforced& contract, const void* args, const Call& call, Automatic) {
  Dispatched dispatched;
  const auto where = [&]() -> Device& {
    Device* const home = residence(call);
    return home != nullptr ? *home : device(Backend::cpu);
  };
  guarded(contract, args, call, where, [&] {
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
  expect_compiled_in();
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size() && clauses[i].kind == ClauseKind::requires_clause; ++i) evaluate(contract, i, args);
}

void check_ensures(const Enforced& contract, const void* args, const Kernel& kernel) {
  const ArithmeticScope in_force(kernel.arithmetic);
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i)
    if (clauses[i].kind != ClauseKind::requires_clause) evaluate(contract, i, args);
}

}  // namespace assay::contract
