# This table lists the parts of Chorale and of its tests that are built or run only if the machine has what
# they need. Each part has one row. tools/setup.sh installs the packages that rows name as DEBIAN;
# tools/left_out.py lists the parts that a run of the tests lacked.
include(${CMAKE_CURRENT_LIST_DIR}/parts.cmake)

chorale_part(MPI PACKAGE MPI COMPONENTS CXX CACHED MPI
  WITHOUT "chorale::mpi and the tests of ranks that mpirun starts"
  HELP "apt-get install libopenmpi-dev openmpi-bin" DEBIAN libopenmpi-dev openmpi-bin)
chorale_part(UCX PACKAGE ucx 1.11 CACHED ucx_ IF CHORALE_UCX
  WITHOUT "port channels between hosts and their tests over UCX" HELP "apt-get install libucx-dev" DEBIAN libucx-dev)
chorale_part(CLP LISTS sh -c "ls /usr/lib/*/libClp.so.1 /usr/lib*/libClp.so.1 2>/dev/null"
  WITHOUT "the tests of chorale synthesize, which solves linear programs" HELP "apt-get install coinor-libclp1" DEBIAN coinor-libclp1)
chorale_part(NVCC PROGRAM nvcc PATHS /usr/local/cuda/bin
  WITHOUT "the CUDA backend and the tests of nvcc's code for the device library"
  HELP "install the CUDA toolkit, nvcc on the PATH or in /usr/local/cuda/bin")
chorale_part(CUDA_HEADERS FOLDER_OF cudaTypedefs.h PATHS /usr/local/cuda/include
  WITHOUT "the tests of the CUDA backend without a GPU" HELP "install the CUDA toolkit in /usr/local/cuda")
chorale_part(NCCL_HEADERS FOLDER_OF nccl.h PATHS /usr/local/cuda/include
  WITHOUT "the comparison of libnccl.so.2 with NVIDIA's nccl.h" HELP "install the CUDA toolkit with NCCL in /usr/local/cuda")
chorale_part(GPU LISTS nvidia-smi -L
  WITHOUT "everything that runs on GPUs (tests/cuda/run)" HELP "use a machine with an NVIDIA GPU and its driver")
chorale_part(PYTORCH PYTHON torch
  WITHOUT "the tests of PyTorch tensors and of the backend of torch.distributed"
  HELP "apt-get install python3-torch python3-setuptools python3-dev libtorch-dev pybind11-dev (the backend needs PyTorch 2.11)"
  DEBIAN python3-torch python3-setuptools python3-dev libtorch-dev pybind11-dev)
set(PYBIND11_NOPYTHON ON)  # the module is built for the Python that has NumPy
chorale_part(PYBIND11 PACKAGE pybind11 2.10 CACHED pybind11_
  WITHOUT "the Python package and its tests" HELP "apt-get install pybind11-dev python3-dev" DEBIAN pybind11-dev python3-dev)
chorale_part(NUMPY PYTHON numpy
  WITHOUT "the Python package and its tests" HELP "apt-get install python3-numpy python3-venv" DEBIAN python3-numpy python3-venv)
chorale_part(JSONSCHEMA PYTHON jsonschema
  WITHOUT "the test that plans fit docs/plan.schema.json" HELP "apt-get install python3-jsonschema" DEBIAN python3-jsonschema)
chorale_part(PKG_CONFIG PROGRAM pkg-config pkgconf
  WITHOUT "the test of a C program that is built by pkg-config" HELP "apt-get install pkg-config" DEBIAN pkg-config)
chorale_part(DPKG PROGRAM dpkg-shlibdeps
  WITHOUT "the test of packages for Debian" HELP "apt-get install dpkg-dev file" DEBIAN dpkg-dev file)
chorale_part(ZSH PROGRAM zsh
  WITHOUT "the test of what zsh completes" HELP "apt-get install zsh" DEBIAN zsh)
chorale_part(CLANG_FORMAT PROGRAM clang-format-14
  WITHOUT "the test that clang-format leaves the sources unchanged" HELP "apt-get install clang-format-14" DEBIAN clang-format-14)
chorale_part(CLANG_TIDY PROGRAM clang-tidy-14
  WITHOUT "the test that clang-tidy finds no faults in the sources" HELP "apt-get install clang-tidy-14" DEBIAN clang-tidy-14)
chorale_part(OTHER_COMPILER PROGRAM clang++-19 clang++-18 clang++-17 clang++-16 clang++
  WITHOUT "the check that another compiler accepts the sources" HELP "apt-get install clang-19" DEBIAN clang-19)
chorale_part(DEVICE_CLANG PROGRAM clang++-19 clang++-20
  WITHOUT "libchorale_device.bc, the device library as LLVM bitcode" HELP "apt-get install clang-19" DEBIAN clang-19)
chorale_part(NPM PROGRAM npm
  WITHOUT "the tests of the page that chorale view writes" HELP "apt-get install nodejs npm" DEBIAN nodejs npm)
chorale_part(CHROMIUM PROGRAM chromium chromium-browser google-chrome
  WITHOUT "the tests of the page that chorale view writes in a browser" HELP "apt-get install chromium" DEBIAN chromium)
chorale_part(MKDOCS PROGRAM mkdocs
  WITHOUT "the site of tools/docs and its test" HELP "apt-get install mkdocs python3-pygments" DEBIAN mkdocs python3-pygments)
chorale_part(DOXYGEN PROGRAM doxygen
  WITHOUT "the site of tools/docs and its test" HELP "apt-get install doxygen" DEBIAN doxygen)

chorale_write_parts(${PROJECT_BINARY_DIR}/parts.txt)
