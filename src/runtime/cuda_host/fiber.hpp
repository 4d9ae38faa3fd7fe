// A thread of a block as a fiber with its own stack. Internal to the execution model. Inline, because a return after a
// stack switch is mispredicted: each avoided return saves 5 ns.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace assay::cuda_host {

class Fiber {
 public:
  using Entry = void (*)();

  /// Represents the running stack, to switch back to.
  Fiber() = default;
  /// Allocates a stack. `number` staggers the tops of stacks, so that they do not share cache sets. Throws Unavailable
  /// without memory.
  explicit Fiber(std::size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch to this fiber call `entry`, which must not return. The stack's old contents are dropped
  /// without unwinding: the end of a failed block needs this, and objects of kernels have no destructors.
  void start(Entry entry);

  /// Switches from this fiber to `next`; returns when another fiber switches back.
  void switch_to(Fiber& next) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_stack_, next.stack_, next.bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    if (track_ == nullptr) track_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.track_, 0);
#endif
    running_ = &next;
    arrived(boost::context::detail::jump_fcontext(next.here_, this));
  }

 private:
  void arrived(boost::context::detail::transfer_t from) {
    auto& left = *static_cast<Fiber*>(from.data);
    left.here_ = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack_, &left.stack_, &left.bytes_);
#endif
  }

  inline static Fiber* running_ = nullptr;  ///< identifies a starting fiber

  std::byte* mapping_ = nullptr;  ///< a guard page, then the stack
  std::size_t offset_ = 0;        ///< distance of the top from the end of the mapping
  Entry entry_ = nullptr;
  void* here_ = nullptr;  ///< context to resume
  // State for the sanitizers.
  const void* stack_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* track_ = nullptr;
};

}  // namespace assay::cuda_host
