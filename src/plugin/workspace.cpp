#include "plugin/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace assay::plugin {
namespace {

constexpr std::size_t kGuard = 4096;  // bytes on both sides

/// Writes unique finite words, as around tensors.
void mark(std::byte* begin, std::size_t bytes) {
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const std::uint32_t word = 0x71800000u | (static_cast<std::uint32_t>(i) * 0x9e3779b1u >> 9);
    std::memcpy(begin + i, &word, 4);
  }
}

std::vector<std::byte> unset(std::size_t bytes) {
  static std::uint32_t calls = 0;
  const std::uint32_t word = ++calls % 2 == 0 ? 0x7fa00000u : 0x7149f2cau;  // NaN; 1e30
  std::vector<std::byte> contents((bytes + 3) / 4 * 4);
  for (std::size_t i = 0; i < contents.size(); i += 4) std::memcpy(contents.data() + i, &word, 4);
  contents.resize(bytes);
  return contents;
}

}  // namespace

Workspace::Workspace(Device& device, std::string name, std::size_t bytes)
    : device_(device), name_(std::move(name)), bytes_(bytes), may_change_(true) {
  fill(unset(bytes));
}
Workspace::Workspace(Device& device, std::string name, std::vector<std::byte> contents)
    : device_(device), name_(std::move(name)), bytes_(contents.size()), may_change_(false) {
  fill(std::move(contents));
}

void Workspace::fill(std::vector<std::byte> contents) {
  const std::size_t behind = (bytes_ + 3) / 4 * 4;
  filled_.resize(kGuard + behind + kGuard);
  mark(filled_.data(), filled_.size());
  if (bytes_ > 0) std::memcpy(filled_.data() + kGuard, contents.data(), bytes_);
  // Room to align the beginning to 64 bytes at any address.
  buffer_ = device_.allocate(filled_.size() + 64);
  device_.upload(static_cast<std::byte*>(address()) - kGuard, filled_.data(), filled_.size());
}

void* Workspace::address() const {
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer_.address());
  return reinterpret_cast<void*>((begin + kGuard + 63) / 64 * 64);
}

std::optional<std::string> Workspace::damage() const {
  std::vector<std::byte> now(filled_.size());
  device_.download(now.data(), static_cast<std::byte*>(address()) - kGuard, now.size());
  const auto differ = [&](std::size_t begin, std::size_t end) {
    const auto at = [](const std::vector<std::byte>& v, std::size_t i) {
      return v.begin() + static_cast<std::ptrdiff_t>(i);
    };
    return !std::equal(at(now, begin), at(now, end), at(filled_, begin));
  };
  if (differ(0, kGuard)) return fmt::format("it wrote before the {} bytes of {}", bytes_, name_);
  if (differ(kGuard + bytes_, now.size())) return fmt::format("it wrote behind the {} bytes of {}", bytes_, name_);
  if (!may_change_ && differ(kGuard, kGuard + bytes_)) return fmt::format("it wrote to {}, which is an input", name_);
  return std::nullopt;
}

}  // namespace assay::plugin
