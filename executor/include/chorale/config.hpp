/// \file
/// Config holds the executor's settings, and where each setting came from.
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

/// Holds all settings. A setting comes from its default, the ini file (a plain file of at most 1 MB, named by
/// CHORALE_CONFIG), the environment variable CHORALE_<NAME>, or code. A later source in this list overrides
/// an earlier one.
struct Config {
  Setting<std::chrono::nanoseconds> timeout{std::chrono::seconds(30)};  ///< limit of every wait; "off": none
  Setting<unsigned> workers{0};                  ///< threads that run blocks; 0: one per core
  Setting<uint16_t> port{0};                     ///< JoinOptions::port, for World::from_environment()
  Setting<std::string> host{"auto"};             ///< JoinOptions::host; "auto": the library detects it
  Setting<std::string> secret{"none"};           ///< JoinOptions::secret; "none": no secret
  Setting<std::optional<uint64_t>> seed{};       ///< the seed of the deterministic scheduler; "off": none
  Setting<std::string> backend{"cpu"};           ///< "cpu" or "cuda"
  Setting<std::string> packet{"auto"};           ///< "ll8", "ll16", "ll128", or "auto": by size, see
                                                 ///< Executor::packet_form()
  Setting<std::string> switch_channels{"peer"};  ///< how GPUs run switch channels: "peer" or "multicast"
  Setting<std::string> log_level{"warning"};     ///< trace, debug, info, warning, error, off
  Setting<unsigned> trace{0};       ///< the number of launches per plan that are timed, see Executor::trace
  Setting<unsigned> bindings{256};  ///< most bindings per executor, the same on all ranks; 0: no limit
  /// Limits the bytes of scratch that a plan takes for one size of message on one rank. A message that needs
  /// more runs in rounds. 0 means no limit, so that no message runs in rounds. All ranks must have the same
  /// value.
  Setting<uint64_t> round_scratch{default_round_scratch};
  /// Limits the bytes of scratch that all bindings of an executor take on one rank. 0 means no limit. All
  /// ranks must have the same value.
  Setting<uint64_t> scratch{uint64_t(1) << 30};
  /// Limits the thread blocks of plans that are chosen, and of an exchange. 0 means no limit. All ranks must
  /// have the same value. A plan that the application names itself runs with all its blocks.
  Setting<unsigned> max_blocks{0};
  Setting<bool> require_proof{false};  ///< refuse plans that do not carry a proof

  /// Reads the file and the environment, and sends the log to stderr with `log_level`.
  /// \throws UsageError for an unknown CHORALE_ name or ini key (with a suggestion), a key that the file has
  ///         twice, or a bad value; the message names it
  static Config load();

  /// Reads only `ini` (empty: no file) and `environment` ("NAME=value", null at the end). It does not change
  /// the log.
  static Config read(const std::string& ini, const char* const* environment);

  LocalOptions local() const { return {.seed = seed, .workers = workers, .timeout = timeout}; }
  JoinOptions join() const {
    return {.workers = workers,
            .timeout = timeout,
            .port = port,
            .host = host.value == "auto" ? "" : host.value,
            .secret = secret.value == "none" ? "" : secret.value};
  }

  /// Returns the settings, with one "name = value (from)" per line. It does not show the secret.
  std::string describe() const;
};

/// Parses a duration such as "2min", "30s", "500ms", "20us" or "7ns". "off" gives 0.
/// \throws UsageError if `text` is none of these
std::chrono::nanoseconds parse_duration(const std::string& text);

}  // namespace chorale
