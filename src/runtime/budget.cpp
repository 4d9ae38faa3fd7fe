#include "runtime/budget.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace assay {
namespace {

/// Reservations opened by this thread, innermost last. An entry closed by another thread is removed when encountered.
thread_local std::vector<std::shared_ptr<Account>> opened;

std::shared_ptr<Account> innermost(const Budget& budget) {
  std::erase_if(opened, [&](const auto& account) { return account->budget == &budget && !account->open; });
  for (auto a = opened.rbegin(); a != opened.rend(); ++a)
    if ((*a)->budget == &budget) return *a;
  return nullptr;
}

/// Returns the account itself or the nearest open account around it; null if there is none.
Account* nearest_open(Account* account) {
  while (account != nullptr && !account->open) account = account->outer.get();
  return account;
}

std::string bytes_of(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

Unavailable refusal(const Device& device, std::uint64_t bytes, const std::string& why) {
  return Unavailable(std::string(name(device.backend())) + " memory", bytes_of(bytes) + " requested, " + why);
}

}  // namespace

std::shared_ptr<Account> Budget::open(const Device& device, std::uint64_t bytes) {
  const auto outer = account_for(device, bytes);
  if (outer == nullptr && promised_ == 0)
    if (const std::uint64_t available = device.memory().available; bytes > available)
      throw refusal(device, bytes, std::to_string(available) + " available");
  if (outer != nullptr) outer->used += bytes;
  else promised_ += bytes;
  return opened.emplace_back(std::make_shared<Account>(Account{.budget = this, .outer = outer, .bytes = bytes}));
}

void Budget::close(const std::shared_ptr<Account>& account) {
  account->open = false;
  std::erase(opened, account);
  const std::uint64_t unused = account->bytes - account->used;
  // Memory still held by buffers stays charged to the outer account, and is refunded to it when they are freed.
  if (Account* outer = nearest_open(account->outer.get())) outer->used -= unused;
  else promised_ -= unused;
}

std::shared_ptr<Account> Budget::account_for(const Device& device, std::uint64_t bytes) {
  if (auto account = innermost(*this)) {
    const std::uint64_t left = account->bytes - account->used;
    if (bytes > left)
      throw refusal(device, bytes, std::to_string(left) + " available of a reservation of " + bytes_of(account->bytes));
    return account;
  }
  if (promised_ > 0) {
    const std::uint64_t available = device.memory().available, free = available - std::min(available, promised_);
    if (bytes > free)
      throw refusal(device, bytes,
                    std::to_string(free) + " available: " + std::to_string(promised_) + " of " +
                        std::to_string(available) + " are reserved");
  }
  return nullptr;
}

void Budget::charge(Account* account, std::uint64_t bytes) {
  if (account == nullptr) return;
  account->used += bytes;
  promised_ -= bytes;
}

void Budget::refund(Account* account, std::uint64_t bytes) {
  account = nearest_open(account);
  if (account == nullptr) return;
  account->used -= bytes;
  promised_ += bytes;
}

}  // namespace assay
