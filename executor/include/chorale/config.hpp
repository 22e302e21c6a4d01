/// \file
/// Config: the executor's settings, and where each came from.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "chorale/scratch.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// A value and where it came from.
template <class T>
struct Setting {
  T value{};
  std::string from = "default";  ///< "default", "CHORALE_TIMEOUT", "/etc/chorale.ini" or "code"

  operator const T&() const { return value; }  // NOLINT: reads as the value
  Setting& operator=(T other) {
    value = std::move(other);
    from = "code";
    return *this;
  }
};

/// Later wins: default, ini file (a plain file of at most 1 MB, named by CHORALE_CONFIG), environment
/// CHORALE_<NAME>, code.
struct Config {
  Setting<std::chrono::nanoseconds> timeout{std::chrono::seconds(30)};  ///< as parse_duration(); "off" is 0
  Setting<unsigned> workers{0};             ///< threads that run blocks; 0: one a core
  Setting<uint16_t> port{0};                ///< of World::from_environment(); 0: see there
  Setting<std::string> host{"auto"};        ///< JoinOptions::host; "auto": found out
  Setting<std::optional<uint64_t>> seed{};  ///< of the deterministic scheduler; "off": none
  Setting<std::string> backend{"cpu"};      ///< "cpu" or "cuda"
  Setting<std::string> packet{"ll16"};      ///< "ll8", "ll16" or "ll128": bytes of a packet
  Setting<std::string> switch_channels{
      "peer"};                                ///< "peer" or "multicast": how GPUs do what goes through them
  Setting<std::string> log_level{"warning"};  ///< trace, debug, info, warning, error, off
  Setting<unsigned> trace{0};       ///< launches of each plan whose operations are timed, see Executor::trace
  Setting<unsigned> bindings{256};  ///< kept by an executor, the same on all ranks; 0: any number
  /// Bytes of scratch that a plan takes at most for one size of message on one rank: longer messages run in
  /// rounds. The same on all ranks; 0: no rounds
  Setting<uint64_t> round_scratch{default_round_scratch};
  /// Bytes of scratch of all bindings of an executor on one rank; the same on all ranks; 0: no limit
  Setting<uint64_t> scratch{uint64_t(1) << 30};
  Setting<unsigned> mover_blocks{8};   ///< most thread blocks of one transfer, see docs/host-schedules.md
  Setting<bool> require_proof{false};  ///< refuse plans that do not carry a proof

  /// Reads file and environment, and points the log at stderr with `log_level`.
  /// \throws UsageError for an unknown CHORALE_ name or ini key ("did you mean"), a key that stands in the
  /// file twice, or a bad value, naming it
  static Config load();

  /// Reads `ini` (empty: none) and `environment` ("NAME=value", null at the end) only; touches no log.
  static Config read(const std::string& ini, const char* const* environment);

  LocalOptions local() const { return {.seed = seed, .workers = workers, .timeout = timeout}; }
  JoinOptions join() const {
    return {
        .workers = workers, .timeout = timeout, .port = port, .host = host.value == "auto" ? "" : host.value};
  }

  /// One "name = value  (from)" a line.
  std::string describe() const;
};

/// "2min", "30s", "500ms", "20us", "7ns", "off".
/// \throws UsageError if `text` is none of these
std::chrono::nanoseconds parse_duration(const std::string& text);

}  // namespace chorale
