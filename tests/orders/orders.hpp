// Evaluation orders of other projects: correct kernels, each with the place it follows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/registry.hpp"

namespace assay::orders_test {

/// A kernel that evaluates as `project` does in `place`.
struct Order {
  std::string_view project, place;
  std::string_view words;  ///< the order
  Kernel kernel;
};
using Orders = std::vector<Order>;

/// Registers `run` for Args; it computes in plain float32 unless `arithmetic` says otherwise.
template <class Args, class F>
Order order(std::string_view op, std::string_view project, std::string_view place, std::string_view words, F run,
            Arithmetic arithmetic = {}) {
  return {project,
          place,
          words,
          {.op = op,
           .id = words,
           .arithmetic = arithmetic,
           .source = place,
           .summary = words,
           .role = KernelRole::peer,
           .run = [run](const Call& call, Device&) { run(Args::unpack(call)); }}};
}

Orders attention_orders();
Orders decode_orders();
Orders normalization_orders();
Orders optimizer_orders();
Orders product_orders();
Orders rope_orders();
Orders softmax_orders();
Orders elementwise_orders();

}  // namespace assay::orders_test
