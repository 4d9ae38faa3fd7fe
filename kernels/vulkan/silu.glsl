// sigmoid(x), 1 - sigmoid(x) by exp(-|x|), which never overflows, for four elements.
#include "rows.glsl"

void sigmoid4(vec4 x, out vec4 value, out vec4 rest) {
  const vec4 power = exp(-abs(x));
  const vec4 larger = 1 / (1 + power), smaller = power * larger;
  const bvec4 negative = lessThan(x, vec4(0));
  value = mix(larger, smaller, negative);
  rest = mix(smaller, larger, negative);
}
