// Examines versions for `chorale doctor`.

#include <fmt/format.h>
#include <spdlog/version.h>

#include <CLI/Version.hpp>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/library.hpp"
#include "tools/python.hpp"
#include "tools/version.hpp"

namespace chorale::tools {
namespace {

std::string built_by() {
#if defined(__clang__)
  return "Clang " + std::string(__clang_version__);
#else
  return "GCC " + std::string(__VERSION__);
#endif
}

/// Returns the first line, without spaces at its end.
std::string first_line(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

void examine_mpi(Examination& found) {
#ifdef CHORALE_WITH_MPI
  const std::string built = "built in";
#else
  const std::string built =
      "not built in (install libopenmpi-dev and build again to start ranks with mpirun)";
#endif
  const Library library{"libmpi.so.40", "libmpi.so.12", "libmpi.so"};
  const auto version = library.find<int(char*, int*)>("MPI_Get_library_version");
  char text[8192] = {};  // no MPI has a larger MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  if (version && version(text, &length) == 0) {
    found.pass("MPI", built + ", " + first_line(text));
  } else {
    found.note("MPI", built + ", no libmpi.so loads");
  }
}

void examine_ucx(Examination& found) {
#ifdef CHORALE_WITH_UCX
  const std::string built = "built in";
#else
  const std::string built =
      "not built in (install libucx-dev and build again for port channels between hosts)";
#endif
  const Library library{"libucp.so.0"};
  const auto version = library.find<const char*()>("ucp_get_version_string");
  if (version) {
    found.pass("UCX", built + ", UCX " + version() + " loads");
  } else {
    found.note("UCX", built + ", no libucp.so.0 loads");
  }
}

void examine_cuda_runtime(Examination& found) {
#ifdef CHORALE_CUDA_VERSION
  const std::string built = "built in, of CUDA " CHORALE_CUDA_VERSION;
#else
  const std::string built = "not built in: plans run on the CPU";
#endif
  const Library library{"libcudart.so.13", "libcudart.so.12", "libcudart.so"};
  const auto version = library.find<int(int*)>("cudaRuntimeGetVersion");
  int number = 0;
  if (version && version(&number) == 0) {
    found.pass("CUDA runtime", fmt::format("{}, CUDA {}.{} loads", built, number / 1000, number % 1000 / 10));
  } else {
    found.note("CUDA runtime", built + ", no libcudart.so loads");
  }
}

void examine_nccl(Examination& found) {
  const Library library{"libnccl.so.2"};
  const auto version = library.find<int(int*)>("ncclGetVersion");
  int number = 0;
  if (version && version(&number) == 0) {
    found.pass("NCCL", fmt::format("{}.{}.{} loads", number / 10000, number % 10000 / 100, number % 100));
  } else {
    found.note("NCCL", "no libnccl.so.2 loads: benchmarks have nothing to compare with");
  }
}

void examine_python(Examination& found) {
  const PythonFound python = find_python();
  if (python.well) {
    found.pass("Python", python.words);
  } else {
    found.note("Python", python.words + ": sources in Python need another one, PYTHON=/usr/bin/python3");
  }
}

}  // namespace

void examine_versions(Examination& found) {
  found.pass("chorale", CHORALE_VERSION ", built by " + built_by());
  found.pass("libraries",
             fmt::format("Boost {}.{}.{}, fmt {}.{}.{}, spdlog {}.{}.{}, nlohmann/json {}.{}.{}, CLI11 {}",
                         BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100,
                         FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, SPDLOG_VER_MAJOR,
                         SPDLOG_VER_MINOR, SPDLOG_VER_PATCH, NLOHMANN_JSON_VERSION_MAJOR,
                         NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION));
  examine_cuda_runtime(found);
  examine_nccl(found);
  examine_mpi(found);
  examine_ucx(found);
  examine_python(found);
}

}  // namespace chorale::tools
