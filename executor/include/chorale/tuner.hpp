/// \file
/// The tuner finds the fastest configuration for a case once, keeps it in a table, and looks it up at run
/// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chorale/schedule/schedule.hpp"
#include "chorale/transport.hpp"
#include "chorale/types.hpp"

namespace chorale {

struct LaunchConfig;  // launch.hpp

/// Identifies an entry of a table. In a lookup all members must match exactly, except `bytes`. Entries that
/// differ in `max_blocks` only are choices for users who have more or fewer thread blocks to spare.
struct TuneKey {
  std::string kind = {};  ///< "sendrecv", "all_reduce", or a name that the application chooses
  int world = 1;          ///< the number of ranks
  DType dtype = DType::f32;
  uint64_t bytes = 0;  ///< the size of the message
  uint64_t rows = 0;   ///< a second size, such as the rows of a matrix, if the application needs one; else 0
  std::string transport = "direct";  ///< "direct", "port", "mesh"
  std::string device = {};           ///< the GPU's name; "" on the CPU
  std::string backend = "cpu";       ///< "cpu" or "cuda"
  std::string variant = {};          ///< a name for the hooks; required if they are not the default
  uint32_t max_blocks = 0;           ///< the choice has at most this many thread blocks; 0: any number
  bool default_hooks = true;         ///< the hooks are CopyProduce and CopyConsume; not part of the key

  /// Checks that hooks that are not the default have a name.
  /// \throws UsageError if `default_hooks` is false and `variant` is empty, because the times of other hooks
  ///         differ from the times of copies
  void check() const;
};

/// Holds what the tuner chooses. 0 and "" mean that the value without a tuner stays; see tuned_launch() and
/// tuned_rings().
struct TuneConfig {
  uint32_t blocks = 0, threads = 0;    ///< of a plan, `blocks` only tells how many thread blocks it has
  uint32_t slots = 0;                  ///< the slots of a ring, Transport::depth()
  uint32_t unroll = 0, instances = 0;  ///< not used by Chorale; for the application's kernels
  std::string mover = {}, order = {}, style = {};  ///< for host schedules: tuned_mover(), tuned_lowering()
  std::string plan = {};                           ///< the name of a plan, if the tuner chooses between plans
  std::string packet = {};  ///< the form of that plan's packets: "ll8", "ll16", "ll128"

  bool operator==(const TuneConfig&) const = default;
};

/// Returns a configuration for launch() with the blocks and threads that `config` names. The rest is as in
/// LaunchConfig{}.
LaunchConfig tuned_launch(const TuneConfig& config);

/// Returns `otherwise` with the slots that the configuration names, and with one channel per block of the
/// configuration. The result is for direct_rendezvous() and port_rendezvous().
RendezvousOptions tuned_rings(const TuneConfig& config, RendezvousOptions otherwise);

/// Checks that an existing transport can run the configuration.
/// \throws UsageError if it has another number of slots, or fewer channels than the configuration needs,
///         because both are fixed when a transport is made
void check_geometry(const Transport& transport, const TuneConfig& config);

/// Returns a value for ScheduleArguments::mover, which is for transfers that do not choose a mover. Returns
/// `otherwise` if the configuration names no mover.
/// \throws UsageError for an unknown mover
schedule::Mover tuned_mover(const TuneConfig& config, schedule::Mover otherwise = schedule::Mover::ce_put);

/// Returns parameters for a program in the layout form, as lowering() takes them: `order`, `style`, and the
/// mover as `via`, as far as the configuration names them. Compile with them to get the tuned schedule:
///   dsl::build("ag_matmul_layout", tuned_lowering(table.lookup(key).config))
std::map<std::string, std::string, std::less<>> tuned_lowering(const TuneConfig& config);

/// Holds the result of one candidate.
struct Measurement {
  bool correct = false;
  double ns = 0;         ///< the time of one call; above 0 if correct
  std::string why = {};  ///< the reason if it is not correct
};

/// Keeps configurations by key, as a JSON file.
class TuneTable {
 public:
  /// Says which entry lookup() has found: one for this size, or one for the next smaller size.
  enum class Found : uint8_t { exact, smaller, none };
  struct Choice {
    TuneConfig config;  ///< the default if there is no entry
    Found found = Found::none;
    uint64_t bytes = 0;  ///< the entry's size
  };

  /// Reads a table: load() from a file, and parse() from the text of a file.
  /// \throws UsageError if the file does not exist or is not a table; the message names the wrong entry
  static TuneTable load(const std::string& path);
  static TuneTable parse(const std::string& text);

  /// Saves the table. A reader of the file sees either the whole old table or the whole new one.
  /// \throws RunError resources if the file cannot be written
  void save(const std::string& path) const;
  std::string text() const;

  /// set() replaces the key's entry. set_failure() adds a failure of a configuration, or replaces its reason.
  /// \param ns  the time of one call in nanoseconds, above 0
  /// \throws as TuneKey::check(); UsageError if `ns` is not a valid time
  void set(const TuneKey& key, const TuneConfig& config, double ns);
  void set_failure(const TuneKey& key, const TuneConfig& config, const std::string& why);

  /// Removes the key's failures. Call it when you tune the key again.
  void forget_failures(const TuneKey& key);
  /// Removes the key's entry and keeps its failures. Call it when no configuration of the key is known to be
  /// right.
  void forget_choice(const TuneKey& key);
  /// Replaces the key's entry and failures by those in `other`, which may have none. It does the same for
  /// keys with a lower limit of thread blocks. Use it to merge the tables of several runs.
  void take(const TuneKey& key, const TuneTable& other);

  /// Returns the entry of this key, else the entry of the next smaller size, else the default.
  /// \throws as TuneKey::check()
  Choice lookup(const TuneKey& key) const;

  size_t size() const { return entries_.size(); }

  struct Entry {
    TuneKey key;
    TuneConfig config;
    double ns = 0;  ///< the time of one call
  };
  struct Failure {
    TuneKey key;
    TuneConfig config;
    std::string why;
  };

  /// Returns the entries of this key for all sizes and limits of thread blocks, the smallest size first.
  /// lookup() chooses from those with the key's limit. The span is valid until the table changes.
  /// \throws as TuneKey::check()
  std::span<const Entry> entries(const TuneKey& key) const;
  /// Returns the failures of this key for all sizes and limits of thread blocks.
  std::vector<Failure> failures(const TuneKey& key) const;

 private:
  std::vector<Entry> entries_;  ///< sorted by key, then by size, then by limit of thread blocks
  std::vector<Failure> failures_;
};

/// Measures one candidate. It runs in a separate process, because it may hang, crash, or compute a wrong
/// result.
using Trial = std::function<Measurement(const TuneConfig&)>;

/// Tries each candidate in a child process, which it kills after `limit`. It puts the fastest correct one
/// into the table, and of several that are equally fast the first. If none is correct, it removes the key's
/// entry. It adds failures to the table with their reasons. The calling process must not have used CUDA,
/// because CUDA does not survive a fork. For example:
///
///     TuneTable table;
///     const TuneKey key{.kind = "my_kernel", .world = ranks, .bytes = bytes};
///     const Trial trial = [&](const TuneConfig& config) {
///       return Measurement{.correct = true, .ns = time_of(config)};
///     };
///     tune(table, key, {{.blocks = 8}, {.blocks = 32}}, trial, std::chrono::seconds(60));
///     table.save("my_table.json");
///
/// \param begins  is called in this process before each candidate is tried, to show the progress
/// \returns the measurement of each candidate, in order
std::vector<Measurement> tune(TuneTable& table, const TuneKey& key, const std::vector<TuneConfig>& candidates,
                              const Trial& trial, std::chrono::milliseconds limit,
                              const std::function<void(const TuneConfig&)>& begins = {});

}  // namespace chorale
