// Replaces CUDA's cuda.h, of which .cu files need nothing but what it includes.
#pragma once

#include "cuda_runtime_api.h"

#define CUDA_VERSION 12000
