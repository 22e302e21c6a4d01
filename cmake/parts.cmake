# These functions look for the rows of optional_parts.cmake.
#
# Each configuration looks for every part again, so that a newly installed part is found. The result is in
# CHORALE_HAS_<NAME>. If the part is a program, a folder or a Python, its path is in CHORALE_<NAME>.

# chorale_part(<NAME> WITHOUT <what is left out> HELP <what to do> [IF <option>] [DEBIAN <packages>] [CACHED
# <prefix>]) also takes one of
#   PACKAGE <arguments of find_package()>      and CACHED, the prefix of its variables in the cache
#   PROGRAM <names> [PATHS <folders>]
#   FOLDER_OF <file> [PATHS <folders>]
#   PYTHON <module>                            of the first Python, or else of the system's
#   LISTS <command>                            a command that prints something if the part is there
# It is a macro, so that the caller sees what find_package() defines. tools/setup.sh installs the DEBIAN
# packages.
macro(chorale_part name)
  cmake_parse_arguments(part "" "WITHOUT;HELP;IF;CACHED;FOLDER_OF;PYTHON" "PACKAGE;PROGRAM;PATHS;LISTS;DEBIAN" ${ARGN})
  set(CHORALE_HAS_${name} FALSE)
  if(DEFINED part_IF AND NOT ${part_IF})
    chorale_note_part(${name} off "it is switched off" "-D${part_IF}=ON")
  else()
    if(DEFINED part_PACKAGE)
      chorale_forget_what_is_gone(${name} ${part_CACHED})
      list(POP_FRONT part_PACKAGE part_package)
      find_package(${part_package} QUIET ${part_PACKAGE})
      set(CHORALE_HAS_${name} ${${part_package}_FOUND})
    elseif(DEFINED part_PROGRAM)
      unset(CHORALE_${name} CACHE)
      find_program(CHORALE_${name} NAMES ${part_PROGRAM} PATHS ${part_PATHS})
    elseif(DEFINED part_FOLDER_OF)
      unset(CHORALE_${name} CACHE)
      find_path(CHORALE_${name} ${part_FOLDER_OF} PATHS ${part_PATHS})
    elseif(DEFINED part_PYTHON)
      chorale_find_python(CHORALE_${name} ${part_PYTHON})
    else()
      execute_process(COMMAND ${part_LISTS} TIMEOUT 30 OUTPUT_VARIABLE CHORALE_${name} ERROR_QUIET RESULT_VARIABLE part_ignored)
    endif()
    if(CHORALE_${name} AND NOT DEFINED part_PACKAGE)
      set(CHORALE_HAS_${name} TRUE)
    endif()
    if(CHORALE_HAS_${name})
      chorale_note_part(${name} present "" "")
    else()
      chorale_note_part(${name} absent "${part_WITHOUT}" "${part_HELP}")
    endif()
  endif()
  set(CHORALE_HAD_${name} ${CHORALE_HAS_${name}} CACHE INTERNAL "Whether the last configuration found it")
endmacro()

# Clears a package's cache entries if it was not found the last time, or if one of its paths is gone. Modules
# such as FindMPI keep the results of a search that failed.
function(chorale_forget_what_is_gone name prefix)
  get_cmake_property(all CACHE_VARIABLES)
  list(FILTER all INCLUDE REGEX "^${prefix}")
  set(stale FALSE)
  if(DEFINED CACHE{CHORALE_HAD_${name}} AND NOT CHORALE_HAD_${name})
    set(stale TRUE)
  endif()
  foreach(variable IN LISTS all)
    foreach(value IN LISTS ${variable})
      if(value MATCHES "NOTFOUND$" OR (IS_ABSOLUTE "${value}" AND NOT EXISTS "${value}"))
        set(stale TRUE)
      endif()
    endforeach()
  endforeach()
  if(stale)
    foreach(variable IN LISTS all)
      get_property(help CACHE ${variable} PROPERTY HELPSTRING)
      if(NOT help MATCHES "specified on the command line")  # a value from the command line stays
        unset(${variable} CACHE)
      endif()
    endforeach()
  endif()
endfunction()

# Sets the variable to a Python that has the module. Debian's modules belong to Debian's Python, which need
# not be the first in the PATH.
function(chorale_find_python variable module)
  set(${variable} "" PARENT_SCOPE)
  foreach(python "${Python3_EXECUTABLE}" /usr/bin/python3)
    if(EXISTS "${python}")
      execute_process(COMMAND ${python} -c "import importlib.util as u; exit(u.find_spec('${module}') is None)"
        RESULT_VARIABLE absent ERROR_QUIET)
      if(absent EQUAL 0)
        set(${variable} ${python} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

function(chorale_note_part name state without help)
  set_property(GLOBAL APPEND_STRING PROPERTY CHORALE_PARTS "${name}\t${state}\t${without}\t${help}\n")
  if(state STREQUAL "absent")
    message(STATUS "${name} was not found, so the build leaves out ${without} (to add it: ${help})")
  endif()
endfunction()

# Writes the rows that were looked for to a file, for tools/left_out.py.
function(chorale_write_parts file)
  get_property(rows GLOBAL PROPERTY CHORALE_PARTS)
  file(WRITE ${file} "${rows}")
  set_property(GLOBAL PROPERTY CHORALE_PARTS "")
endfunction()
