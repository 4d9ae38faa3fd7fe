// Runs the kernels written in tests.
#pragma once

#include <gtest/gtest.h>

#include "runtime/cuda/launch.hpp"

namespace assay {

template <class... P, class... A>
void run_here(void (*kernel)(P...), const LaunchShape& shape, A&&... args) {
  launch(kernel, shape, device(Backend::cuda_host), std::forward<A>(args)...);
}

/// Expects `call` to throw DeviceError with this code and a text that contains each of `parts`.
template <class F>
void expect_error(F call, const std::string& code, std::initializer_list<const char*> parts = {}) {
  try {
    call();
    ADD_FAILURE() << "no error; wanted " << code;
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code, code) << error.what();
    for (const char* part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace assay
