#include "serve/reservation.hpp"

namespace assay {

Reservation::Reservation(Device& device, std::uint64_t bytes) {
  Budget& budget = device.budget();
  const std::scoped_lock lock(budget.mutex);
  account_ = budget.open(device, bytes);
}

Reservation::~Reservation() {
  const std::scoped_lock lock(account_->budget->mutex);
  account_->budget->close(account_);
}

std::uint64_t Reservation::remaining() const {
  const std::scoped_lock lock(account_->budget->mutex);
  return account_->bytes - account_->used;
}

}  // namespace assay
