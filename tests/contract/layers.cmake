# cmake -DSOURCE=... -DSCRATCH=... -P layers.cmake: the configure step names each file that is missing from a layer
# or belongs to no operation, in one sentence.
set(tree ${SCRATCH}/layers)

function(lay_out)
  file(REMOVE_RECURSE ${tree})
  file(WRITE ${tree}/contracts/copy.yaml "op: copy\n")
  file(WRITE ${tree}/reference/copy.hpp "void copy(\n")
  file(WRITE ${tree}/reference/helper.hpp "void used_by_copy(\n")
  file(WRITE ${tree}/falsify/properties/copy.cpp "#include \"copy_obligations.hpp\"\n")
  file(WRITE ${tree}/falsify/properties/helper.cpp "\n")
  foreach(file cpu/copy.cpp cpu/naive/copy.cpp cuda/copy.cu vulkan/copy.cpp vulkan/copy.comp vulkan/copy_tiled.comp)
    file(WRITE ${tree}/kernels/${file} "const KernelRegistration one\nvoid main()\n")
  endforeach()
  file(WRITE ${tree}/kernels/cpu/helper.cpp "\n")
endfunction()

# Runs the checks on the tree. `expected` is empty, or must occur in their message.
function(expect expected)
  file(WRITE ${tree}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(layers LANGUAGES NONE)\n"
       "include(${SOURCE}/ci/cmake/AssayOps.cmake)\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${tree} -B ${tree}/build RESULT_VARIABLE status ERROR_VARIABLE said
                  OUTPUT_QUIET)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  string(FIND "${said}" "${expected}" found)
  if((expected STREQUAL "" AND NOT status EQUAL 0) OR (NOT expected STREQUAL "" AND (status EQUAL 0 OR found EQUAL -1)))
    message(SEND_ERROR "expected '${expected}', got '${said}'")
  endif()
endfunction()

lay_out()
expect("")
foreach(file reference/copy.hpp falsify/properties/copy.cpp kernels/cpu/naive/copy.cpp kernels/cuda/copy.cu kernels/vulkan/copy.cpp
             kernels/vulkan/copy.comp)
  lay_out()
  file(REMOVE ${tree}/${file})
  expect("${file} is missing: contracts/copy.yaml makes copy an operation, so add that file or remove the contract.")
endforeach()
# A gradient may stand in the files of its operation, which name it.
lay_out()
file(WRITE ${tree}/contracts/copy_backward.yaml "op: copy_backward\n")
expect("reference/copy_backward.hpp is missing")
foreach(file reference/copy.hpp falsify/properties/copy.cpp kernels/cpu/naive/copy.cpp kernels/cuda/copy.cu kernels/vulkan/copy.cpp kernels/vulkan/copy.comp)
  file(APPEND ${tree}/${file} "copy_backward\n")
endforeach()
expect("")
foreach(file falsify/properties/copy.cpp kernels/cpu/copy.cpp kernels/cpu/naive/copy.cpp kernels/cuda/copy.cu
             kernels/vulkan/copy.cpp kernels/vulkan/copy.comp)
  lay_out()
  string(REPLACE "/copy" "/stray" stray ${file})
  configure_file(${tree}/${file} ${tree}/${stray} COPYONLY)
  expect("${stray} belongs to no operation: there is no contracts/stray.yaml, so add it or remove the file.")
endforeach()
lay_out()  # starts with an operation's name, but only shaders have variants
configure_file(${tree}/kernels/cpu/copy.cpp ${tree}/kernels/cpu/copy_nt.cpp COPYONLY)
expect("kernels/cpu/copy_nt.cpp belongs to no operation")
lay_out()
file(WRITE ${tree}/reference/stray.hpp "void stray(\n")
expect("reference/stray.hpp belongs to no operation: there is no contracts/stray.yaml, so add it or remove the file.")
