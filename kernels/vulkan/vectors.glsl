// Loads four neighbouring elements of a tensor, as a vector if all of its rows are aligned.

// Loads elements at..at+3 of a tensor with `left` elements from `at` on, at least one; elements past the end are 0.
#define PLAIN(x) (x)
#define DEFINE_LOAD4(name, data, data4, ALIGNED) DEFINE_LOAD4_AS(name, data, data4, ALIGNED, PLAIN, PLAIN)
#define DEFINE_LOAD4_STORED(name, data, data4, ALIGNED) DEFINE_LOAD4_AS(name, data, data4, ALIGNED, LOADED, LOADED4)
#define DEFINE_LOAD4_AS(name, data, data4, ALIGNED, ONE, FOUR)                \
  vec4 name(uint at, uint left) {                                             \
    if (left >= 4) {                                                          \
      if (ALIGNED) return FOUR(data4[at >> 2]);                               \
      return vec4(ONE(data[at]), ONE(data[at + 1]), ONE(data[at + 2]), ONE(data[at + 3])); \
    }                                                                         \
    vec4 four = vec4(ONE(data[at]), 0, 0, 0);                                 \
    if (left > 1) four.y = ONE(data[at + 1]);                                 \
    if (left > 2) four.z = ONE(data[at + 2]);                                 \
    return four;                                                              \
  }

#define DEFINE_STORE4(name, data, data4, ALIGNED) DEFINE_STORE4_AS(name, data, data4, ALIGNED, PLAIN, PLAIN)
#define DEFINE_STORE4_STORED(name, data, data4, ALIGNED) DEFINE_STORE4_AS(name, data, data4, ALIGNED, STORE, STORE4)
#define DEFINE_STORE4_AS(name, data, data4, ALIGNED, ONE, FOUR)               \
  void name(uint at, uint left, vec4 four) {                                  \
    if (left >= 4 && ALIGNED) {                                               \
      data4[at >> 2] = FOUR(four);                                            \
      return;                                                                 \
    }                                                                         \
    data[at] = ONE(four.x);                                                   \
    if (left > 1) data[at + 1] = ONE(four.y);                                 \
    if (left > 2) data[at + 2] = ONE(four.z);                                 \
    if (left > 3) data[at + 3] = ONE(four.w);                                 \
  }
