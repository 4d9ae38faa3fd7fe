// The mask of attention, and its tensors' addresses.

// A query sees the first so many keys: of the sequence's length, and where causal those up to its own position start + i.
uint visible_keys(int length, int start, uint i, bool causal, int places) {
#ifdef FAULT_LENGTHS_IGNORED
  length = places;
#endif
#ifdef FAULT_MASK_ABSENT
  causal = false;
#endif
#ifdef FAULT_CAUSAL_OFF_BY_ONE
  const int own = 0;
#else
  const int own = 1;
#endif
  return uint(causal ? clamp(start + int(i) + own, 0, length) : length);
}

// Element 0 of head h at position i of sequence b.
uint at(uvec4 tensor, uint b, uint i, uint h) { return tensor.x + b * tensor.y + i * tensor.z + h * tensor.w; }

// The head of row r of key-value head g.
uint head_of(uint g, uint r, uint group) {
#ifdef FAULT_HEAD_MODULO
  return r % group * gl_NumWorkGroups.z + g;
#else
  return g * group + r % group;
#endif
}
