#!/usr/bin/env bash
# Compiles and runs the bench (about 15 s and 20 s); a second table holds registers. From any folder.
cd "$(dirname "$0")"; t=$(mktemp -d)
command -v nvcc >/dev/null || export PATH=$PATH:/usr/local/cuda/bin
nvcc -O3 -std=c++20 --expt-relaxed-constexpr -lineinfo -diag-suppress 177 -gencode arch=compute_90a,code=sm_90a -o $t/q4 q4.cu > $t/log 2>&1 || { tail -5 $t/log; exit 1; }
timeout 75 $t/q4 2>&1 | tee "${OUT:-$t}/q4.txt"
[ -n "$SANITIZE" ] && timeout 40 compute-sanitizer $t/q4 quick 2>&1 | tail -5
exit 0
