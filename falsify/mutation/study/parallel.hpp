// Independent pieces of work on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace assay::falsify {

/// Calls work(0), ..., work(n - 1), on several threads, which have ended when it returns. Throws what the first of them
/// threw that did; some of the others are then not called.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& work);

}  // namespace assay::falsify
