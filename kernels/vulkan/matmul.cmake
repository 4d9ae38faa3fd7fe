assay_add_shader(assay_kernels_vulkan matmul.comp matmul_naive16)
assay_add_shader(assay_kernels_vulkan matmul.comp matmul_tiled64 BLOCK=64)
assay_add_shader(assay_kernels_vulkan matmul.comp matmul_tiled128 BLOCK=128)
