// Never ends: the only store that could end the loop is its own.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) volatile buffer Data { uint data[]; };

void main() {
  while (data[0] == 0) data[0] = 0;
}
