// dx = dy [rows,heads,d] f32 with every pair rotated back by its angle (rotary.glsl).
#pragma shaders rope_backward_pairs
#extension GL_GOOGLE_include_directive : require
#define DIRECTION -1.0
#include "rotary.glsl"
