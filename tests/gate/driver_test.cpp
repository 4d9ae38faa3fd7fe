// The version of a driver, in the format of the evidence.
#include <gtest/gtest.h>

#include "cli/local_devices.hpp"

namespace assay::cli {
namespace {

TEST(NvidiaDriver, IsNamedByItsVersion) {
  EXPECT_EQ(nvidia_driver_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025"),
            "NVIDIA 580.95.05");
}

TEST(NvidiaDriver, NotByTheProcessorOfTheOpenModule) {
  EXPECT_EQ(
      nvidia_driver_in(
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (buildd@host)  Mon Aug 4"),
      "NVIDIA 580.159.04");
}

TEST(NvidiaDriver, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(nvidia_driver_in(""), "");
  EXPECT_EQ(nvidia_driver_in("NVIDIA for x86_64"), "");
}

}  // namespace
}  // namespace assay::cli
