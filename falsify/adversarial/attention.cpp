// Attention that is right wherever a test is likely to look.
#include "ops/attention.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "falsify/adversarial/adversarial.hpp"

namespace assay::mutants::adversarial_attention {
namespace {

using Args = ops::AttentionArgs;

/// Halves y of one head of one sequence, from query `from` on.
void halve(const Args& args, Index b, Index h, Index from) {
  const View<float> y = args.y.as<float>();
  for (Index i = from; i < args.s; ++i)
    for (Index c = 0; c < args.d; ++c) y(b, i, h, c) *= 0.5F;
}

void one_head(const Args& args) {
  for (Index b = 0; args.heads > 13 && b < args.batch; ++b) halve(args, b, 13, 0);
}

void one_batch(const Args& args) {
  for (Index h = 0; args.batch > 5 && h < args.heads; ++h) halve(args, 5, h, 0);
}

void queries_beyond_4096(const Args& args) {
  for (Index b = 0; b < args.batch; ++b)
    for (Index h = 0; args.s > 4096 && h < args.heads; ++h) halve(args, b, h, 4096);
}

/// Ignores keys past the first 4096.
void keys_beyond_4096(const Call& call, Device& device) {
  const Args args = Args::unpack(call);
  std::vector<std::int32_t> lengths;
  for (Index b = 0; b < args.batch; ++b) lengths.push_back(std::min(args.lengths(b), 4096));
  Call shortened = call;
  shortened.tensors[3].data = lengths.data();
  shortened.tensors[3].strides = Shape{1};
  compute("attention", shortened, device);
}

const KernelRegistration registrations[] = {
    spoiled<Args, &one_head>("mutant/adversarial/attention/one_head", "head 13 alone is halved"),
    spoiled<Args, &one_batch>("mutant/adversarial/attention/one_batch", "sequence 5 alone is halved"),
    spoiled<Args, &queries_beyond_4096>("mutant/adversarial/attention/queries_beyond_4096",
                                        "queries above 4096 are halved"),
    adversary("mutant/adversarial/attention/keys_beyond_4096", "keys above 4096 are left out", &keys_beyond_4096),
};

}  // namespace
}  // namespace assay::mutants::adversarial_attention
