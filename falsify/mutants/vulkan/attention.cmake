foreach(fault sums_not_rescaled total_not_rescaled causal_off_by_one mask_absent lengths_ignored head_modulo own_scale
        last_key_dropped no_barrier_after_use no_barrier_after_store masked_row masked_values_leak logsumexp_unwritten)
  string(TOUPPER ${fault} macro)
  assay_add_shader_mutant(attention ${fault} WIDTH=64 FAULT_${macro})
endforeach()
