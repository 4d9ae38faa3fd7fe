// Tests that run on each back end whose device is here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "runtime/device.hpp"
#include "runtime/registry.hpp"

namespace assay::program {

class OnDevice : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    try {
      device_ = &device(GetParam());
    } catch (const Unavailable& e) {
      GTEST_SKIP() << e.what();
    }
  }
  Device* device_ = nullptr;
};

/// The back ends that this build has kernels for.
inline std::vector<Backend> built_backends() {
  std::vector<Backend> backends;
  for (const Backend backend : {Backend::cpu, Backend::cuda_host, Backend::vulkan, Backend::cuda})
    if (std::ranges::find(kernels(), backend, &Kernel::backend) != kernels().end()) backends.push_back(backend);
  return backends;
}

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
  std::string text(name(info.param));
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace assay::program
