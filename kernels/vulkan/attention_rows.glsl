// The mask of attention, and the addressing of its tensors.

// Returns the number of visible keys: the sequence's `length` keys, or if causal its keys up to the query's own
// position start + i.
uint visible_keys(int length, int start, uint i, bool causal) {
  return uint(causal ? clamp(start + int(i) + 1, 0, length) : length);
}

// Returns the offset of element 0 of head h at position i of sequence b.
uint at(uvec4 tensor, uint b, uint i, uint h) { return tensor.x + b * tensor.y + i * tensor.z + h * tensor.w; }

// Returns the head of row r of key-value head g.
uint head_of(uint g, uint r, uint group) {
  return g * group + r % group;
}
