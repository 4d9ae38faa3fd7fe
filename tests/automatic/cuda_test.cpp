// Mutated PTX of this program, loaded in place of the launched kernels, on a GPU. The last test loses the device's
// context.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/errors.hpp"
#include "falsify/mutation/ptx/mutant.hpp"
#include "falsify/mutation/ptx/toolkit.hpp"
#include "falsify/mutation/study/cuda/cubin.hpp"
#include "tests/automatic/cuda_kernels.hpp"

namespace assay::falsify {
namespace {

CudaDevice& cuda() { return static_cast<CudaDevice&>(device(Backend::cuda)); }

/// Returns the entry of this program whose name contains `part`.
ptx::Program program_of(std::string_view part) {
  for (const std::string& file : ptx::embedded()) {
    const ptx::Module module(file);
    for (const ptx::Item& item : module.items)
      if (item.entry && item.name.find(part) != std::string::npos) return {module, item.name};
  }
  throw std::runtime_error(fmt::format("no entry {}", part));
}

/// Returns the result of `run` on 32 floats 10, 11, ... while an entry is replaced by this PTX.
std::vector<float> replaced(const ptx::Program& program, const std::vector<ptx::Edit>& edits,
                            const std::function<void(float*)>& run) {
  const ptx::Assembled made = ptx::assemble(program.guarded(edits), cuda().compute_capability());
  EXPECT_EQ(made.why, "");
  const auto cubin = std::make_shared<const std::string>(made.cubin);
  int seen = 0;
  const LaunchFilterScope scope(cuda(), [&](const void* kernel, std::string_view name) {
    if (name != program.entry()) return kernel;
    ++seen;
    return loaded(cuda(), cubin, name);
  });
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10 + static_cast<float>(i);
  const Buffer buffer = cuda().allocate(x.size() * 4);
  cuda().upload(buffer.address(), x.data(), buffer.bytes());
  run(static_cast<float*>(buffer.address()));
  cuda().synchronize();
  cuda().download(x.data(), buffer.address(), buffer.bytes());
  EXPECT_GT(seen, 0) << "the device names the kernel otherwise than its PTX";
  return x;
}

/// Returns the edits of the mutant with this description.
std::vector<ptx::Edit> find(const ptx::Program& program, std::string_view family, std::string_view description) {
  for (const ptx::MutantKey& place : ptx::mutant_keys(program)) {
    ptx::Mutant m = ptx::mutant(program, place);
    if (ptx::operators()[place.family].family == family && m.description.find(description) != std::string::npos)
      return m.edits;
  }
  throw std::runtime_error(fmt::format("no such mutant: {}", description));
}

TEST(CudaPtx, AChangedConstantChangesTheResultAndTheGuardDoesNot) {
  const ptx::Program program = program_of("add_one_kernel");
  const auto run = [](float* x) { add_one(x, cuda()); };
  EXPECT_EQ(replaced(program, {}, run)[5], 16);
  EXPECT_EQ(replaced(program, find(program, "constant", "0f40000000;"), run)[5], 17);
  EXPECT_EQ(replaced(program, find(program, "component", "%tid.y"), run)[5], 15);
  EXPECT_EQ(replaced(program, {}, run)[5], 16);
}

TEST(CudaPtx, LoopsUpToTheLimitRunAsBefore) {
  const ptx::Program program = program_of("sum_up_kernel");
  const int most = static_cast<int>(ptx::kMaxIterations) - 1;
  EXPECT_EQ(replaced(program, {}, [](float* x) { sum_up(x, 100, cuda()); })[0], 5050);
  EXPECT_GT(replaced(program, {}, [&](float* x) { sum_up(x, most, cuda()); })[0], 0);
}

TEST(CudaPtx, ALoopWithoutEndIsEnded) {
  const ptx::Program program = program_of("sum_up_kernel");
  std::vector<ptx::Edit> endless;
  for (std::size_t i = 0; i < program.code().size(); ++i)
    if (program.leads_back(i)) endless = {{i, {{"", "bra", {program.at(i).operands[0]}}}}};
  ASSERT_EQ(endless.size(), 1U);
  EXPECT_THROW(replaced(program, endless, [](float* x) { sum_up(x, 3, cuda()); }), DeviceError);
}

}  // namespace
}  // namespace assay::falsify
