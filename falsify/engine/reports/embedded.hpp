// Repository files embedded in the program (embed.cmake).
#pragma once

#include <string_view>

namespace assay::falsify::embedded {

extern const std::string_view page_html, page_css, page_js;  ///< of the HTML report
extern const std::string_view report_schema;                 ///< falsify/report.schema.json

}  // namespace assay::falsify::embedded
