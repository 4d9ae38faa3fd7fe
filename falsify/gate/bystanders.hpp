// Files of the engine's folders that decide no verdict. All other files there belong to the engine, including new ones.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace assay::falsify {

/// No file that decides a verdict includes any of these (gate_test.py, bystanders).
inline constexpr std::string_view kBystanders[] = {
    // Reports, journals, progress, and the processes that run campaigns: they forward the campaigns' findings.
    "falsify/engine/checkpoint.cpp", "falsify/engine/checkpoint.hpp", "falsify/engine/interrupt.cpp",
    "falsify/engine/interrupt.hpp", "falsify/engine/journal.cpp", "falsify/engine/journal.hpp",
    "falsify/engine/pool.cpp", "falsify/engine/pool.hpp", "falsify/engine/report.cpp", "falsify/engine/report.hpp",
    "falsify/engine/reports/embed.cmake", "falsify/engine/reports/embedded.hpp", "falsify/engine/reports/fields.cpp",
    "falsify/engine/reports/fields.hpp", "falsify/engine/reports/formats.hpp", "falsify/engine/reports/github.cpp",
    "falsify/engine/reports/html.cpp", "falsify/engine/reports/junit.cpp", "falsify/engine/reports/merge.cpp",
    "falsify/engine/reports/merge.hpp", "falsify/engine/reports/page.css", "falsify/engine/reports/page.html",
    "falsify/engine/reports/page.js", "falsify/engine/reports/read.cpp", "falsify/engine/reports/sarif.cpp",
    "falsify/engine/reports/source_place.cpp", "falsify/engine/reports/source_place.hpp",
    "falsify/engine/reports/table.cpp",
    // Selection of a kernel for a caller who names none, and its preparation: a campaign names its kernel.
    "src/contract/prewarm.cpp", "src/contract/prewarm.hpp", "src/contract/transfer.cpp", "src/runtime/dispatch.cpp",
    "src/runtime/select.cpp",
    // Trace spans.
    "src/runtime/chrome_trace.cpp", "src/runtime/chrome_trace.hpp", "src/runtime/trace.cpp",
    // Documentation pages of contracts.
    "src/contractgen/emit_docs.cpp"};

constexpr bool is_bystander(std::string_view path) { return std::ranges::find(kBystanders, path) != std::end(kBystanders); }

}  // namespace assay::falsify
