assay_add_shader_mutant(global_grad_norm tail_dropped FAULT_TAIL_DROPPED)
assay_add_shader_mutant(global_grad_norm last_partials_lost FAULT_LAST_PARTIALS_LOST)
assay_add_shader(assay_mutants_vulkan ${CMAKE_SOURCE_DIR}/kernels/vulkan/global_grad_norm_total.comp
                 mutant_global_grad_norm_squared FAULT_SQUARED)
assay_add_shader_mutant(clip_grad_norm squared FAULT_SQUARED)
assay_add_shader_mutant(clip_grad_norm scales_up FAULT_SCALES_UP)
