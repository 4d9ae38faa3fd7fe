// Accounts of the memory that reservations (serve/reservation.hpp) hold.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace assay {

class Device;

/// What one reservation holds. Buffers keep the account they were charged to.
struct Account {
  class Budget* budget = nullptr;
  std::shared_ptr<Account> outer;  ///< the reservation it was taken out of
  std::uint64_t bytes = 0;         ///< held
  std::uint64_t used = 0;          ///< of them, in live buffers and in reservations taken out of this one
  bool open = true;
};

/// The promises made on one pool of memory. Every device has one; devices in host memory share theirs. Internal to
/// Device and Reservation.
class Budget {
 public:
  /// Serializes allocations with promises: each sees what the other took.
  std::mutex mutex;

  // All below with the mutex held.
  std::shared_ptr<Account> open(const Device& device, std::uint64_t bytes);
  void close(const std::shared_ptr<Account>& account);
  /// The account of this thread that an allocation goes to (null for none). Throws Unavailable where it does not fit.
  std::shared_ptr<Account> account_for(const Device& device, std::uint64_t bytes);
  void charge(Account* account, std::uint64_t bytes);
  void refund(Account* account, std::uint64_t bytes);

 private:
  std::uint64_t promised_ = 0;  ///< held by open reservations and not yet allocated
};

}  // namespace assay
