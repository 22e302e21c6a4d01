// World::from_environment() joins a world with the values that a launcher put into the environment.

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

#include "chorale/world.hpp"
#include "executor/bootstrap/address.hpp"

namespace chorale {
namespace {

constexpr const char* help =
    "torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; mpirun and srun set only the ranks, so "
    "also set MASTER_ADDR=<host of rank 0> and MASTER_PORT=<a free port there> (mpirun -x NAME=VALUE; for "
    "srun, export them)";

/// Names the environment variables in which a launcher passes the rank.
struct Launcher {
  const char* rank;
  const char* ranks;  ///< the variable with the number of ranks
};

// PMIx gives the number of ranks only through its library, so the user must set WORLD_SIZE.
constexpr Launcher launchers[] = {{"RANK", "WORLD_SIZE"},
                                  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  {"PMI_RANK", "PMI_SIZE"},
                                  {"PMIX_RANK", "WORLD_SIZE"}};
// Other launchers start their daemons with srun, and then srun's rank is the rank of a daemon. So it counts
// only if no other launcher's rank is set.
constexpr Launcher slurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

std::string text_of(const char* name) {
  const char* const text = std::getenv(name);
  if (!text || !*text) throw UsageError(fmt::format("{} is not set in the environment: {}", name, help));
  return text;
}

int number_of(const char* name) {
  const std::string text = text_of(name);
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) {
    throw UsageError(fmt::format("{}={} in the environment is not a number from 0 to {}", name, text,
                                 std::numeric_limits<int>::max()));
  }
  return number;
}

/// Holds the rank that a launcher gave this process.
struct Place {
  int rank, ranks;
};

Place place_by(const Launcher& launcher) {
  const Place place{number_of(launcher.rank), number_of(launcher.ranks)};
  if (place.rank < place.ranks) return place;
  throw UsageError(
      fmt::format("{}={} and {}={} in the environment: a rank must be less than the number of ranks",
                  launcher.rank, place.rank, launcher.ranks, place.ranks));
}

void require_same(const char* name, int value, const char* other_name, int other) {
  if (value == other) return;
  throw UsageError(fmt::format(
      "{}={} and {}={} in the environment disagree, so it is not clear which launcher started this process: "
      "unset the variables that another launcher left behind",
      name, value, other_name, other));
}

/// Reads the rank from the environment.
/// \throws UsageError if two launchers disagree
Place place_in_environment() {
  // Another launcher may have started torchrun, once per host, and torchrun's processes inherit its
  // variables.
  if (is_set("TORCHELASTIC_RUN_ID")) return place_by(launchers[0]);
  const Launcher* first = nullptr;
  Place place{};
  for (const Launcher& launcher : launchers) {
    if (!is_set(launcher.rank)) continue;
    if (!first) {
      place = place_by(launcher);
      first = &launcher;
      continue;
    }
    require_same(first->rank, place.rank, launcher.rank, number_of(launcher.rank));
    if (is_set(launcher.ranks))
      require_same(first->ranks, place.ranks, launcher.ranks, number_of(launcher.ranks));
  }
  if (first) return place;
  return place_by(is_set(slurm.rank) ? slurm : launchers[0]);
}

uint16_t master_port() {
  const uint16_t port = bootstrap::parse_port(text_of("MASTER_PORT"), "MASTER_PORT in the environment");
  // If this is True, torchrun listens on MASTER_PORT for the process groups of PyTorch, so we take the next
  // port.
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (!agent || std::strcmp(agent, "True") != 0) return port;
  return port == 65535 ? port - 1 : port + 1;
}

}  // namespace

World World::from_environment(JoinOptions options) {
  const auto [rank, ranks] = place_in_environment();
  bootstrap::Address address{text_of("MASTER_ADDR"), 0};
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  address.port = options.port ? options.port : master_port();
  return join(address.text(), rank, ranks, options);
}

}  // namespace chorale
