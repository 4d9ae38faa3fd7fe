// The tests' own mutants: a correct CPU kernel, and run functions with known faults.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <unistd.h>

#include "falsify/mutation/study/mutant.hpp"

namespace assay::falsify {

using RunFunction = std::function<void(const Call&, Device&)>;

inline const Kernel& right_kernel() { return kernel("silu/cpu/naive"); }

inline void run_right(const Call& call, Device& device) { right_kernel().run(call, device); }
/// Changes the last bit of results for x between 1 and 2: correct kernels differ by more.
inline void run_last_bit(const Call& call, Device& device) {
  run_right(call, device);
  const View<float> x = call.tensors[0].as<float>(), y = call.tensors[1].as<float>();
  for (Index i = 0; i < x.shape()[0]; ++i)
    for (Index j = 0; j < x.shape()[1]; ++j)
      if (x(i, j) > 1 && x(i, j) < 2) y(i, j) = std::nextafter(y(i, j), 0.0f);
}
inline void run_negated(const Call& call, Device& device) {
  run_right(call, device);
  const View<float> y = call.tensors[1].as<float>();
  if (y.shape().size() > 0) *y.data() = -*y.data() - 1;
}
inline void run_crash(const Call&, Device&) { raise(SIGSEGV); }
inline void run_forever(const Call&, Device&) {
  for (;;) pause();
}

inline std::unique_ptr<AutomaticMutant> mutant_of(const Kernel& right, std::string hash, RunFunction run,
                                                  bool held_out = false) {
  auto made = std::make_unique<AutomaticMutant>();
  made->family = held_out ? "reserved" : "planted";
  made->held_out = held_out;
  made->description = "planted: " + hash;
  made->hash = std::move(hash);
  made->complete(right, std::move(run));
  return made;
}

/// `size` mutants that differ in their hash only; every fifth is invalid.
class ManyMutants final : public MutantSet {
 public:
  ManyMutants(std::size_t size, RunFunction run, const Kernel& original = right_kernel())
      : size_(size), run_(std::move(run)), original_(original) {}
  const Kernel& original() const override { return original_; }
  std::size_t size() const override { return size_; }
  std::uint64_t key(std::size_t i) const override { return i * 977; }
  std::string_view family(std::size_t) const override { return "planted"; }
  std::unique_ptr<AutomaticMutant> make(std::size_t i) const override {
    return i % 5 == 4 ? nullptr : mutant_of(original_, std::to_string(i), run_);
  }

 private:
  std::size_t size_;
  RunFunction run_;
  const Kernel& original_;
};

/// A hundred mutants with hashes known before they are made. Making any mutant except the wanted one is a test failure.
class CostlyMutants final : public MutantSet {
 public:
  explicit CostlyMutants(std::size_t wanted) : wanted_(wanted) {}
  const Kernel& original() const override { return right_kernel(); }
  std::size_t size() const override { return 100; }
  std::uint64_t key(std::size_t i) const override { return i; }
  std::string_view family(std::size_t) const override { return "planted"; }
  std::string hash(std::size_t i) const override { return std::to_string(i); }
  std::unique_ptr<AutomaticMutant> make(std::size_t i) const override {
    EXPECT_EQ(i, wanted_);
    return mutant_of(right_kernel(), hash(i), run_right);
  }

 private:
  std::size_t wanted_;
};

}  // namespace assay::falsify
