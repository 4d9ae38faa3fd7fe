assay_add_shader(assay_kernels_vulkan attention_naive.comp attention_naive)
foreach(width 64 128 256)
  assay_add_shader(assay_kernels_vulkan attention.comp attention_tiled_${width} WIDTH=${width})
endforeach()
