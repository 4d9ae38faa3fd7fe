// Certificates read only the tensors that they judge and memory of their own: every allocation is placed directly
// before, then directly after, inaccessible memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "own_process.hpp"
#include "tests/recorded/by_reference.hpp"

namespace assay::numbers::guarded_certificates_test {
namespace {

enum class GuardPage { none, behind, before };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void guard_allocations(GuardPage) {}  // the sanitizer has its own guards or its own allocator
#else

std::atomic<GuardPage> guard_page{GuardPage::none};

/// A range of pages; each allocation takes some and leaves an inaccessible page after them.
class Pages {
 public:
  bool hold(const void* p) const { return p >= begin_ && p < begin_ + kBytes; }
  void* take(std::size_t size, GuardPage at) {
    const std::size_t bytes = rounded_up(std::max<std::size_t>(size, 1)), offset = used_.fetch_add(bytes + kPage);
    if (begin_ == MAP_FAILED || offset + bytes + kPage > kBytes ||
        mprotect(begin_ + offset, bytes, PROT_READ | PROT_WRITE) != 0)
      return nullptr;
    return begin_ + offset + (at == GuardPage::behind ? bytes - size : 0);
  }
  void give_back(void* p, std::size_t size) {
    std::byte* const page = begin_ + (static_cast<std::byte*>(p) - begin_) / kPage * kPage;
    mprotect(page, rounded_up(std::max<std::size_t>(size, 1)), PROT_NONE);
  }

 private:
  static constexpr std::ptrdiff_t kPage = 4096;
  static constexpr std::size_t kBytes = std::size_t{1} << 34;
  static std::size_t rounded_up(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }
  std::byte* begin_ =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::atomic<std::size_t> used_{kPage};
};

/// Created by the process with guarded allocations, before the first allocation.
Pages* pages = nullptr;

void guard_allocations(GuardPage at) {
  pages = new Pages;
  guard_page = at;
}
#endif

}  // namespace
}  // namespace assay::numbers::guarded_certificates_test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// All `new` expressions of this program end here. A type's size is a multiple of its alignment, so that an allocation
// at a page's end is aligned.
[[gnu::noinline]] void* operator new(std::size_t size) {
  using namespace assay::numbers::guarded_certificates_test;
  void* const p =
      guard_page == GuardPage::none ? std::malloc(std::max<std::size_t>(size, 1)) : pages->take(size, guard_page);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  using namespace assay::numbers::guarded_certificates_test;
  if (pages == nullptr || !pages->hold(p)) std::free(p);  // guarded memory of unknown size stays allocated
}
[[gnu::noinline]] void operator delete(void* p, std::size_t size) noexcept {
  using namespace assay::numbers::guarded_certificates_test;
  if (pages != nullptr && pages->hold(p)) pages->give_back(p, size);
  else std::free(p);
}
#endif

namespace assay::numbers::guarded_certificates_test {
namespace {

using namespace falsify;
using namespace falsify::recorded;

enum class Results { right, not_finite };

/// Runs the reference on separately allocated tensors, then the operation's postconditions.
void certify(const OpDescriptor& op, const Drawn& d, Results results) {
  contract::set_level(contract::Level::full);
  Kernel kernel = reference_kernel(op, "fenced", nullptr);
  if (results == Results::not_finite)
    kernel.run = [&op](const Call& c, Device&) {
      nearest(op, c, nullptr);
      for (const int t : outputs_of(op)) {
        const Tensor& tensor = c.tensors[static_cast<std::size_t>(t)];
        if (tensor.shape.size() == 0 || !is_floating(tensor.dtype)) continue;
        std::vector<float> values = read(tensor);
        values.front() = INFINITY, values.back() = NAN;
        write(tensor, values);
      }
    };
  kernel.arithmetic = d.arithmetic, kernel.storage = d.storage;
  Call call{d.problem.dims, d.problem.params, {}};
  std::vector<std::vector<std::byte>> memory;
  for (std::size_t t = 0; t < op.tensors.size(); ++t) {
    const Shape shape = d.problem.shape(static_cast<int>(t));
    const DType dtype = d.problem.dtype(static_cast<int>(t));
    memory.emplace_back(static_cast<std::size_t>(shape.size()) * size_of(dtype));
    call.tensors.push_back({dtype, memory.back().data(), shape, row_major_strides(shape)});
    if (!d.problem.values[t].empty()) write(call.tensors.back(), d.problem.values[t]);
  }
  try {
    op.checked(call, kernel, device(Backend::cpu));
  } catch (const ContractViolation&) {
    if (results == Results::right) throw;
  }
}

class GuardedCertificates : public testing::TestWithParam<const OpDescriptor*> {};

TEST_P(GuardedCertificates, TouchNothingElse) {
  const OpDescriptor& op = *GetParam();
  for (const GuardPage at : {GuardPage::behind, GuardPage::before}) {
    const std::string ended = ended_by([&](Place& place) {
      const std::vector<Drawn> cases = drawn(op);
      guard_allocations(at);
      for (const Drawn& d : cases)
        for (const Results results : {Results::right, Results::not_finite}) {
          place.set(describe(op, d.the_case));
          certify(op, d, results);
        }
    });
    EXPECT_EQ(ended, "") << "with guard pages " << (at == GuardPage::behind ? "behind" : "before")
                         << " what is allocated";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, GuardedCertificates, testing::ValuesIn(operations().begin(), operations().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace assay::numbers::guarded_certificates_test
