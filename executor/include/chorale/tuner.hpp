/// \file
/// Tuner: which configuration is the fastest for a case, found once, kept in a table, looked up at run time.
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

/// What a configuration is looked up by. All of it has to agree, but for `bytes`.
struct TuneKey {
  std::string kind = {};  ///< "sendrecv", "all_reduce", or what the application calls it
  int world = 1;
  DType dtype = DType::f32;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  std::string transport = "direct";  ///< "direct", "port", "mesh"
  std::string device = {};           ///< the GPU's name; "" on the CPU
  std::string backend = "cpu";
  std::string variant = {};   ///< names the hooks; has to, if they are not the default
  bool default_hooks = true;  ///< CopyProduce and CopyConsume. Not part of the key

  /// \throws UsageError without a variant for hooks that are not the default: their times are not those of
  ///         copies
  void check() const;
};

/// What can be chosen. 0 and "": as it is without a tuner, see tuned_launch() and tuned_rings().
struct TuneConfig {
  uint32_t blocks = 0, threads = 0;
  uint32_t slots = 0;                  ///< of a ring: Transport::depth()
  uint32_t unroll = 0, instances = 0;  ///< of the application's kernels: nothing here goes by them
  std::string mover = {}, order = {}, style = {};  ///< of host schedules: tuned_mover(), tuned_lowering()
  std::string plan = {};                           ///< a plan's name, where plans are chosen
  std::string packet = {};  ///< the form of that plan's packets: "ll8", "ll16", "ll128"

  bool operator==(const TuneConfig&) const = default;
};

/// For launch(): with the blocks and threads that the configuration names, else as LaunchConfig{}.
LaunchConfig tuned_launch(const TuneConfig& config);

/// For direct_rendezvous() and the like: `otherwise`, with the slots that the configuration names, and a
/// channel for each of its blocks.
RendezvousOptions tuned_rings(const TuneConfig& config, RendezvousOptions otherwise);

/// Whether a transport that exists can run it.
/// \throws UsageError if it has other slots or fewer channels than the configuration needs: these are settled
///         when a transport is made
void check_geometry(const Transport& transport, const TuneConfig& config);

/// For ScheduleArguments::mover: how a schedule moves what it leaves open. `otherwise` if the configuration
/// leaves it open, too. \throws UsageError for a mover that there is not
host::Mover tuned_mover(const TuneConfig& config, host::Mover otherwise = host::Mover::ce_put);

/// For a program in the layout form whose parameters are those of lowering(): `order`, `style`, and the mover
/// as `via`, those of them that the configuration names. To compile with them is to have the tuned schedule:
///   dsl::build("ag_matmul_layout", tuned_lowering(table.lookup(key).config))
std::map<std::string, std::string, std::less<>> tuned_lowering(const TuneConfig& config);

/// What one candidate came to.
struct Measurement {
  bool correct = false;
  double ns = 0;         ///< of one call; a correct one takes more than 0
  std::string why = {};  ///< if it is not correct
};

/// Configurations by key, as a JSON file.
class TuneTable {
 public:
  enum class Found : uint8_t { exact, smaller, none };
  struct Choice {
    TuneConfig config;  ///< the default if there is none
    Found found = Found::none;
    uint64_t bytes = 0;  ///< of the entry
  };

  /// \throws UsageError if there is no such file or it is no table; the message names the place
  static TuneTable load(const std::string& path);
  static TuneTable parse(const std::string& text);

  /// Readers of the file find the old table or the new one, whole. \throws RunError resources
  void save(const std::string& path) const;
  std::string text() const;

  /// Replaces what the key has. \throws as TuneKey::check(); UsageError if `ns` is no time
  void set(const TuneKey& key, const TuneConfig& config, double ns);
  void set_failure(const TuneKey& key, const TuneConfig& config, const std::string& why);

  /// When the key is tuned anew.
  void forget_failures(const TuneKey& key);
  /// When nothing that it could have is known to be right. Failures stay.
  void forget_choice(const TuneKey& key);
  /// Replaces what the key has, choice and failures, by what it has in `other`, which may be nothing. So
  /// tables of several runs become one.
  void take(const TuneKey& key, const TuneTable& other);

  /// The entry of this key; else that of the next smaller size; else the default. \throws as TuneKey::check()
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

/// Measures one candidate, in a process of its own: it may hang, crash, or be wrong.
using Trial = std::function<Measurement(const TuneConfig&)>;

/// Tries each candidate in a child process that is killed after `limit`, and puts the fastest that is correct
/// into the table; among equals, the first. If none is correct the key has no entry, also where it had one.
/// What failed is noted with its reason. The caller has not used CUDA, which does not survive a fork.
/// \returns what each candidate came to, in order
std::vector<Measurement> tune(TuneTable& table, const TuneKey& key, const std::vector<TuneConfig>& candidates,
                              const Trial& trial, std::chrono::milliseconds limit);

}  // namespace chorale
