// Examines the machine except its GPUs for `chorale doctor`.

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "chorale/world.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/source.hpp"

namespace chorale::tools {
namespace {

void examine_compiler(Examination& found) {
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

void examine_cpu(Examination& found) {
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

void examine_shared_memory(Examination& found) {
  struct statvfs room;
  if (::statvfs("/dev/shm", &room) != 0) {
    found.fail("/dev/shm", "is not there",
               "mount a tmpfs on /dev/shm; without it ranks can be threads, not processes");
    return;
  }
  if (::access("/dev/shm", W_OK | X_OK) != 0) {
    found.fail(
        "/dev/shm", std::string("cannot be written to: ") + std::strerror(errno),
        "mount a tmpfs there that this user may write to; without it ranks can be threads, not processes");
    return;
  }
  const uint64_t size = uint64_t(room.f_blocks) * room.f_frsize,
                 free = uint64_t(room.f_bavail) * room.f_frsize;
  found.judge(free >= (uint64_t(64) << 20), "/dev/shm",
              mebibytes(size) + ", of which free " + mebibytes(free),
              "ranks as processes share buffers there: give the container more (--shm-size=1g)");
}

void examine_ranks(Examination& found) {
  try {
    run_local(2, [](World& world) { world.barrier(); });
    found.pass("ranks", "two ranks as threads have synchronised");
  } catch (const std::exception& error) {
    found.fail("ranks", error.what(), "report this: it should work everywhere");
  }
}

}  // namespace

void examine_host(Examination& found) {
  examine_compiler(found);
  examine_cpu(found);
  examine_shared_memory(found);
  examine_ranks(found);
}

}  // namespace chorale::tools
