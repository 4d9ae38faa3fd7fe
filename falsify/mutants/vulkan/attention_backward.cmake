foreach(fault causal_off_by_one mask_absent lengths_ignored masked_row)
  string(TOUPPER ${fault} macro)
  assay_add_shader(assay_mutants_vulkan ${CMAKE_SOURCE_DIR}/kernels/vulkan/attention_backward_rows.comp
                   mutant_attention_backward_rows_${fault} FAULT_${macro})
endforeach()
foreach(fault along_dropped scale_missing masked_values_leak no_barrier_after_use no_barrier_after_store head_modulo)
  string(TOUPPER ${fault} macro)
  assay_add_shader_mutant(attention_backward ${fault} WIDTH=64 FAULT_${macro})
endforeach()
foreach(fault along_dropped first_head_only scale_missing values_by_ds masked_values_leak no_barrier_after_use head_modulo
        last_rows_dropped)
  string(TOUPPER ${fault} macro)
  assay_add_shader(assay_mutants_vulkan ${CMAKE_SOURCE_DIR}/kernels/vulkan/attention_backward_kv.comp
                   mutant_attention_backward_kv_${fault} WIDTH=64 FAULT_${macro})
endforeach()
