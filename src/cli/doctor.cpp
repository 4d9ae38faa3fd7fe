// `assay doctor`: available back ends, reasons for missing ones, and the sandbox of kernels.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "runtime/registry.hpp"
#include "system/sandbox.hpp"

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
    j.update({{"available", true},
              {"device", d.description()},
              {"memory_total", memory.total},
              {"memory_available", memory.available}});
  } catch (const Unavailable& e) {
    j.update({{"available", false}, {"why", e.why}});
  } catch (const DeviceError& e) {
    j.update({{"available", false}, {"why", e.what()}});
  }
  return j;
}

/// Returns the actions that the sandbox does not prevent.
std::vector<std::string> not_contained(const Locks& locks) {
  std::vector<std::string> open;
  const bool closed = locks.landlock || (locks.capabilities && locks.untraceable);
  if (!closed) open.emplace_back("kernels can write the memory of the process that judges them");
  if (!locks.system_calls) open.emplace_back("kernels can signal and slow down other processes and start some");
  if (!locks.files) open.emplace_back("kernels can write files");
  open.emplace_back("kernels on vulkan and cuda can write files and start processes, as drivers do");
  return open;
}

nlohmann::json sandbox() {
  const Locks locks = locks_here();
  return {{"landlock", locks.landlock},
          {"no_capabilities", locks.capabilities},
          {"judge_not_dumpable", locks.untraceable},
          {"system_calls_filtered", locks.system_calls},
          {"files_read_only", locks.files},
          {"not_contained", not_contained(locks)}};
}

void print(const nlohmann::json& sandbox) {
  const auto word = [&](const char* key) { return sandbox[key].get<bool>() ? "yes" : "no"; };
  fmt::print(
      "sandbox    Landlock: {}; no capabilities: {}; judge not dumpable: {}; system calls filtered: {}; files read-only: {}\n",
      word("landlock"), word("no_capabilities"), word("judge_not_dumpable"), word("system_calls_filtered"),
      word("files_read_only"));
  for (const auto& open : sandbox["not_contained"])
    fmt::print("           not contained: {}\n", open.get<std::string>());
}

int run(const Output& output) {
  const nlohmann::json contained = sandbox();  // before a device is opened
  nlohmann::json backends = nlohmann::json::array();
  for (Backend backend : kBackends) backends.push_back(examine(backend));
  if (output.json) {
    fmt::print("{}\n",
               nlohmann::json{{"schema", "assay-doctor/1"}, {"backends", backends}, {"sandbox", contained}}.dump(2));
    return kNothingFalsified;
  }
  for (const auto& b : backends) {
    const std::string backend = b["backend"].get<std::string>();
    if (b["available"].get<bool>())
      fmt::print("{:<10} {:>3} kernels  {} ({:.1f} of {:.1f} GiB free)\n", backend, b["kernels"].get<int>(),
                 b["device"].get<std::string>(), b["memory_available"].get<double>() / (1 << 30),
                 b["memory_total"].get<double>() / (1 << 30));
    else
      fmt::print("{:<10} {:>3} kernels  unavailable: {}\n", backend, b["kernels"].get<int>(),
                 b["why"].get<std::string>());
  }
  print(contained);
  return kNothingFalsified;
}

}  // namespace
}  // namespace doctor_command

Command add_doctor(Parser& parser) {
  using namespace doctor_command;
  auto output = std::make_shared<Output>();
  auto command =
      parser.command("doctor", "What can run here, why the rest cannot, and what kernels are kept from", *output);
  return {command, [output] { return run(*output); }};
}

}  // namespace assay::cli
