// `assay doctor`: what can run here, and why the rest cannot.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "runtime/registry.hpp"

namespace assay::cli {
namespace doctor_command {
namespace {

nlohmann::json examine(Backend backend) {
  nlohmann::json j{{"backend", name(backend)}};
  int count = 0;
  for (const Kernel& k : kernels()) count += k.backend == backend && k.role != KernelRole::mutant;
  j["kernels"] = count;
  try {
    Device& d = device(backend);
    const MemoryInfo memory = d.memory();
    j.update({{"available", true}, {"device", d.description()}, {"memory_total", memory.total},
              {"memory_available", memory.available}});
  } catch (const Unavailable& e) {
    j.update({{"available", false}, {"why", e.why}});
  } catch (const DeviceError& e) {
    j.update({{"available", false}, {"why", e.what()}});
  }
  return j;
}

int run(bool as_json) {
  nlohmann::json backends = nlohmann::json::array();
  for (Backend backend : kBackends) backends.push_back(examine(backend));
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"schema", "assay-doctor/1"}, {"backends", backends}}.dump(2));
    return kNothingFalsified;
  }
  for (const auto& b : backends) {
    const std::string backend = b["backend"].get<std::string>();
    if (b["available"].get<bool>())
      fmt::print("{:<10} {:>3} kernels  {} ({:.1f} of {:.1f} GiB free)\n", backend, b["kernels"].get<int>(),
                 b["device"].get<std::string>(), b["memory_available"].get<double>() / (1 << 30),
                 b["memory_total"].get<double>() / (1 << 30));
    else
      fmt::print("{:<10} {:>3} kernels  unavailable: {}\n", backend, b["kernels"].get<int>(), b["why"].get<std::string>());
  }
  return kNothingFalsified;
}

}  // namespace
}  // namespace doctor_command

Command add_doctor(Parser& parser) {
  using namespace doctor_command;
  auto command = parser.command("doctor", "What can run here, and why the rest cannot");
  auto as_json = std::make_shared<bool>(false);
  command.flag("--json", *as_json, "One JSON document on standard output");
  return {command, [as_json] { return run(*as_json); }};
}

}  // namespace assay::cli
