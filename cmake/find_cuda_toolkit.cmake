# chorale_find_cuda_toolkit(<options of find_package>) finds the CUDA toolkit. If the project requires CMake 3.25 or newer, the
# FindCUDAToolkit of CMake 3.25 sets a property of CUDA::nvToolsExt, and fails with CUDA 13, which has no such library.
macro(chorale_find_cuda_toolkit)
  set(chorale_minimum_required ${CMAKE_MINIMUM_REQUIRED_VERSION})
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
  find_package(CUDAToolkit ${ARGN})
  set(CMAKE_MINIMUM_REQUIRED_VERSION ${chorale_minimum_required})
endmacro()
