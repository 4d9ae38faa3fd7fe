#include "cli/local_devices.hpp"

#include <fstream>
#include <regex>

#include "falsify/engine/pool.hpp"

namespace assay::cli {
namespace {

std::string nvidia_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return nvidia_driver_in(line);
}

nlohmann::json absent(Backend backend) {
  return {{"backend", name(backend)}, {"here", false}, {"on_processor", true}, {"driver", ""}, {"description", ""}};
}

nlohmann::json examine(Backend backend) {
  try {
    const bool host = device(backend).on_processor();
    return {{"backend", name(backend)},
            {"here", true},
            {"on_processor", host},
            {"driver", host ? "" : nvidia_driver()},
            {"description", device(backend).description()}};
  } catch (const Unavailable&) {
    return absent(backend);
  } catch (const DeviceError&) {
    return absent(backend);
  }
}

}  // namespace

std::string nvidia_driver_in(const std::string& line) {
  std::smatch version;  // must not match x86_64, which precedes it
  return std::regex_search(line, version, std::regex(R"(\d+\.\d+(\.\d+)*)")) ? "NVIDIA " + version.str() : "";
}

std::map<Backend, LocalDevice> local_devices(const std::vector<Backend>& backends) {
  std::vector<falsify::Task> tasks;
  for (const Backend backend : backends)
    tasks.push_back({std::string(name(backend)), [backend] { return examine(backend); },
                     [backend](int) { return absent(backend); }});
  std::map<Backend, LocalDevice> devices;
  for (const nlohmann::json& found :
       falsify::run_tasks(tasks, static_cast<int>(tasks.size()), [](const nlohmann::json*) {}))
    devices[backend_from(found["backend"].get<std::string>())] = {
        found["here"].get<bool>(), found["on_processor"].get<bool>(), found["driver"].get<std::string>(),
        found["description"].get<std::string>()};
  return devices;
}

}  // namespace assay::cli
