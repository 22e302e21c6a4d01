# chorale_unity(<target>) compiles the sources of a folder together, up to eight at a time, with
# CHORALE_UNITY=ON, so that their common templates are compiled once. Names in their anonymous namespaces must
# then differ. A source that cannot do that has the property SKIP_UNITY_BUILD_INCLUSION.
function(chorale_unity target)
  if(NOT CHORALE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "sources_${folder}" folder)
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    math(EXPR group "(${count_${folder}} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes sources that are compiled together for headers, whose types must not use anonymous namespaces.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# chorale_for_programs(<target>): compiles the sources of a program, or of a static library that only programs link, as programs are
# compiled. So all of them can use one precompiled header, although the sources are compiled as libraries of their own.
function(chorale_for_programs target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
endfunction()
