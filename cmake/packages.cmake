# `cpack --config BUILD/CPackConfig.cmake` makes a tarball, and packages for Debian: `libchorale<ABI>` has what programs load,
# `libchorale-dev` what programs are built with, and `chorale` the command.
file(STRINGS ${PROJECT_SOURCE_DIR}/bindings/c/include/chorale/chorale.h abi REGEX "^#define CHORALE_ABI [0-9]+$")
string(REGEX REPLACE ".* " "" abi "${abi}")
set(library libchorale${abi})

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME chorale)
set(CPACK_PACKAGE_VENDOR "The Chorale authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL library dev tools)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Chorale authors <authors@chorale.invalid>" CACHE STRING "Maintainer of the packages for Debian")
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Chorale's library for programs in any language, its libnccl.so.2, and the shipped plans")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libchorale-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Chorale's headers, static libraries and CMake package")
# ChoraleConfig.cmake looks for these.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${library} ${same}, libboost-context-dev, libboost-program-options-dev, libfmt-dev,\
 libpugixml-dev, libsodium-dev, libspdlog-dev, nlohmann-json3-dev")
if(CHORALE_HAS_MPI)
  set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS libopenmpi-dev)
endif()
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME chorale)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command that compiles, checks and runs GPU collectives")
# A plan needs neither headers nor a compiler; a program in C++ does.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library} ${same}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "libchorale-dev ${same}, g++")
include(CPack)
