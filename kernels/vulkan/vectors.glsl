// Loads four neighbouring elements of a tensor, as a vector if all of its rows are aligned.

// Loads elements at..at+3 of a tensor with `left` elements from `at` on, at least one; elements past the end are 0.
#define DEFINE_LOAD4(name, data, data4, ALIGNED)                              \
  vec4 name(uint at, uint left) {                                             \
    if (left >= 4) {                                                          \
      if (ALIGNED) return data4[at >> 2];                                     \
      return vec4(data[at], data[at + 1], data[at + 2], data[at + 3]);        \
    }                                                                         \
    vec4 four = vec4(data[at], 0, 0, 0);                                      \
    if (left > 1) four.y = data[at + 1];                                      \
    if (left > 2) four.z = data[at + 2];                                      \
    return four;                                                              \
  }

#define DEFINE_STORE4(name, data, data4, ALIGNED)                             \
  void name(uint at, uint left, vec4 four) {                                  \
    if (left >= 4 && ALIGNED) {                                               \
      data4[at >> 2] = four;                                                  \
      return;                                                                 \
    }                                                                         \
    data[at] = four.x;                                                        \
    if (left > 1) data[at + 1] = four.y;                                      \
    if (left > 2) data[at + 2] = four.z;                                      \
    if (left > 3) data[at + 3] = four.w;                                      \
  }
