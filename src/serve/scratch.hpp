// Memory that a host kernel works in beside its tensors: from the heap, or of a session that has planned it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace assay {

/// While it lives, scratch of this thread lies in `memory`, as far as it fits, else on the heap.
class ScratchScope {
 public:
  static constexpr std::size_t kAlignment = 64;  ///< of `memory`, and of all that is taken

  explicit ScratchScope(std::span<std::byte> memory = {}) : memory_(memory), outer_(current) { current = this; }
  ~ScratchScope() { current = outer_; }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

  /// Returns the bytes that were in use at once at most, on the heap or not.
  std::size_t most() const { return most_; }
  /// True if this thread is in a scope.
  static bool open() { return current != nullptr; }

  /// Returns memory, null for zero bytes; the last to be taken is given back first. Throws std::bad_alloc.
  static void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::size_t whole = whole_lines(bytes);
    ScratchScope* const scope = current;
    void* address = nullptr;
    if (scope != nullptr && scope->used_ + whole <= scope->memory_.size())
      address = scope->memory_.data() + scope->used_;
    else address = ::operator new (whole, std::align_val_t{kAlignment});
    if (scope != nullptr) scope->used_ += whole, scope->most_ = std::max(scope->most_, scope->used_);
    return address;
  }
  static void give(void* address, std::size_t bytes) noexcept {
    ScratchScope* const scope = current;
    if (scope != nullptr) scope->used_ -= whole_lines(bytes);
    if (scope == nullptr || !scope->holds(address)) ::operator delete (address, std::align_val_t{kAlignment});
  }

 private:
  static std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  bool holds(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return memory_.data() <= at && at < memory_.data() + memory_.size();
  }

  static inline constinit thread_local ScratchScope* current = nullptr;

  std::span<std::byte> memory_;
  ScratchScope* outer_;
  std::size_t used_ = 0, most_ = 0;
};

/// Elements of a trivial type.
template <class T>
class Scratch {
 public:
  /// Without `clear`, contents are undefined. Throws std::bad_alloc.
  explicit Scratch(std::size_t count, bool clear = false)
      : count_(count), data_(static_cast<T*>(ScratchScope::take(count * sizeof(T)))) {
    if (clear && count > 0) std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
  }
  ~Scratch() { ScratchScope::give(data_, count_ * sizeof(T)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }

 private:
  std::size_t count_;
  T* data_;
};

}  // namespace assay
