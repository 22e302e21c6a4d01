/// \file
/// World: one rank's handle on the group of ranks that run collectives together.
#pragma once

#if __cplusplus < 202002L
#error "Chorale on the host needs C++20 (-std=c++20, also of nvcc); <chorale/device.hpp> alone needs C++17"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chorale/error.hpp"

namespace chorale {

struct AbortWord;  // chorale/device/deadline.hpp

namespace cpu {
class Scheduler;
}
namespace world {
class Group;
}

/// For ranks that live in one process. Config::local() gives those of the environment and the ini file.
struct LocalOptions {
  std::optional<uint64_t> seed = std::nullopt;  ///< run everything in an order drawn from it (run_local)
  unsigned workers = 0;                         ///< threads that run blocks at a time; 0: one a core
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of every wait, not negative; 0: none
};

/// For ranks that are processes. Config::join() gives those of the environment and the ini file.
struct JoinOptions {
  unsigned workers = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of every wait, not negative; 0: none
  uint16_t port = 0;  ///< of from_environment()'s rendezvous; 0: see there
  /// Takes one machine for several hosts: ranks that say different names here share no memory. tcp:// only.
  std::string host = {};
  /// Ranks that meet over tcp:// prove to each other that they know it: the text itself, or "file:/path" of a
  /// file that only its owner can read. If it is empty, the environment variable CHORALE_SECRET counts.
  std::string secret = {};
};

/// Whether `name` may be a JoinOptions::host: 1 to 200 printable characters of ASCII.
bool is_host_name(const std::string& name);

/// One rank of a group: who is there, small exchanges between hosts, abort.
///
/// Every wait ends: with its condition, at the deadline, at an abort, or when a peer dies; here also when a
/// peer leaves that would have to come. A launch that waits for one that has left ends at its deadline, if
/// not all ranks live in one process, and names it.
/// A handle is used by one thread at a time; abort() alone may be called from any thread. What is made on it,
/// but for windows, refers to it: until that is gone, the handle is neither moved nor destroyed.
/// Destroying it marks the rank as having left, and waits for nobody; only between hosts, for a second at
/// most, until their machines have what was said last.
/// A fork of the process that made it is no rank: there its collective calls, and those of what is made on
/// it, throw UsageError, and to abort or destroy it does nothing.
class World {
 public:
  static constexpr int most_ranks = 65536;

  /// One handle a rank, in this process. Use each on its own thread, or see run_local().
  /// \throws UsageError if there are no ranks, or more than `most_ranks`, for a negative timeout, or with a
  /// seed, which needs run_local()
  static std::vector<World> local(int ranks, LocalOptions options = {});

  /// Collective over `ranks` processes. They meet under `address`: "shm://name" on one host, or
  /// "tcp://host:port" on one or several, where rank 0 listens until all have come.
  ///
  /// Ranks of several hosts share no memory, so that plans connect them by port channels alone. The lowest
  /// rank of each host speaks with rank 0 for all of that host: when it has left, or died, the others hear
  /// nothing more of each other.
  ///
  /// Over TCP the ranks authenticate each other with JoinOptions::secret. Without one, whoever reaches the
  /// port can join in the place of a rank, so rank 0 warns unless its address is a loopback address.
  ///
  /// \throws UsageError for an address of another kind, a rank outside [0, ranks), more than `most_ranks`, a
  /// negative timeout, or a secret that cannot be read or that others can read
  /// \throws RunError timed_out naming the ranks that did not come; mismatch if two jobs use the address, two
  ///         processes have one rank, the numbers of ranks, the versions or the secrets differ, or ranks of
  ///         one machine share no memory; resources if shared memory is full or the port is in use; other if
  ///         there is no such host. What one rank throws, or that its process has died, all that
  ///         have come throw too
  static World join(const std::string& address, int rank, int ranks, JoinOptions options = {});

  /// Collective: joins over TCP as the launcher says in the environment. It takes rank and number of ranks
  /// from RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (mpirun of Open MPI), PMI_RANK and
  /// PMI_SIZE (mpirun of MPICH, srun --mpi=pmi2), PMIX_RANK and WORLD_SIZE, or SLURM_PROCID and
  /// SLURM_STEP_NUM_TASKS (srun), and the place to meet from MASTER_ADDR and MASTER_PORT. Slurm's count when
  /// no others are set; under torchrun (TORCHELASTIC_RUN_ID is set) only its own do.
  ///
  /// When torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is True) the ranks meet
  /// on the port behind it; `options.port` overrides both. \throws UsageError naming the variable that is
  /// missing or malformed, or both variables where launchers disagree; otherwise as join()
  static World from_environment(JoinOptions options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  int rank() const { return rank_; }
  int ranks() const;
  std::chrono::nanoseconds timeout() const;  ///< of every wait; 0: none

  /// True if all ranks live in this process, so that a pointer of one is good for all.
  bool local() const;

  /// Which host a rank is on, from 0 in the order of their lowest ranks. Ranks of one share memory.
  int host(int rank) const;

  /// Collective: returns once all ranks have called it.
  /// \throws RunError timed_out naming the missing ranks, aborted, deadlock, peer_lost, or mismatch on all
  ///         ranks if another one makes another collective call
  void barrier();

  /// Collective: everybody's bytes, indexed by rank. Sizes may differ and may be 0. Errors as barrier().
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Collective: did it work everywhere? Throws on ALL ranks the message of the lowest rank that has one,
  /// with its `reason`, as "rank 2: <message>".
  void agree(const std::optional<std::string>& my_error, RunError::Reason reason = RunError::Reason::other);

  /// Ends every pending and later wait of every rank with RunError{aborted}, naming this rank and `why`.
  /// From any thread, any number of times: the first abort of the world wins. Never blocks.
  void abort(const std::string& why);

  /// Collective: takes an abort, a timeout or a deadlock back. Every rank must call it; a peer that died or
  /// left cannot, so then it throws peer_lost: see survivors().
  void reset();

  /// Collective of those that are left: a world of them alone, numbered in the old order, with the old
  /// timeout and workers. former_ranks() of it says who they are.
  ///
  /// For a world that has stopped because a peer died, or that a peer has left; after an abort or a timeout
  /// that all outlived it has all ranks. Who still waits in the old world hears nothing of this call: if it
  /// has not stopped, abort() it first. Executors, windows and schedules of the old world are destroyed as
  /// always, before or after what is made on the new one; executors refer to the old handle, which stays
  /// until then: they go first where the new world is assigned to it.
  ///
  /// Either all ranks that call it get the same world, or all of them an error, after which they may call it
  /// again. Who dies meanwhile may still be in the set: then the new world is one that a peer died in, and
  /// has survivors() itself.
  ///
  /// \throws RunError timed_out naming ranks that live and have not called it within timeout(), on all that
  ///         have; resources if one of them cannot have the memory of the new world, on all; deadlock with a
  ///         seed, where a timeout would be waited for in vain
  /// \throws UsageError once it has made a world: the next one is made by the survivors() of that
  World survivors();

  /// By rank of this world: which rank it had in the one whose survivors() made this. Empty if none did.
  std::vector<int> former_ranks() const;

  /// How often reset() has been called by this rank: what was shared before that is void.
  uint64_t resets() const;

  /// Throws the RunError of a world that has stopped; otherwise does nothing.
  void check() const;

  /// What waits in kernels and fibers look at: all ranks share one. Never null.
  AbortWord* abort_word() const;

  /// Where this rank's blocks run on the CPU.
  cpu::Scheduler& scheduler() const;

  /// For Window and the backends.
  world::Group& group() const { return *group_; }

 private:
  friend void run_local(int, const std::function<void(World&)>&, LocalOptions);
  World(std::shared_ptr<world::Group> group, int rank);

  std::shared_ptr<world::Group> group_;
  int rank_ = -1;
};

/// Runs `body` once per rank of a local world and waits for all of them.
///
/// Without a seed each rank has a thread. With one, the ranks and every block that they launch are fibers of
/// the calling thread, and a generator started from the seed picks the next one at every switch: the same
/// seed gives the same interleaving. A body that throws aborts the world.
///
/// With a seed the body of a rank has a stack of 8 MiB. A block has one of 96 KiB (256 KiB under the
/// sanitizers of addresses and threads), without a seed as well. What waits in a world with a seed, or
/// launches there, is called by the body itself: from another thread, or when run_local() has returned, it
/// throws UsageError.
///
/// \throws UsageError as World::local(), or if there is no body
/// \throws the exception of the lowest rank, preferring one that is not the echo of another rank's
void run_local(int ranks, const std::function<void(World&)>& body, LocalOptions options = {});

}  // namespace chorale
