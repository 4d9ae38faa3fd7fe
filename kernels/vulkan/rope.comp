// y = x [rows,heads,d] f32 with every pair rotated by its angle (rotary.glsl).
#pragma shaders rope_pairs
#extension GL_GOOGLE_include_directive : require
#define DIRECTION 1.0
#include "rotary.glsl"
