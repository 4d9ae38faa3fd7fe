// Files of the engine's folders that decide no verdict. All other files there belong to the engine, including new ones.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace assay::falsify {

/// No file that decides a verdict includes any of these (gate_test.py, bystanders).
inline constexpr std::string_view kBystanders[] = {
    // Reports, journals, progress, and the processes that run campaigns: they forward the campaigns' findings.
    "falsify/engine/checkpoint.cpp", "falsify/engine/checkpoint.hpp", "src/system/interrupt.cpp",
    "src/system/interrupt.hpp", "falsify/engine/journal.cpp", "falsify/engine/journal.hpp", "falsify/engine/pool.cpp",
    "falsify/engine/pool.hpp", "falsify/engine/report.cpp", "falsify/engine/report.hpp",
    "falsify/engine/reports/embed.cmake", "falsify/engine/reports/embedded.hpp", "falsify/engine/reports/fields.cpp",
    "falsify/engine/reports/fields.hpp", "falsify/engine/reports/formats.hpp", "falsify/engine/reports/github.cpp",
    "falsify/engine/reports/html.cpp", "falsify/engine/reports/junit.cpp", "falsify/engine/reports/merge.cpp",
    "falsify/engine/reports/merge.hpp", "falsify/engine/reports/page.css", "falsify/engine/reports/page.html",
    "falsify/engine/reports/page.js", "falsify/engine/reports/read.cpp", "falsify/engine/reports/sarif.cpp",
    "falsify/engine/reports/source_location.cpp", "falsify/engine/reports/source_location.hpp",
    "falsify/engine/reports/table.cpp",
    // Reduction of a failed case, and choice of the obligation that explains it.
    "falsify/engine/explanation.cpp", "falsify/engine/shrink.cpp",
    // Trace spans.
    "src/runtime/span.cpp",
    // Other programs, run by the gate and by mutants, and digests.
    "src/system/program.cpp", "src/system/program.hpp", "src/system/scratch.hpp", "src/system/sha256.cpp",
    "src/system/sha256.hpp",
    // Documentation pages of contracts.
    "src/contractgen/emit_docs.cpp"};

constexpr bool is_bystander(std::string_view path) {
  return std::ranges::find(kBystanders, path) != std::end(kBystanders);
}

}  // namespace assay::falsify
