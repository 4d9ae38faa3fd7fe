// Memory reserved before it is allocated: a computation that does not fit is refused before it starts, not half-way.
#pragma once

#include "runtime/device.hpp"

namespace assay {

/// Reserves memory of a device until the scope ends. Allocations on the same device by the same thread count against it
/// meanwhile and are refused beyond it. For all other allocations of this process, that much less memory is available.
/// A nested reservation of the same thread and device is taken from the outer one. Buffers may outlive a reservation.
class Reservation {
 public:
  /// Throws Unavailable{requested, available} if `bytes` exceeds the device's budget.
  Reservation(Device& device, std::uint64_t bytes);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  std::uint64_t bytes() const { return account_->bytes; }
  /// Returns the reserved bytes that are not allocated yet.
  std::uint64_t remaining() const;

 private:
  std::shared_ptr<Account> account_;
};

/// `const Reservation held = reserve(device, bytes);`
[[nodiscard]] inline Reservation reserve(Device& device, std::uint64_t bytes) { return {device, bytes}; }

}  // namespace assay
