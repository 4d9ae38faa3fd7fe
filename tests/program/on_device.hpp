// Tests that run on each back end whose device is here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/errors.hpp"
#include "runtime/device.hpp"

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

inline const auto kBackends = testing::Values(Backend::cpu, Backend::cuda_host, Backend::vulkan);

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
  std::string text(name(info.param));
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace assay::program
