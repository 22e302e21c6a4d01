/// \file
/// Holds the executor's settings, and where each came from.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "chorale/scratch.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Holds a value and where it came from.
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

/// Holds all settings. A later source overrides an earlier one: default, ini file (a plain file of at most 1
/// MB, named by CHORALE_CONFIG), environment CHORALE_<NAME>, code.
struct Config {
  Setting<std::chrono::nanoseconds> timeout{std::chrono::seconds(30)};  ///< as parse_duration(); "off" is 0
  Setting<unsigned> workers{0};             ///< threads that run blocks; 0: one a core
  Setting<uint16_t> port{0};                ///< for World::from_environment(), which says what 0 means
  Setting<std::string> host{"auto"};        ///< JoinOptions::host; "auto": the library finds it
  Setting<std::string> secret{"none"};      ///< JoinOptions::secret; "none"; describe() does not show it
  Setting<std::optional<uint64_t>> seed{};  ///< for the deterministic scheduler; "off": none
  Setting<std::string> backend{"cpu"};      ///< "cpu" or "cuda"
  Setting<std::string> packet{"ll16"};      ///< "ll8", "ll16" or "ll128": bytes of a packet
  Setting<std::string> switch_channels{
      "peer"};                                ///< "peer" or "multicast": how GPUs do what goes through them
  Setting<std::string> log_level{"warning"};  ///< trace, debug, info, warning, error, off
  Setting<unsigned> trace{0};       ///< launches of each plan whose operations are timed, see Executor::trace
  Setting<unsigned> bindings{256};  ///< the number that an executor keeps, the same on all ranks; 0: any
  /// The most bytes of scratch that a plan may take for one size of message on one rank. Longer messages run
  /// in rounds. The same on all ranks; 0: no rounds
  Setting<uint64_t> round_scratch{default_round_scratch};
  /// The most bytes of scratch that all bindings of an executor may take on one rank. The same on all ranks;
  /// 0: no limit
  Setting<uint64_t> scratch{uint64_t(1) << 30};
  Setting<unsigned> mover_blocks{8};   ///< most thread blocks of one transfer, see docs/host-schedules.md
  Setting<bool> require_proof{false};  ///< refuse plans that do not carry a proof

  /// Reads file and environment, and points the log at stderr with `log_level`.
  /// \throws UsageError for an unknown CHORALE_ name or ini key ("did you mean"), a key that the file has
  ///         twice, or a bad value; the message names it
  static Config load();

  /// Reads only `ini` (empty: none) and `environment` ("NAME=value", null at the end). Does not touch the
  /// log.
  static Config read(const std::string& ini, const char* const* environment);

  LocalOptions local() const { return {.seed = seed, .workers = workers, .timeout = timeout}; }
  JoinOptions join() const {
    return {.workers = workers,
            .timeout = timeout,
            .port = port,
            .host = host.value == "auto" ? "" : host.value,
            .secret = secret.value == "none" ? "" : secret.value};
  }

  /// Returns the settings, one "name = value  (from)" a line.
  std::string describe() const;
};

/// Parses a duration such as "2min", "30s", "500ms", "20us", "7ns" or "off".
/// \throws UsageError if `text` is none of these
std::chrono::nanoseconds parse_duration(const std::string& text);

}  // namespace chorale
