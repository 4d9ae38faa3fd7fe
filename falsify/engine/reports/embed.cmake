# cmake -DOUTPUT=... -DFILES="name=path;..." -P embed.cmake: a C++ file that holds each file as a string.
set(text "// Made by falsify/engine/reports/embed.cmake.\n#include \"falsify/engine/reports/embedded.hpp\"\n\nnamespace assay::falsify::embedded {\n")
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND text "const std::string_view ${name} = R\"embedded(${content})embedded\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}}  // namespace assay::falsify::embedded\n")
