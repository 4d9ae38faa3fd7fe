// Products that are right where a test is likely to look.
#include "ops/matmul.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "falsify/adversarial/adversarial.hpp"

namespace assay::mutants::adversarial_matmul {
namespace {

using Args = ops::MatmulArgs;

template <class F>
void for_each(const Args& args, F f) {
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) f(i, j, c(i, j));
}

/// Returns one element of the product.
float dot(const Args& args, Index i, Index j) {
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  float sum = 0;
  for (Index p = 0; p < args.k; ++p) sum += a(i, p) * b(p, j);
  return sum;
}

void constant_output(const Call& call, Device&) {
  for_each(Args::unpack(call), [](Index, Index, float& c) { c = 1; });
}

/// Returns the previous result for the same shape, for any inputs.
void cached_output(const Call& call, Device& device) {
  static std::map<std::vector<Index>, std::vector<float>> cache;
  const Args args = Args::unpack(call);
  std::vector<float>& known = cache[{args.m, args.k, args.n}];
  if (known.empty()) {
    compute("matmul", call, device);
    for_each(args, [&](Index, Index, float& c) { known.push_back(c); });
  }
  std::size_t at = 0;
  for_each(args, [&](Index, Index, float& c) { c = known[at++]; });
}

void every_second_call(const Call& call, Device& device) {
  struct Own;
  if (call_number<Own>() % 2 == 0) compute("matmul", call, device);
}

void wrong_after_100_calls(const Call& call, Device& device) {
  struct Own;
  compute("matmul", call, device);
  if (call_number<Own>() > 100) for_each(Args::unpack(call), [](Index, Index, float& c) { c *= 1.01F; });
}

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 64 == 0; }

void aligned_only(const Args& args) {
  if (aligned(args.a.data()) && aligned(args.b.data()) && aligned(args.c.data())) return;
  for_each(args, [](Index, Index, float& c) { c += 1; });
}

/// Returns the product of the inputs' integer parts: right in tests that draw integers.
void small_integers_only(const Call& call, Device&) {
  const Args args = Args::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  for_each(args, [&](Index i, Index j, float& c) {
    c = 0;
    for (Index p = 0; p < args.k; ++p) c += std::trunc(a(i, p)) * std::trunc(b(p, j));
  });
}

void row_beyond_1024(const Args& args) {
  for (Index j = 0; args.m > 1024 && j < args.n; ++j) args.c.as<float>()(1024, j) = 0;
}

/// Right only if the output held numbers before: a NaN means that a test watches.
void right_over_numbers(const Call& call, Device& device) {
  const Args args = Args::unpack(call);
  const bool watched = args.m * args.n > 0 && !std::isnan(args.c.as<float>()(0, 0));
  compute("matmul", call, device);
  if (!watched) for_each(args, [](Index, Index, float& c) { c += 1; });
}

/// Calls f for the private anonymous memory of a process, piece by piece, without touching an address: the system
/// copies.
template <class F>
void scan(pid_t process, F f) {
  char path[64], line[512];
  std::snprintf(path, sizeof path, "/proc/%d/maps", process);
  std::FILE* const maps = std::fopen(path, "r");
  if (maps == nullptr) return;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3 || access[0] != 'r' || access[1] != 'w' ||
        end - begin > (64UL << 20U))
      continue;
    std::vector<float> piece((end - begin) / sizeof(float));
    iovec own{piece.data(), end - begin}, other{reinterpret_cast<void*>(begin), end - begin};
    const ssize_t bytes = process_vm_readv(process, &own, 1, &other, 1, 0);
    if (bytes > 0 && f(piece, static_cast<std::size_t>(bytes) / sizeof(float))) break;
  }
  std::fclose(maps);
}

/// Computes two elements and searches the memory of its own process and of its parent for an answer with them, as
/// floats or as the nearest doubles: an oracle computed before the kernel would be there.
void found_in_memory(const Call& call, Device&) {
  const Args args = Args::unpack(call);
  const auto count = static_cast<std::size_t>(args.m * args.n);
  for_each(args, [](Index, Index, float& c) { c = 0; });
  if (count == 0) return;
  const float first = dot(args, 0, 0), last = dot(args, args.m - 1, args.n - 1);
  if (first == 0 || last == 0) return;
  for (const pid_t process : {getpid(), getppid()}) {
    bool found = false;
    scan(process, [&](const std::vector<float>& piece, std::size_t size) {
      for (std::size_t at = 0; at + count <= size && !found; ++at)
        if (piece[at] == first && piece[at + count - 1] == last) {
          found = true;
          std::size_t from = at;
          for_each(args, [&](Index, Index, float& c) { c = piece[from++]; });
        }
      // As the bounds' oracle stores values: a double at the start of 32 bytes.
      constexpr std::size_t kStep = 32 / sizeof(float);
      const auto value = [&](std::size_t i) {
        double x = 0;
        std::memcpy(&x, piece.data() + i, sizeof x);
        return static_cast<float>(x);
      };
      for (std::size_t at = 0; at + count * kStep <= size && !found; at += 2)
        if (value(at) == first && value(at + (count - 1) * kStep) == last) {
          found = true;
          std::size_t from = at;
          for_each(args, [&](Index, Index, float& c) { c = value(from), from += kStep; });
        }
      return found;
    });
    if (found) return;
  }
}

const KernelRegistration registrations[] = {
    adversary("mutant/adversarial/matmul/constant_output", "writes 1 everywhere", &constant_output),
    adversary("mutant/adversarial/matmul/cached_output", "answers with what the same shape had before", &cached_output),
    adversary("mutant/adversarial/matmul/every_second_call", "writes only on every second call", &every_second_call),
    adversary("mutant/adversarial/matmul/wrong_after_100_calls", "1% too large after 100 calls in one process",
              &wrong_after_100_calls),
    spoiled<Args, &aligned_only>("mutant/adversarial/matmul/aligned_only",
                                 "right only where all pointers are aligned to 64 bytes"),
    adversary("mutant/adversarial/matmul/small_integers_only", "right only for integers", &small_integers_only),
    spoiled<Args, &row_beyond_1024>("mutant/adversarial/matmul/row_beyond_1024", "row 1024 is zero"),
    adversary("mutant/adversarial/matmul/right_over_numbers", "right only where the output held numbers before",
              &right_over_numbers),
    adversary("mutant/adversarial/matmul/found_in_memory",
              "looks for the oracle's answer in the memory of its process and of its parent", &found_in_memory),
};

}  // namespace
}  // namespace assay::mutants::adversarial_matmul
