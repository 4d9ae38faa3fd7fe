// Each order of another project passes a campaign and its audit; prints the largest error over its bound.
#include "tests/orders/orders.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "falsify/audit/audit.hpp"
#include "falsify/engine/campaign.hpp"

namespace assay::orders_test {
namespace {

using falsify::ObligationResult;
using falsify::Verdict;

Orders all() {
  Orders orders;
  for (const auto& some : {attention_orders, decode_orders, normalization_orders, optimizer_orders, product_orders,
                           rope_orders, softmax_orders, elementwise_orders})
    for (Order& o : some()) orders.push_back(std::move(o));
  return orders;
}

class OrdersOfProjects : public testing::TestWithParam<Order> {};

TEST_P(OrdersOfProjects, Pass) {
  const Order& order = GetParam();
  falsify::CampaignOptions options;
  options.cases = 25;
  if (const char* cases = std::getenv("ASSAY_ORDERS_CASES")) options.cases = std::atoi(cases);
  options.largest = 128;
  options.shrink = false;
  const falsify::KernelResult result = falsify::run_campaign(operation(order.kernel.op), order.kernel, options);
  double worst = 0;
  std::int64_t elements = 0;
  for (const ObligationResult& o : result.obligations) {
    worst = std::max(worst, o.worst);
    elements += o.elements;
    EXPECT_TRUE(o.verdict == Verdict::passed || o.verdict == Verdict::not_applicable)
        << o.info->id << ": " << falsify::name(o.verdict) << " " << o.reason
        << (o.counterexample ? o.counterexample->finding.message : "");
  }
  fmt::print("{:>18} | {:14} | {:.3f} | {} | {}\n", order.kernel.op, order.project, worst, order.words, order.place);
  EXPECT_GT(elements, 0);
  const nlohmann::json audit = falsify::audit::audit(operation(order.kernel.op), order.kernel, options.limit);
  EXPECT_EQ(audit["verdict"], "agrees") << audit["disagreements"].dump(1);
}

INSTANTIATE_TEST_SUITE_P(All, OrdersOfProjects, testing::ValuesIn(all()), [](const auto& of) {
  std::string name = fmt::format("{}_{}_{}", of.param.kernel.op, of.param.project, of.index);
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace assay::orders_test
