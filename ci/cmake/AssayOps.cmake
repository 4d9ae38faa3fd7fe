# contracts/*.yaml is the only list of operations. From it come the generated sources and the check that every
# layer has its file of each operation, and no file of an operation that does not exist.
include(${CMAKE_CURRENT_LIST_DIR}/AssayGenerate.cmake)
file(GLOB ASSAY_CONTRACT_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/contracts/*.yaml)
set(ASSAY_OPS "")
foreach(file ${ASSAY_CONTRACT_FILES})
  cmake_path(GET file STEM op)
  if(NOT op STREQUAL "numerics")  # how accurate functions are; no operation
    list(APPEND ASSAY_OPS ${op})
  endif()
endforeach()
set(ASSAY_GENERATED ${PROJECT_BINARY_DIR}/generated)

# Stops where an operation lacks the file that a layer must have of it. A gradient may stand in the file of its operation, which names it.
function(assay_require_layer folder extension)
  foreach(op ${ASSAY_OPS})
    string(REGEX REPLACE "_backward$" "" forward ${op})
    set(named "")
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/${forward}.${extension})
      file(STRINGS ${PROJECT_SOURCE_DIR}/${folder}/${forward}.${extension} named REGEX "${op}" LIMIT_COUNT 1)
    endif()
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${folder}/${op}.${extension} AND NOT named)
      message(FATAL_ERROR "${folder}/${op}.${extension} is missing: contracts/${op}.yaml makes ${op} an "
                          "operation, so add that file or remove the contract.")
    endif()
  endforeach()
endfunction()

# Stops where a file is of an operation that has no contract. Helpers may lie beside operations: a file claims to
# be of the operation it is named after only where a line matches `pattern` (<name>: the file's own name). With
# VARIANTS, <op>_<algorithm> is of <op> too.
function(assay_forbid_orphans glob pattern)
  file(GLOB files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${glob})
  foreach(file ${files})
    cmake_path(GET file STEM name)
    string(REPLACE "<name>" "${name}" own_pattern "${pattern}")
    file(STRINGS ${PROJECT_SOURCE_DIR}/${file} claims REGEX "${own_pattern}" LIMIT_COUNT 1)
    set(owned FALSE)
    foreach(op ${ASSAY_OPS})
      if(name STREQUAL op OR (ARGN STREQUAL "VARIANTS" AND name MATCHES "^${op}_"))
        set(owned TRUE)
      endif()
    endforeach()
    if(claims AND NOT owned)
      message(FATAL_ERROR "${file} belongs to no operation: there is no contracts/${name}.yaml, so add it or "
                          "remove the file.")
    endif()
  endforeach()
endfunction()

assay_require_layer(reference hpp)
assay_require_layer(falsify cpp)
assay_require_layer(kernels/cpu/naive cpp)
assay_require_layer(kernels/cuda cu)
assay_require_layer(kernels/vulkan cpp)
assay_require_layer(kernels/vulkan comp)
# Names of kernels/cuda/<op>.cu.
set(ASSAY_CUDA_FILES "")
foreach(op ${ASSAY_OPS})
  if(EXISTS ${PROJECT_SOURCE_DIR}/kernels/cuda/${op}.cu)
    list(APPEND ASSAY_CUDA_FILES ${op}.cu)
  endif()
endforeach()
assay_forbid_orphans(falsify/*.cpp "_obligations\\.hpp\"")
assay_forbid_orphans(kernels/cpu/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/cpu/naive/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/cuda/*.cu "KernelRegistration ")
assay_forbid_orphans(kernels/vulkan/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/vulkan/*.comp "void main\\(" VARIANTS)
assay_forbid_orphans(reference/*.hpp "^void <name>\\(")

# assay_operations(): generates, and defines
#   assay_generated    what must be built before a generated header is included
#   assay_ops          checked entry points and descriptors
#   assay_oracles      references instantiated for every number type
#   assay_obligations  checks linked to the ids they belong to
function(assay_operations)
  assay_generate(${ASSAY_GENERATED} ${PROJECT_SOURCE_DIR} ${ASSAY_CONTRACT_FILES})
  add_custom_target(assay_generated DEPENDS ${generated_files})

  target_sources(assay_bounds PRIVATE ${ASSAY_GENERATED}/numerics.cpp)
  set_source_files_properties(${ASSAY_GENERATED}/numerics.cpp TARGET_DIRECTORY assay_bounds PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(assay_bounds assay_generated)

  add_library(assay_ops STATIC ${generated_ops})
  # GCC 12 takes the unused extents of a temporary Shape for read where it inlines == of four axes.
  target_compile_options(assay_ops PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_libraries(assay_ops PUBLIC assay_contract)
  add_library(assay_oracles STATIC ${generated_oracles})
  set_source_files_properties(${ASSAY_GENERATED}/oracles.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(assay_oracles PUBLIC assay_reference)
  # The scalar mirror stays scalar: vectorized, or made a memcpy, it would be one more kernel of the compiler's making.
  target_compile_options(assay_oracles PRIVATE -fno-tree-vectorize -fno-tree-loop-distribute-patterns)
  # The tables name checks defined in assay_falsify, which in turn asks for the tables: as often as a linker may have to go round.
  add_library(assay_obligations STATIC ${generated_obligations})
  target_link_libraries(assay_obligations PUBLIC assay_ops assay_falsify)
  set_target_properties(assay_obligations PROPERTIES LINK_INTERFACE_MULTIPLICITY 4)
  foreach(library assay_ops assay_oracles assay_obligations)
    add_dependencies(${library} assay_generated)
    assay_compile_together(${library})
  endforeach()
endfunction()

# assay_negative_tests(TARGET): adds the generated tests that break each requires clause.
function(assay_negative_tests target)
  foreach(op ${ASSAY_OPS})
    target_sources(${target} PRIVATE ${ASSAY_GENERATED}/${op}_negative_test.cpp)
  endforeach()
  add_dependencies(${target} assay_generated)
endfunction()
