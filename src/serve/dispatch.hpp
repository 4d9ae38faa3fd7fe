// Which back end serves a caller who asks for `automatic`: CUDA, then Vulkan, then the CPU with its kernels by priority.
// Callers who name a back end or a kernel get that one or an error; nothing here concerns them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/registry.hpp"

namespace assay {

/// Asks for a back end to be chosen: `ops::matmul(args, automatic)`.
struct Automatic {};
inline constexpr Automatic automatic{};

/// A back end, or one kernel of the CPU, that came first in the order and did not serve the call.
struct PassedOver {
  enum class Why {
    absent,        ///< this program has no kernel of it for the operation
    too_small,     ///< moving operands costs more than the call (Kernel::automatic_above)
    suppressed,    ///< a LayerPass is active on this thread
    refused,       ///< its kernels cannot take this call, or its memory does not hold it
    switched_off,  ///< it failed, in this call or before
  };
  Backend backend;
  Why reason;
  std::string says;  ///< one sentence

  /// It would have served the call, and could not.
  bool fallback() const { return reason == Why::refused || reason == Why::switched_off; }
};

/// What served a call, and what did not.
struct Dispatched {
  const Kernel* kernel = nullptr;
  std::vector<PassedOver> passed_over;

  bool fell_back() const;
};

/// Called once for each back end that is switched off, with one sentence. The library itself prints nothing; without a
/// sink, switched_off() still tells. An empty function removes the sink.
void set_dispatch_sink(std::function<void(const std::string& message)> sink);
/// Why a back end is off: its device was unavailable or failed during an automatic call. It stays off for the process.
std::optional<std::string> switched_off(Backend backend);
/// Automatic calls of this process that another back end served than the one meant to.
std::uint64_t fallbacks();

/// While one exists on this thread, automatic calls with operands in host memory stay on the CPU: a pass over a whole
/// layer keeps the GPU busy, and single operations would interrupt it. Operands on a device are served there.
class LayerPass {
 public:
  LayerPass();
  ~LayerPass();
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;
};

/// The device whose own memory holds the call's tensors; null where they lie in host memory. Throws InputError where
/// some lie there and some elsewhere.
Device* residence(const Call& call);

/// Runs `attempt` with the kernel and device that serve the call. Where `home` is given they are that device's, and its
/// errors are the caller's. Otherwise CUDA and Vulkan are tried, then the CPU's kernels: one that throws Unavailable is
/// passed over for this call, one that throws DeviceError is switched off. Throws what the last kernel of the CPU does.
Dispatched dispatch(std::string_view op, const Call& call, Device* home,
                    const std::function<void(const Kernel&, Device&)>& attempt);

}  // namespace assay
