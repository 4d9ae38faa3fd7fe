// Memory promised before it is allocated: a computation that does not fit is refused before it starts, not half-way.
#pragma once

#include "runtime/device.hpp"

namespace assay {

/// Holds memory of a device until the scope ends. Allocations made meanwhile on the same device by the same thread
/// count against it and are refused beyond it; all others, of this process, find that much less memory. A reservation
/// made while another of the same thread and device is open is taken out of that one. Buffers may outlive it.
class Reservation {
 public:
  /// Throws Unavailable{requested, available} where the device's budget does not hold `bytes`.
  Reservation(Device& device, std::uint64_t bytes);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  std::uint64_t bytes() const { return account_->bytes; }
  /// Bytes of it that are not allocated yet.
  std::uint64_t remaining() const;

 private:
  std::shared_ptr<Account> account_;
};

/// `const Reservation held = reserve(device, bytes);`
[[nodiscard]] inline Reservation reserve(Device& device, std::uint64_t bytes) { return {device, bytes}; }

}  // namespace assay
