// Without this mode a Vulkan implementation may assume that no NaN, infinity or signed zero occurs.
// 4461 is SignedZeroInfNanPreserve, 4466 its capability (SPIR-V 1.6, 3.6 and 3.31), 32 the width.
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 32);
