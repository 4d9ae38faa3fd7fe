// The first line of every .cu file that ci/cmake/cuda_host.py translates, as nvcc includes cuda_runtime.h unasked. The
// C++ library's global lerp of C++20, which files for CUDA take for a function of their own, gets another name.
#pragma once

#define lerp assay_standard_lerp
#include <math.h>

#include <cmath>
#undef lerp

#include "cuda_runtime.h"
