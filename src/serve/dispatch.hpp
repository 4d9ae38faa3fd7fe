// Choice of the back end for callers who ask for `automatic`: CUDA, then Vulkan, then the CPU with its kernels by
// priority. Callers who name a back end or a kernel get it or an error, and do not pass through here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/registry.hpp"

namespace assay {

/// Requests automatic choice of the back end: `ops::matmul(args, automatic)`.
struct Automatic {};
inline constexpr Automatic automatic{};

/// A back end, or one CPU kernel, that came earlier in the order and did not serve the call.
struct SkippedCandidate {
  enum class Why {
    absent,        ///< this program has no kernel of the back end for the operation
    too_small,     ///< moving operands costs more than the call (Kernel::automatic_above)
    suppressed,    ///< a LayerPass is active on this thread
    refused,       ///< its kernels cannot take this call, or its memory is too small
    switched_off,  ///< it failed in this call or before
  };
  Backend backend;
  Why reason;
  std::string says;  ///< one sentence

  /// Returns whether it was meant to serve the call and could not.
  bool fallback() const { return reason == Why::refused || reason == Why::switched_off; }
};

/// The kernel that served a call, and the candidates passed over.
struct Dispatched {
  const Kernel* kernel = nullptr;
  std::vector<SkippedCandidate> passed_over;

  bool fell_back() const;
};

/// Sets a function that is called once with one sentence for each back end that is switched off. The library itself
/// prints nothing; switched_off() also works without a sink. An empty function removes the sink.
void set_dispatch_sink(std::function<void(const std::string& message)> sink);
/// Returns why a back end is off: its device was unavailable or failed during an automatic call. It stays off for the
/// process.
std::optional<std::string> switched_off(Backend backend);
/// Returns the number of automatic calls of this process that were not served by the intended back end.
std::uint64_t fallbacks();

/// While one exists on this thread, automatic calls with operands in host memory stay on the CPU: a pass over a whole
/// layer keeps the GPU busy, and single operations would interrupt it. Operands on a device are served on that device.
class LayerPass {
 public:
  LayerPass();
  ~LayerPass();
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;
};

/// Returns the device whose memory holds the call's tensors; null for host memory. Throws InputError if the tensors are
/// in different memories.
Device* residence(const Call& call);

/// Runs `attempt` with the kernel and device that serve the call. If `home` is given, only its kernels are used, and
/// their errors go to the caller. Otherwise CUDA and Vulkan are tried, then the CPU's kernels: a kernel that throws
/// Unavailable is passed over for this call, a back end that throws DeviceError is switched off. Throws the error of
/// the last CPU kernel.
Dispatched dispatch(std::string_view op, const Call& call, Device* home,
                    const std::function<void(const Kernel&, Device&)>& attempt);

}  // namespace assay
