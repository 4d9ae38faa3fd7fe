// This machine's memory, read from a fabricated /proc and /sys.
#include "runtime/host_memory.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

class HostMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) / "host_memory";
    fs::remove_all(root);
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    600 kB\n");
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  void expect(std::uint64_t total, std::uint64_t available) const {
    const MemoryInfo info = host_memory(root);
    EXPECT_EQ(info.total, total);
    EXPECT_EQ(info.available, available);
  }
  fs::path root;
};

TEST_F(HostMemoryTest, OfTheMachine) { expect(1024000, 614400); }

TEST_F(HostMemoryTest, OfAGroupOfVersion2AndThoseAroundIt) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/memory.max", "500000\n");
  write("sys/fs/cgroup/job/memory.current", "200000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 50000\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "100000\n");
  expect(500000, 350000);
  write("sys/fs/cgroup/job/step/memory.max", "90000\n");  // usage already exceeds this limit
  expect(90000, 0);
}

TEST_F(HostMemoryTest, OfTheContainersOwnGroupWhereThePathLeadsOutside) {
  write("proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
  write("sys/fs/cgroup/memory.max", "300000\n");
  write("sys/fs/cgroup/memory.current", "100000\n");
  expect(300000, 200000);
}

TEST_F(HostMemoryTest, OfAGroupOfVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "400000\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "150000\n");
  write("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 7\ntotal_inactive_file 50000\n");
  expect(400000, 300000);
}

}  // namespace
}  // namespace assay
