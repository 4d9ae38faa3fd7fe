#include "falsify/mutation/study/mutant.hpp"

#include <map>
#include <utility>

namespace assay::falsify {
namespace {

std::map<Backend, MutantSource>& sources() {
  static std::map<Backend, MutantSource> table;
  return table;
}

}  // namespace

void AutomaticMutant::complete(const Kernel& right, std::function<void(const Call&, Device&)> run) {
  id = std::string(right.id) + "#" + hash;
  original = &right;
  kernel = right;
  kernel.id = id;
  kernel.summary = "wrong on purpose";
  kernel.role = KernelRole::mutant;
  kernel.fault = description;
  kernel.run = std::move(run);
}

MutantSourceRegistration::MutantSourceRegistration(Backend backend, MutantSource source) {
  sources()[backend] = source;
}

MutantSource mutant_source(Backend backend) {
  const auto found = sources().find(backend);
  if (found != sources().end()) return found->second;
  std::string known;
  for (const auto& [other, source] : sources()) known += (known.empty() ? "" : ", ") + std::string(name(other));
  throw InputError("--automatic --backend " + std::string(name(backend)), "this back end has no automatic mutants",
                   "those that have: " + (known.empty() ? "none in this build" : known));
}

}  // namespace assay::falsify
