// Accounts of the memory that reservations (serve/reservation.hpp) hold.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace assay {

class Device;

/// State of one reservation. Buffers keep the account they were charged to.
struct Account {
  class Budget* budget = nullptr;
  std::shared_ptr<Account> outer;  ///< the reservation it was taken from
  std::uint64_t bytes = 0;         ///< reserved
  std::uint64_t used = 0;          ///< part of `bytes` in live buffers and in reservations taken from this one
  bool open = true;
};

/// The reservations on one pool of memory. Every device has one budget; devices in host memory share theirs. Internal
/// to Device and Reservation.
class Budget {
 public:
  /// Serializes allocations and reservations, so that each sees the others.
  std::mutex mutex;

  // The functions below require the mutex.
  std::shared_ptr<Account> open(const Device& device, std::uint64_t bytes);
  void close(const std::shared_ptr<Account>& account);
  /// Returns the account of this thread that an allocation is charged to (null for none). Throws Unavailable if it does
  /// not fit.
  std::shared_ptr<Account> account_for(const Device& device, std::uint64_t bytes);
  void charge(Account* account, std::uint64_t bytes);
  void refund(Account* account, std::uint64_t bytes);

 private:
  std::uint64_t promised_ = 0;  ///< reserved by open reservations and not yet allocated
};

}  // namespace assay
