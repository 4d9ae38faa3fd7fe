// catalogue FOLDER: writes a report over every kernel of this build, as large as that of a whole run, in little time. A
// few wrong kernels are actually run and falsified; one is mistrusted, one refuses, one has no device; all others are
// listed as passed with figures of usual length.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "falsify/engine/pool.hpp"
#include "falsify/engine/report.hpp"

namespace assay::falsify {
namespace {

using nlohmann::json;

/// Returns the kernel's report with every obligation as `verdict`.
json listed(const Kernel& kernel, Verdict verdict, const std::string& reason) {
  const OpDescriptor& op = operation(kernel.op);
  KernelResult result;
  result.kernel = &kernel;
  result.device = "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan 1.3.255";
  for (const Obligation& obligation : obligations(op.name)) {
    ObligationResult& record = result.obligations.emplace_back();
    record.info = obligation.info;
    record.verdict = verdict;
    record.reason = reason;
    record.cases = 100, record.elements = 1'234'567, record.nonzero = 1'234'000;
    record.worst = 0.98765432109876, record.seconds = 1.23456789;
  }
  result.clause_counts.assign(op.clauses.size(), 123'456);
  result.seconds = 12.3456789;
  return to_json(op, result);
}

std::vector<json> falsified() {
  std::vector<const Kernel*> wrong;
  for (const char* id : {"mutant/cpu/matmul/wrong_tail_row", "mutant/cpu/matmul/dropped_last_k",
                         "mutant/cpu/rmsnorm/eps_outside", "mutant/cpu/softmax/no_maximum"})
    for (const Kernel& k : kernels())
      if (k.id == id) wrong.push_back(&k);
  for (const Kernel& k : kernels())
    if (wrong.size() < 12 && k.role == KernelRole::mutant && k.backend == Backend::cpu && k.op != "matmul" &&
        !k.scored && (wrong.empty() || wrong.back()->op != k.op))
      wrong.push_back(&k);
  CampaignOptions options;
  options.cases = 40;
  options.time = std::chrono::seconds(4);
  options.stop_at_first = true;
  options.shrink_budget = std::chrono::seconds(2);
  return run_pool(wrong, options, static_cast<int>(std::thread::hardware_concurrency()), {});
}

json whole_report() {
  std::vector<json> results = falsified();
  int other = 0;
  for (const Kernel& k : kernels()) {
    if (k.role == KernelRole::mutant) continue;
    ++other;
    results.push_back(other == 10
                          ? listed(k, Verdict::mistrusted,
                                   "90 of 100 expected values are zero: a kernel that writes zeros would pass too")
                      : other == 20 ? listed(k, Verdict::refused, "it takes multiples of 64 only")
                      : other == 30 ? listed(k, Verdict::unavailable, "cuda: this build has no CUDA back end")
                                    : listed(k, Verdict::passed, ""));
  }
  return make_report(std::move(results), {{"seed", "1"}, {"cases", 100}, {"ops", json::array()}}, 1234.5);
}

}  // namespace
}  // namespace assay::falsify

int main(int argc, char** argv) {
  using namespace assay::falsify;
  if (argc != 2) return std::fputs("usage: catalogue FOLDER\n", stderr), 2;
  nlohmann::json report = whole_report();
  write_report(report, argv[1]);
  // Reading the report back must give the same files.
  nlohmann::json again = read_report(std::filesystem::path(argv[1]) / "report.json");
  std::printf("%zu kernels; read back %s\n", report["kernels"].size(), again == report ? "as written" : "DIFFERENT");
  return again == report ? 0 : 1;
}
