// Each certificate falls to a planted fault by the postconditions alone: a certificate that nothing breaks proves
// nothing.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/obligation.hpp"
#include "runtime/registry.hpp"
#include "tests/sample.hpp"

namespace assay::falsify {
namespace {

TEST(Certificates, EachFallsToAPlantedFault) {
  for (std::size_t turn = 0; const OpDescriptor* op : operations()) {
    if (!tries_all() && turn++ % 4 != 0) continue;
    std::set<std::string_view> standing;
    for (const ClauseInfo& clause : op->clauses)
      if (clause.kind != ClauseKind::requires_clause) standing.insert(clause.id);
    CampaignOptions options;
    options.shrink = false;
    for (const ObligationInfo& o : op->obligations)
      if (o.by == "postconditions") options.only = o.id;
    EXPECT_EQ(standing.empty(), options.only.empty()) << op->name;
    for (const Kernel& k : kernels()) {
      if (standing.empty()) break;
      if (k.op != op->name || k.role != KernelRole::mutant || k.backend != Backend::cpu) continue;
      for (const ObligationResult& o : run_campaign(*op, k, options).obligations)
        if (o.counterexample)
          std::erase_if(standing, [&](std::string_view clause) {
            return o.counterexample->finding.message.find(clause) != std::string::npos;
          });
    }
    EXPECT_TRUE(standing.empty()) << fmt::format("{}: no fault breaks {}", op->name, fmt::join(standing, ", "));
  }
}

}  // namespace
}  // namespace assay::falsify
