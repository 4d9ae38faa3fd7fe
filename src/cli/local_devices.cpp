#include "cli/local_devices.hpp"

#include <fstream>

#include "falsify/engine/pool.hpp"

namespace assay::cli {
namespace {

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ..."
std::string nvidia_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  const std::size_t digits =
      line.find_first_of("0123456789", line.find("Module") == std::string::npos ? line.size() : line.find("Module"));
  return digits == std::string::npos ? "" : "NVIDIA " + line.substr(digits, line.find(' ', digits) - digits);
}

nlohmann::json absent(Backend backend) {
  return {{"backend", name(backend)}, {"here", false}, {"on_processor", true}, {"driver", ""}};
}

nlohmann::json examine(Backend backend) {
  try {
    const bool host = device(backend).on_processor();
    return {
        {"backend", name(backend)}, {"here", true}, {"on_processor", host}, {"driver", host ? "" : nvidia_driver()}};
  } catch (const Unavailable&) {
    return absent(backend);
  } catch (const DeviceError&) {
    return absent(backend);
  }
}

}  // namespace

std::map<Backend, LocalDevice> local_devices(const std::vector<Backend>& backends) {
  std::vector<falsify::Task> tasks;
  for (const Backend backend : backends)
    tasks.push_back({std::string(name(backend)), [backend] { return examine(backend); },
                     [backend](int) { return absent(backend); }});
  std::map<Backend, LocalDevice> devices;
  for (const nlohmann::json& found :
       falsify::run_tasks(tasks, static_cast<int>(tasks.size()), [](const nlohmann::json*) {}))
    devices[backend_from(found["backend"].get<std::string>())] = {
        found["here"].get<bool>(), found["on_processor"].get<bool>(), found["driver"].get<std::string>()};
  return devices;
}

}  // namespace assay::cli
