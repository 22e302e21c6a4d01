// chorale doctor: what works on this machine, and what to do about the rest.

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "chorale/config.hpp"
#include "chorale/world.hpp"
#include "tools/command.hpp"
#include "tools/source.hpp"

namespace chorale::tools {
namespace {

/// Prints one row a look, and remembers whether one was bad.
class Examination {
 public:
  void pass(const std::string& what, const std::string& found) { row("ok", what, found); }
  void note(const std::string& what, const std::string& found) { row("-", what, found); }
  void fail(const std::string& what, const std::string& found, const std::string& remedy) {
    row("FAIL", what, found);
    std::cout << "                     remedy: " << remedy << '\n';
    well_ = false;
  }
  bool well() const { return well_; }

 private:
  static void row(const char* verdict, const std::string& what, const std::string& found) {
    std::printf("%-6s %-12s  %s\n", verdict, what.c_str(), found.c_str());
    std::fflush(stdout);
  }
  bool well_ = true;
};

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void look_at_compiler(Examination& found) {
  try {
    const TemporaryFolder folder;
    const HostCompiler compiler = find_compiler(folder);
    found.pass("compiler", compiler.text() + " (from " + compiler.from + "), C++20");
  } catch (const Failure& failure) {
    found.fail("compiler", failure.what(), failure.help);
  }
  try {
    const std::vector<std::string> folders = include_folders();
    found.pass("headers", join(folders));
  } catch (const Failure& failure) {
    found.fail("headers", failure.what(), failure.help);
  }
}

void look_at_cpu(Examination& found) {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown", line;
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  cpu_set_t allowed;
  const int cores = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  found.pass("cpu", model + ", " + count(uint64_t(cores), "core") + " for this process");
  struct sysinfo memory;
  if (::sysinfo(&memory) == 0) {
    found.pass("memory", mebibytes(uint64_t(memory.totalram) * memory.mem_unit) + ", of which free " +
                             mebibytes(uint64_t(memory.freeram) * memory.mem_unit));
  }
}

void look_at_shared_memory(Examination& found) {
  struct statvfs room;
  if (::statvfs("/dev/shm", &room) != 0) {
    found.fail("/dev/shm", "is not there",
               "mount a tmpfs on /dev/shm; without it ranks can be threads, not processes");
    return;
  }
  const uint64_t size = uint64_t(room.f_blocks) * room.f_frsize,
                 free = uint64_t(room.f_bavail) * room.f_frsize;
  const std::string text = mebibytes(size) + ", of which free " + mebibytes(free);
  if (free < (uint64_t(64) << 20)) {
    found.fail("/dev/shm", text,
               "ranks as processes share buffers there: give the container more (--shm-size=1g)");
  } else {
    found.pass("/dev/shm", text);
  }
}

void look_at_ranks(Examination& found) {
  try {
    run_local(2, [](World& world) { world.barrier(); });
    found.pass("ranks", "two ranks as threads have met");
  } catch (const std::exception& error) {
    found.fail("ranks", error.what(), "report this: it should work everywhere");
  }
}

void look_at_parts(Examination& found) {
#ifdef CHORALE_WITH_MPI
  found.pass("MPI", "built in");
#else
  found.note("MPI", "not built in: install libopenmpi-dev and build again to start ranks with mpirun");
#endif
#ifdef CHORALE_WITH_UCX
  found.pass("UCX", "built in");
#else
  found.note("UCX", "not built in: ranks are on one host");
#endif
#ifdef CHORALE_WITH_CUDA
  found.pass("CUDA", "built in");
#else
  found.note("CUDA", "not built in: plans run on the CPU");
#endif
}

}  // namespace

Action command::doctor(CLI::App&) {
  return [] {
    Examination found;
    look_at_compiler(found);
    look_at_cpu(found);
    look_at_shared_memory(found);
    look_at_parts(found);
    look_at_ranks(found);
    try {
      std::istringstream lines(Config::load().describe());
      found.pass("settings", "");
      for (std::string line; std::getline(lines, line);) std::cout << "                     " << line << '\n';
    } catch (const UsageError& error) {
      found.fail("settings", error.what(), "correct the variable or the file that CHORALE_CONFIG names");
    }
    std::cout << (found.well() ? "all is well\n" : "something is wrong: see FAIL above\n");
    return found.well() ? Exit::well : Exit::run_failed;
  };
}

}  // namespace chorale::tools
