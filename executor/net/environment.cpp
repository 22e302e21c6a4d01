// Joining a world as launchers say in the environment.

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

#include "address.hpp"
#include "chorale/world.hpp"

namespace chorale {
namespace {

constexpr const char* help =
    "a launcher such as torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; mpirun sets its own, "
    "and needs -x MASTER_ADDR=<host of rank 0> -x MASTER_PORT=<a free port there>";

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
    throw UsageError(fmt::format("{}={} in the environment is no number of 0 to {}", name, text,
                                 std::numeric_limits<int>::max()));
  }
  return number;
}

uint16_t master_port() {
  const uint16_t port = net::parse_port(text_of("MASTER_PORT"), "MASTER_PORT in the environment");
  // There torchrun itself listens, for the process groups of PyTorch.
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (!agent || std::strcmp(agent, "True") != 0) return port;
  return port == 65535 ? port - 1 : port + 1;
}

}  // namespace

World World::from_environment(JoinOptions options) {
  const bool mpirun = !is_set("RANK") && !is_set("WORLD_SIZE") && is_set("OMPI_COMM_WORLD_RANK");
  const char* const rank_name = mpirun ? "OMPI_COMM_WORLD_RANK" : "RANK";
  const char* const ranks_name = mpirun ? "OMPI_COMM_WORLD_SIZE" : "WORLD_SIZE";
  const int rank = number_of(rank_name), ranks = number_of(ranks_name);
  if (rank >= ranks) {
    throw UsageError(fmt::format("{}={} and {}={} in the environment: a rank is less than their number",
                                 rank_name, rank, ranks_name, ranks));
  }
  net::Address address{text_of("MASTER_ADDR"), 0};
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  address.port = options.port ? options.port : master_port();
  return join(address.text(), rank, ranks, options);
}

}  // namespace chorale
