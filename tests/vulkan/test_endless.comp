// Never ends: only its own store could end the loop.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) volatile buffer Data { uint data[]; };

void main() {
  while (data[0] == 0) data[0] = 0;
}
