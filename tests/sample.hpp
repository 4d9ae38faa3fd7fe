// ci/test tries a sample of what ci/long tries in full (assay_sample in tests/CMakeLists.txt).
#pragma once

#include <cstdlib>

namespace assay {

inline bool tries_all() { return std::getenv("ASSAY_ALL") != nullptr; }

}  // namespace assay
