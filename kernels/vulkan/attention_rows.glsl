// The mask of attention, and its tensors' addresses.

// A query sees the first so many keys: of the sequence's length, and where causal those up to its own position start + i.
uint visible_keys(int length, int start, uint i, bool causal) {
  return uint(causal ? clamp(start + int(i) + 1, 0, length) : length);
}

// Element 0 of head h at position i of sequence b.
uint at(uvec4 tensor, uint b, uint i, uint h) { return tensor.x + b * tensor.y + i * tensor.z + h * tensor.w; }

// The head of row r of key-value head g.
uint head_of(uint g, uint r, uint group) {
  return g * group + r % group;
}
