// Replaces CUDA's header of declarations that cuda_runtime.h has here.
#pragma once

#include "cuda_runtime.h"
