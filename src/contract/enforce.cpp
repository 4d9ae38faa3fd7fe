#include "contract/enforce.hpp"

// Boost.Contract disables contract checking inside contracts with one process-wide flag behind a mutex, which would
// disable the checks of other threads' calls. Contracts here never nest, so the flag is compiled out.
#define BOOST_CONTRACT_ALL_DISABLE_NO_ASSERTION
#define BOOST_CONTRACT_NO_EXCEPTS
#define BOOST_CONTRACT_NO_INVARIANTS
#include <fmt/format.h>

#include <atomic>
#include <boost/contract.hpp>
#include <utility>

#include "contract/certificates.hpp"
#include "core/errors.hpp"
#include "runtime/registry.hpp"

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

/// Boost.Contract's default handlers print and terminate; the library throws instead.
const bool handlers_set = [] {
  const auto rethrow = [](boost::contract::from) { throw; };
  boost::contract::set_precondition_failure(rethrow);
  boost::contract::set_postcondition_failure(rethrow);
  return true;
}();

[[noreturn]] void violated(const EnforcedContract& contract, std::size_t clause, std::string values) {
  const ClauseInfo& info = contract.op->clauses[clause];
  const auto kind = info.kind == ClauseKind::requires_clause ? ContractViolation::Kind::precondition
                                                             : ContractViolation::Kind::postcondition;
  throw ContractViolation(std::string(contract.op->name), kind, std::string(info.id), std::string(info.says),
                          std::move(values));
}

/// A call with tensors in device memory. Fetches requested tensors to the host, including gaps between rows.
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

/// Calls `device_of_call` only if a condition reads elements.
void check_requires(const EnforcedContract& contract, const void* args, const Call& call,
                    const std::function<Device&()>& device_of_call) {
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

/// Checks ensures clauses, which read elements, on host copies.
void ensure_on_host(const EnforcedContract& contract, const Call& call, const Kernel& kernel, Device& device) {
  if (contract.op->clauses.empty() || contract.op->clauses.back().kind == ClauseKind::requires_clause) return;
  device.synchronize();
  if (device.host_visible()) return contract.ensure(call, kernel);
  Fetched host(call, device);
  for (std::size_t i = 0; i < call.tensors.size(); ++i) host.fetch(i);
  contract.ensure(host.call(), kernel);
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

void guard(const EnforcedContract& contract, const void* args, const Call& call,
           const std::function<Device&()>& device_of_call, const std::function<Ran()>& execute) {
  Ran ran;
  const auto run = [&] { ran = execute(); };
  if (!kCompiledIn) return run();
  const auto check_before = [&] { check_requires(contract, args, call, device_of_call); };
  // A single reference captured: Boost.Contract keeps larger closures on the heap.
  const auto requires_hold = [&check_before] { check_before(); };
  switch (level()) {
    case Level::off: return run();
    case Level::pre: {
      const boost::contract::check checked = boost::contract::function().precondition(requires_hold);
      return run();
    }
    case Level::full: {
      const auto check_after = [&] { ensure_on_host(contract, call, *ran.kernel, *ran.device); };
      const auto ensures_hold = [&check_after] { check_after(); };
      const boost::contract::check checked =
          boost::contract::function().precondition(requires_hold).postcondition(ensures_hold);
      return run();
    }
  }
}

void enforce(const EnforcedContract& contract, const void* args, const Call& call, const Kernel& kernel,
             Device& device) {
  const auto here = [&device]() -> Device& { return device; };
  const auto run = [&] {
    if (const auto why = refuses_storage(kernel, call)) throw Unavailable(std::string(kernel.id), *why);
    kernel.run(call, device);
    return Ran{&kernel, &device};
  };
  guard(contract, args, call, std::ref(here), std::ref(run));
}

void evaluate(const EnforcedContract& contract, std::size_t clause, const void* args) {
  const ClauseCheck& check = contract.checks[clause];
  std::atomic_ref(contract.counts[clause]).fetch_add(1, std::memory_order_relaxed);
  if (check.certify != nullptr) {
    Certified certified = check.certify(args);
    if (!certified.holds) violated(contract, clause, std::move(certified.values));
  } else if (!check.holds(args)) {
    violated(contract, clause, check.values(args));
  }
}

void check_requires(const EnforcedContract& contract, const void* args) {
  expect_compiled_in();
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size() && clauses[i].kind == ClauseKind::requires_clause; ++i)
    evaluate(contract, i, args);
}

void check_ensures(const EnforcedContract& contract, const void* args, const Kernel& kernel) {
  const ArithmeticScope in_force(kernel.arithmetic);
  const std::span<const ClauseInfo> clauses = contract.op->clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i)
    if (clauses[i].kind != ClauseKind::requires_clause) evaluate(contract, i, args);
}

}  // namespace assay::contract
