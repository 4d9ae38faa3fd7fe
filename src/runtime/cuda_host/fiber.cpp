#include "runtime/cuda_host/fiber.hpp"

#include <sys/mman.h>

#include "core/errors.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace assay::cuda_host {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kPage = 4096;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::size_t kStackBytes = 64 * kPage;  // red zones make frames several times larger
#else
constexpr std::size_t kStackBytes = 16 * kPage;
#endif

}  // namespace

Fiber::Fiber(std::size_t number) : offset_(number % 61 * 192), bytes_(kStackBytes) {
  void* mapping =
      mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, kPage, PROT_NONE) != 0)
    throw Unavailable("cuda-host", "no memory for the stack of a thread");
  mapping_ = static_cast<std::byte*>(mapping);
  stack_ = mapping_ + kPage;
#if defined(__SANITIZE_THREAD__)
  track_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(track_);
#endif
  munmap(mapping_, kPage + kStackBytes);
}

void Fiber::start(Entry entry) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(mapping_ + kPage, kStackBytes);
#endif
  entry_ = entry;
  here_ = context::make_fcontext(mapping_ + kPage + kStackBytes - offset_, kStackBytes - offset_,
                                 [](context::transfer_t from) {
                                   running_->arrived(from);
                                   running_->entry_();
                                 });
}

}  // namespace assay::cuda_host
