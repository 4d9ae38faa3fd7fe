// Runs independent work on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace assay::falsify {

/// Calls work(0), ..., work(n - 1) on several threads, and joins the threads before it returns. If a call throws,
/// rethrows the first exception; some of the other calls are then skipped.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& work);

}  // namespace assay::falsify
