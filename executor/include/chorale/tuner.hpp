/// \file
/// The tuner finds the fastest configuration for a case once, keeps it in a table, and looks it up at run
/// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chorale/host/schedule.hpp"
#include "chorale/transport.hpp"
#include "chorale/types.hpp"

namespace chorale {

struct LaunchConfig;  // launch.hpp

/// Identifies a configuration in a lookup. All members must agree, except `bytes`.
struct TuneKey {
  std::string kind = {};  ///< "sendrecv", "all_reduce", or what the application calls it
  int world = 1;
  DType dtype = DType::f32;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  std::string transport = "direct";  ///< "direct", "port", "mesh"
  std::string device = {};           ///< the GPU's name; "" on the CPU
  std::string backend = "cpu";
  std::string variant = {};   ///< names the hooks; required if they are not the default
  bool default_hooks = true;  ///< CopyProduce and CopyConsume. Not part of the key

  /// Throws if the hooks are not the default and have no name.
  /// \throws UsageError without a variant for hooks that are not the default: their times are not those of
  ///         copies
  void check() const;
};

/// Holds what the tuner chooses. 0 and "" leave it as it is without a tuner; see tuned_launch() and
/// tuned_rings().
struct TuneConfig {
  uint32_t blocks = 0, threads = 0;
  uint32_t slots = 0;                              ///< of a ring: Transport::depth()
  uint32_t unroll = 0, instances = 0;              ///< for the application's kernels: nothing here uses them
  std::string mover = {}, order = {}, style = {};  ///< for host schedules: tuned_mover(), tuned_lowering()
  std::string plan = {};                           ///< a plan's name, if plans are chosen
  std::string packet = {};  ///< the form of that plan's packets: "ll8", "ll16", "ll128"

  bool operator==(const TuneConfig&) const = default;
};

/// Returns launch()'s configuration, with the blocks and threads that `config` names. The rest is as in
/// LaunchConfig{}.
LaunchConfig tuned_launch(const TuneConfig& config);

/// Returns options for direct_rendezvous() and the like: `otherwise`, with the slots that the configuration
/// names, and a channel for each of its blocks.
RendezvousOptions tuned_rings(const TuneConfig& config, RendezvousOptions otherwise);

/// Throws unless an existing transport can run the configuration.
/// \throws UsageError if it has other slots or fewer channels than the configuration needs: these are fixed
///         when a transport is made
void check_geometry(const Transport& transport, const TuneConfig& config);

/// Returns ScheduleArguments::mover: how a schedule moves what it leaves open. Returns `otherwise` if the
/// configuration leaves it open, too.
/// \throws UsageError for an unknown mover
host::Mover tuned_mover(const TuneConfig& config, host::Mover otherwise = host::Mover::ce_put);

/// Returns parameters for a program in the layout form whose parameters are those of lowering(): `order`,
/// `style`, and the mover as `via`, as far as the configuration names them. Compile with them to get the
/// tuned schedule:
///   dsl::build("ag_matmul_layout", tuned_lowering(table.lookup(key).config))
std::map<std::string, std::string, std::less<>> tuned_lowering(const TuneConfig& config);

/// Says how one candidate did.
struct Measurement {
  bool correct = false;
  double ns = 0;         ///< of one call; a correct one takes more than 0
  std::string why = {};  ///< if it is not correct
};

/// Keeps configurations by key, as a JSON file.
class TuneTable {
 public:
  enum class Found : uint8_t { exact, smaller, none };
  struct Choice {
    TuneConfig config;  ///< the default if there is none
    Found found = Found::none;
    uint64_t bytes = 0;  ///< of the entry
  };

  /// Loads a table from a file; parse() takes its text.
  /// \throws UsageError if the file does not exist or is not a table; the message names the place
  static TuneTable load(const std::string& path);
  static TuneTable parse(const std::string& text);

  /// Saves the table. Readers of the file find the old table or the new one, whole.
  /// \throws RunError resources
  void save(const std::string& path) const;
  std::string text() const;

  /// Replaces the key's entry.
  /// \throws as TuneKey::check(); UsageError if `ns` is not a valid time
  void set(const TuneKey& key, const TuneConfig& config, double ns);
  void set_failure(const TuneKey& key, const TuneConfig& config, const std::string& why);

  /// Forgets the key's failures. Call it when the key is tuned again.
  void forget_failures(const TuneKey& key);
  /// Forgets the key's entry and keeps its failures. Call it when no configuration of the key is known to
  /// be right.
  void forget_choice(const TuneKey& key);
  /// Replaces the key's entry and failures by those in `other`, which may have none. So you can merge the
  /// tables of several runs.
  void take(const TuneKey& key, const TuneTable& other);

  /// Returns the entry of this key; else that of the next smaller size; else the default.
  /// \throws as TuneKey::check()
  Choice lookup(const TuneKey& key) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    TuneKey key;
    TuneConfig config;
    double ns = 0;
  };
  struct Failure {
    TuneKey key;
    TuneConfig config;
    std::string why;
  };
  std::vector<Entry> entries_;  ///< sorted by key, then by size
  std::vector<Failure> failures_;
};

/// Measures one candidate, in a process of its own, because it may hang, crash, or be wrong.
using Trial = std::function<Measurement(const TuneConfig&)>;

/// Tries each candidate in a child process that is killed after `limit`, and puts the fastest correct one
/// into the table; among equals, the first. If none is correct the key loses its entry. Failures are noted
/// with their reason. The caller must not have used CUDA, because CUDA does not survive a fork.
/// \returns the measurement of each candidate, in order
std::vector<Measurement> tune(TuneTable& table, const TuneKey& key, const std::vector<TuneConfig>& candidates,
                              const Trial& trial, std::chrono::milliseconds limit);

}  // namespace chorale
