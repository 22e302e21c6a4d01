/// \file
/// A World is one rank's handle on the group of ranks that run collectives together.
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

/// Sets up ranks that live in one process. Config::local() gives the options of the environment and the ini
/// file.
struct LocalOptions {
  std::optional<uint64_t> seed = std::nullopt;  ///< run everything in an order drawn from it (run_local)
  unsigned workers = 0;                         ///< threads that run blocks at a time; 0: one a core
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of every wait, not negative; 0: none
};

/// Sets up ranks that are processes. Config::join() gives the options of the environment and the ini file.
struct JoinOptions {
  unsigned workers = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of every wait, not negative; 0: none
  uint16_t port = 0;  ///< for the rendezvous of from_environment(), which says what 0 means
  /// A name that splits one machine into several hosts: ranks with different names share no memory. tcp://
  /// only.
  std::string host = {};
  /// The secret that ranks that meet over tcp:// prove to each other: the text itself, or "file:/path" of a
  /// file that only its owner can read. If it is empty, the environment variable CHORALE_SECRET counts.
  std::string secret = {};
};

/// Returns whether `name` may be a JoinOptions::host: 1 to 200 printable characters of ASCII.
bool is_host_name(const std::string& name);

/// Stands for one rank of a group: it knows the ranks, makes small exchanges between hosts, and aborts.
///
/// Every wait ends: with its condition, at the deadline, at an abort, or when a peer dies. Waits of this
/// class also end when a peer leaves that would have to come. A launch that waits for a peer that has left
/// ends at its deadline, unless all ranks live in one process, and names the peer.
/// Use a handle from one thread at a time; only abort() may be called from any thread. Objects that are made
/// on it, except windows, refer to it: do not move or destroy the handle before they are gone. Destroying it
/// marks the rank as having left and waits for nobody, except between hosts: there it waits up to a second
/// until the other machines have the last messages.
/// A fork of the process that made it is not a rank. There its collective calls, and those of objects made on
/// it, throw UsageError, and aborting or destroying it does nothing.
class World {
 public:
  static constexpr int most_ranks = 65536;

  /// Makes one handle for each rank, all in this process. Use each on its own thread, or see run_local().
  /// \throws UsageError if there are no ranks, or more than `most_ranks`, for a negative timeout, or with a
  ///         seed, which needs run_local()
  static std::vector<World> local(int ranks, LocalOptions options = {});

  /// Joins a world of `ranks` processes; collective. They meet under `address`: "shm://name" on one host, or
  /// "tcp://host:port" on one or several, where rank 0 listens until all have come.
  ///
  /// Ranks of several hosts share no memory, so plans connect them by port channels alone. The lowest rank of
  /// each host speaks with rank 0 for all of that host. After it has left or died, the others hear nothing
  /// more of each other.
  ///
  /// Over TCP the ranks authenticate each other with JoinOptions::secret. Without one, anybody who reaches
  /// the port can join in the place of a rank, so rank 0 warns unless its address is a loopback address.
  ///
  /// \throws UsageError for an address of another kind, a rank outside [0, ranks), more than `most_ranks`, a
  ///         negative timeout, or a secret that cannot be read or that others can read
  /// \throws RunError timed_out naming the ranks that did not come; mismatch if two jobs use the address, two
  ///         processes have one rank, the numbers of ranks, the versions or the secrets differ, or ranks of
  ///         one machine share no memory; resources if shared memory is full or the port is in use; other if
  ///         there is no such host. When one rank throws, or its process dies, all that have come throw too
  static World join(const std::string& address, int rank, int ranks, JoinOptions options = {});

  /// Joins over TCP as the launcher says in the environment; collective. It takes rank and number of ranks
  /// from RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (mpirun of Open MPI), PMI_RANK and
  /// PMI_SIZE (mpirun of MPICH, srun --mpi=pmi2), PMIX_RANK and WORLD_SIZE, or SLURM_PROCID and
  /// SLURM_STEP_NUM_TASKS (srun), and the place to meet from MASTER_ADDR and MASTER_PORT. Slurm's variables
  /// count when no others are set. Under torchrun (TORCHELASTIC_RUN_ID is set) only its own count.
  ///
  /// When torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is True) the ranks meet on the
  /// next port. `options.port` overrides both.
  /// \throws UsageError naming the variable that is missing or malformed, or both variables if launchers
  ///         disagree; otherwise as join()
  static World from_environment(JoinOptions options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  int rank() const { return rank_; }
  int ranks() const;
  std::chrono::nanoseconds timeout() const;  ///< of every wait; 0: none

  /// Returns true if all ranks live in this process, so that a pointer of one is valid for all.
  bool local() const;

  /// Returns the number of the host that a rank is on. Hosts count from 0 in the order of their lowest ranks.
  /// Ranks of one host share memory.
  int host(int rank) const;

  /// Waits until all ranks have called it; collective.
  /// \throws RunError timed_out naming the missing ranks, aborted, deadlock, peer_lost, or mismatch on all
  ///         ranks if another one makes another collective call
  void barrier();

  /// Returns everybody's bytes, indexed by rank; collective. Sizes may differ and may be 0. Errors are as for
  /// barrier().
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Throws on ALL ranks if any rank has an error; collective. The exception has the message of the lowest
  /// rank that has one, as "rank 2: <message>", with that rank's `reason`.
  void agree(const std::optional<std::string>& my_error, RunError::Reason reason = RunError::Reason::other);

  /// Ends every pending and later wait of every rank with RunError{aborted}, naming this rank and `why`. You
  /// may call it from any thread, any number of times; the first abort of the world wins. Never blocks.
  void abort(const std::string& why);

  /// Takes back an abort, a timeout or a deadlock; collective. Every rank must call it. A peer that died or
  /// left cannot, so then it throws peer_lost: see survivors().
  void reset();

  /// Returns a new world of the ranks that are left, numbered in the old order, with the old timeout and
  /// workers. Collective over these ranks. former_ranks() of the new world says who they are.
  ///
  /// Call it when the world has stopped because a peer died, or when a peer has left. After an abort or a
  /// timeout that all outlived, the new world has all ranks. A rank that still waits in the old world does
  /// not notice this call: if the old world has not stopped, abort() it first. Destroy executors, windows and
  /// schedules of the old world as always, before or after you make those on the new one. Executors refer to
  /// the old handle, which must stay until they are gone, so destroy them before you assign the new world to
  /// it.
  ///
  /// Either all ranks that call it get the same world, or all get an error, after which they may call it
  /// again. A rank that dies meanwhile may still be in the new world. Then a peer has died in the new world,
  /// and you call its survivors() in turn.
  ///
  /// \throws RunError timed_out naming ranks that live and have not called it within timeout(), on all that
  ///         have; resources if one of them cannot have the memory of the new world, on all; deadlock in a
  ///         world with a seed, where no timeout would come
  /// \throws UsageError once it has made a world: the next one is made by survivors() of that world
  World survivors();

  /// Returns, for each rank of this world, its rank in the world whose survivors() made this one. The
  /// result is empty if none did.
  std::vector<int> former_ranks() const;

  /// Returns how often this rank has called reset(). What was shared before the last reset is void.
  uint64_t resets() const;

  /// Throws the RunError of a world that has stopped; otherwise does nothing.
  void check() const;

  /// Returns the word that waits in kernels and fibers look at. All ranks share one. Never null.
  AbortWord* abort_word() const;

  /// Returns the scheduler that runs this rank's blocks on the CPU.
  cpu::Scheduler& scheduler() const;

  /// Returns the group, for Window and the backends.
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
/// the calling thread, and a generator started from the seed picks the next one at every switch. The same
/// seed gives the same interleaving. A body that throws aborts the world.
///
/// With a seed the body of a rank has a stack of 8 MiB. A block has one of 96 KiB (256 KiB under the address
/// and thread sanitizers), also without a seed. In a world with a seed only the body itself may wait or
/// launch. From another thread, or after run_local() has returned, such calls throw UsageError.
///
/// \throws UsageError as World::local(), or if there is no body
/// \throws the exception of the lowest rank, preferring one that is not the echo of another rank's
void run_local(int ranks, const std::function<void(World&)>& body, LocalOptions options = {});

}  // namespace chorale
