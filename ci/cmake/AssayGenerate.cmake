# Runs contractgen on contracts, in this repository's build and, once installed, in the builds of other projects.

# assay_generate(FOLDER ROOT CONTRACTS...): writes the sources of these contracts into FOLDER during the build; messages
# name the files relative to ROOT. Sets in the caller
#   generated_files        all generated files
#   generated_ops          checked calls and descriptors
#   generated_calls        entry points for callers: src/serve chooses their kernels
#   generated_oracles      references instantiated for every number type
#   generated_obligations  links from obligation ids to checks
#   generated_tests        GoogleTest: each requires clause violated in each way it names
function(assay_generate folder root)
  set(files ops/index.cpp ops/calls.cpp oracles.cpp obligations.cpp)
  set(ops ${folder}/ops/index.cpp)
  set(calls ${folder}/ops/calls.cpp)
  set(oracles ${folder}/oracles.cpp)
  set(obligations ${folder}/obligations.cpp)
  foreach(contract ${ARGN})
    cmake_path(GET contract STEM op)
    if(op STREQUAL "numerics")  # accuracy of functions, not an operation
      list(APPEND files numerics.cpp)
      continue()
    endif()
    list(APPEND files ops/${op}.hpp ops/${op}.cpp ${op}_negative_test.cpp ${op}_oracle.cpp ${op}_obligations.hpp
         ${op}_obligations.cpp docs/${op}.md)
    list(APPEND ops ${folder}/ops/${op}.cpp)
    list(APPEND oracles ${folder}/${op}_oracle.cpp)
    list(APPEND obligations ${folder}/${op}_obligations.cpp)
    list(APPEND tests ${folder}/${op}_negative_test.cpp)
  endforeach()
  list(TRANSFORM files PREPEND ${folder}/)
  add_custom_command(
    OUTPUT ${files}
    COMMAND assay::contractgen ${folder} ${root} ${ARGN}
    DEPENDS $<TARGET_FILE:assay::contractgen> ${ARGN}
    COMMENT "Generating operations from contracts"
    VERBATIM)
  set(generated_files ${files} PARENT_SCOPE)
  foreach(list ops calls oracles obligations tests)
    set(generated_${list} ${${list}} PARENT_SCOPE)
  endforeach()
endfunction()
