// attention.comp with a workgroup of 64 invocations per query: one score each of 64 keys at a time, then four columns
// each of their values. Every query rereads keys and values.
#pragma shaders attention_naive; attention_naive_f16 F16; attention_naive_bf16 BF16
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "attention.glsl"

shared float weights[64];

void main() {
  const uint lane = gl_LocalInvocationID.x, h = gl_WorkGroupID.y, g = h / group, b = gl_WorkGroupID.z;
  for (uint i = gl_WorkGroupID.x; i < s; i += gl_NumWorkGroups.x) {
    const uint keys = keys_seen(b, i);
    float largest = -INFINITY, total = 0;
    vec4 sums = vec4(0);
    for (uint key0 = 0; key0 < keys; key0 += 64) {
      const uint key = key0 + lane, count = min(64, keys - key0);
      float score = -INFINITY;
      if (key < keys) {
        float dot = 0;
        for (uint c = 0; c < d; ++c)
          dot = fma(LOADED(q[at(of_q, b, i, h) + c]), LOADED(k[at(of_k, b, key, g) + c]), dot);
        score = scale * dot;
      }
      weights[lane] = score;
      barrier();
      float now = largest;
      for (uint j = 0; j < count; ++j) now = now < weights[j] ? weights[j] : now;
      barrier();
      weights[lane] = exp_of(score - (now == -INFINITY ? 0 : now));
      barrier();
      const float factor = largest < now && largest > -INFINITY ? exp(largest - now) : 1;
      total *= factor;
      sums *= factor;
      largest = now;
      for (uint j = 0; j < count; ++j) {
        const uint value = at(of_v, b, key0 + j, g);
        total += weights[j];
        for (uint n = 0; n < 4; ++n)
          if (lane + n * 64 < d) sums[n] = fma(weights[j], LOADED(v[value + lane + n * 64]), sums[n]);
      }
      barrier();
    }
    for (uint n = 0; n < 4; ++n)
      if (lane + n * 64 < d) y[at(of_y, b, i, h) + lane + n * 64] = STORE(total == 0 ? 0 : sums[n] / total);
    if (lane == 0) store_logsumexp(b, h, i, total == 0 ? -INFINITY : isnan(total) ? total : largest + log(total));
  }
}
