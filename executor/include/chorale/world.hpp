/// \file
/// A World is one rank's handle on a group of ranks that run collectives together. Make one on each rank
/// first; all other objects need it.
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
#include "chorale/limits.hpp"

namespace chorale {

struct AbortWord;  // chorale/device/deadline.hpp
class Invitation;  // chorale/invitation.hpp

namespace fibers {
class Scheduler;
}
namespace world {
class Group;
}

/// Sets up ranks that live in one process. Config::local() reads these options from the environment and the
/// ini file.
struct LocalOptions {
  std::optional<uint64_t> seed = std::nullopt;  ///< fixes the order in which everything runs, see run_local()
  unsigned workers = 0;                         ///< threads that run blocks; 0: one per core
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< limit of every wait, at least 0; 0: none
};

/// Sets up ranks that are processes. Config::join() reads these options from the environment and the ini
/// file.
struct JoinOptions {
  unsigned workers = 0;                                         ///< as LocalOptions::workers
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< limit of every wait, at least 0; 0: none
  uint16_t port = 0;  ///< the port for from_environment(); 0: the one that the launcher names
  /// Splits one machine into several hosts: ranks with different names share no memory. Works with tcp://
  /// only. "" stands for the machine's own name.
  std::string host = {};
  /// Holds the secret that ranks prove to each other when they join over tcp://. It is the text itself, or
  /// "file:/path" of a file that only its owner can read. If it is empty, the environment variable
  /// CHORALE_SECRET is used.
  std::string secret = {};
};

/// Returns whether `name` is valid as JoinOptions::host: 1 to 200 printable ASCII characters.
bool is_host_name(const std::string& name);

/// Represents one rank in a group of ranks. It knows the other ranks, exchanges small messages with them on
/// the host, and can abort the group. Under torchrun, mpirun or srun, each process makes its handle like
/// this:
///
///     World world = World::from_environment();
///
/// A function that is marked as collective must be called by all ranks, in the same order.
///
/// Every wait ends when its condition holds, at the deadline, at an abort, or when a peer dies. A wait of
/// this class also ends when a peer that it needs leaves the world. When a launch waits for a peer that has
/// left, the launch ends at its deadline and its error names the peer. If all ranks live in one process, the
/// launch ends earlier.
///
/// Use a handle from one thread at a time; only abort() may be called from any thread. Objects that you make
/// with this handle, except windows, refer to it. Destroy them before you move or destroy the handle. When
/// you destroy the handle, the rank leaves the world. The destructor does not wait for other ranks. If the
/// world has several hosts, the destructor waits up to a second until the other machines have the last
/// messages.
///
/// When the process forks, the child is not a rank. In the child, collective calls of this handle and of
/// objects made with it throw UsageError, and abort() and the destructor do nothing.
class World {
 public:
  static constexpr int most_ranks = int(max_ranks);

  /// Makes one handle for each rank, all in this process. Use each handle on a separate thread, or see
  /// run_local().
  /// \throws UsageError if `ranks` is less than 1 or more than `most_ranks`, if the timeout is negative, or
  ///         if there is a seed, which needs run_local()
  static std::vector<World> local(int ranks, LocalOptions options = {});

  /// Joins a world of `ranks` processes; collective. All processes pass the same `address`, which is
  /// "shm://name" on one host, or "tcp://host:port" on one or several hosts. With tcp://, rank 0 listens on
  /// that address until all ranks have joined.
  ///
  /// Ranks of different hosts share no memory, so plans can connect them only by port channels. The lowest
  /// rank of each host exchanges control messages with rank 0 for all ranks of its host. After that rank has
  /// left or died, its host and the other hosts get no more control messages from each other.
  ///
  /// Over TCP the ranks authenticate each other with JoinOptions::secret. Without a secret, anyone who
  /// reaches the port can join in place of a rank. Rank 0 then logs a warning, unless its address is a
  /// loopback address.
  ///
  /// \throws UsageError if the address has another form, the rank is outside [0, ranks), `ranks` is more than
  ///         `most_ranks`, the timeout is negative, or the secret's file cannot be read or other users can
  ///         read it
  /// \throws RunError timed_out, which names the ranks that did not join; mismatch if two jobs use the
  ///         address, two processes have the same rank, the numbers of ranks, the versions or the secrets
  ///         differ, or ranks of one machine share no memory; resources if shared memory is full or the port
  ///         is in use; other if there is no such host. When one rank throws, or its process dies, all ranks
  ///         that have joined throw too
  static World join(const std::string& address, int rank, int ranks, JoinOptions options = {});

  /// Joins the world of an invitation; collective. All processes pass the same invitation. Any process of the
  /// host may have made it, even one that is no rank.
  ///
  /// The ranks are either processes of one host or all threads of one process. Threads of one process get a
  /// local world, as from local(). It has the workers and the timeout of the rank that comes first.
  /// JoinOptions `port` and `secret` have no effect, because the invitation has its own.
  ///
  /// \throws UsageError as the other join()
  /// \throws RunError as the other join() over tcp://. It is mismatch as well if the invitation has already
  ///         been used, if the process that made it has ended, if this rank is on another host or in another
  ///         network namespace (then only this rank throws at once), if the ranks are on several hosts, or if
  ///         some but not all ranks are threads of one process. It is peer_lost if the process that made the
  ///         invitation ends during the call
  static World join(const Invitation& invitation, int rank, int ranks, JoinOptions options = {});

  /// Joins over TCP with the values that a launcher put into the environment; collective. It reads the rank
  /// and the number of ranks from RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (mpirun of
  /// Open MPI), PMI_RANK and PMI_SIZE (mpirun of MPICH, srun --mpi=pmi2), PMIX_RANK and WORLD_SIZE, or
  /// SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun). It reads the address of rank 0 from MASTER_ADDR and
  /// MASTER_PORT. It reads Slurm's variables only when no others are set. Under torchrun (TORCHELASTIC_RUN_ID
  /// is set) it reads only torchrun's variables.
  ///
  /// When torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is True), the ranks join on
  /// the next port. When `options.port` is not 0, the ranks join on that port.
  /// \throws UsageError that names the variable if one is missing or malformed, or both variables if
  ///         launchers disagree; otherwise as join()
  static World from_environment(JoinOptions options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  int rank() const { return rank_; }
  int ranks() const;
  std::chrono::nanoseconds timeout() const;  ///< the limit of every wait; 0: no limit

  /// Returns whether all ranks live in this process, so that a pointer of one rank is valid for all.
  bool local() const;

  /// Returns the number of the host that a rank is on. Hosts are numbered from 0 in the order of their lowest
  /// ranks. Ranks of one host share memory.
  int host(int rank) const;

  /// Waits until all ranks have called it; collective.
  /// \throws RunError timed_out, which names the missing ranks; aborted; deadlock; peer_lost; mismatch, on
  ///         all ranks, if another rank makes another collective call
  void barrier();

  /// Returns the bytes that each rank passes, indexed by rank; collective. Sizes may differ by rank and may
  /// be 0.
  /// \throws RunError as barrier()
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Tells all ranks whether one of them has an error; collective.
  /// \param my_error  the message of this rank's error; none if it has no error
  /// \throws RunError, on all ranks, if a rank has an error. It has the message of the lowest such rank, as
  ///         "rank 2: <message>", and that rank's `reason`. Otherwise as barrier()
  void agree(const std::optional<std::string>& my_error, RunError::Reason reason = RunError::Reason::other);

  /// Ends every pending and later wait of every rank with RunError{aborted}, which names this rank and `why`.
  /// You may call it from any thread, any number of times. Only the first abort in the world counts. It never
  /// blocks.
  void abort(const std::string& why);

  /// Makes the world usable again after an abort, a timeout or a deadlock; collective.
  /// \throws RunError peer_lost if a peer died or left; call survivors() then
  void reset();

  /// Returns a new world of the remaining ranks, numbered in the old order, with the old timeout and workers.
  /// It is collective over these ranks. former_ranks() of the new world returns their old numbers.
  ///
  /// Call it when the world has stopped because a peer died, or when a peer has left. After an abort or a
  /// timeout that all ranks survived, the new world has all ranks. A rank that still waits in the old world
  /// does not notice this call, so if the old world has not stopped, abort() it first. Destroy the executors,
  /// windows and schedules of the old world as usual, before or after you make new ones. Executors refer to
  /// the old handle, so destroy them before you assign the new world to that handle.
  ///
  /// You may call it several times on one world, also with different lists. Each call makes another world of
  /// the ranks that remain then. A rank makes its calls in the order in which the others make them. Calls
  /// that have no rank in common need no order.
  ///
  /// \param without  ranks that the new world leaves out although they live. They do not call it. The list is
  ///                 the same on all ranks that call it. The old world stays usable
  ///
  /// Either all ranks that call it get the same world, or all get an error and may call it again. A rank that
  /// dies during the call may still be part of the new world. Then that world stops because a peer died, and
  /// you can call survivors() on it.
  ///
  /// \throws RunError timed_out, on all ranks that call it, if a living rank does not call it within
  ///         timeout(); the error names that rank. In a world with a seed, which has no timeout, it is
  ///         deadlock
  /// \throws RunError resources, on all ranks that call it, if one rank cannot get memory for the new world
  /// \throws UsageError if the world has several hosts, if `without` names this rank, or if it names a rank
  ///         that does not exist
  World survivors(std::span<const int> without = {});

  /// Returns, for each rank of this world, its rank in the world whose survivors() made this one. Returns an
  /// empty vector if survivors() did not make this world.
  std::vector<int> former_ranks() const;

  /// Makes new worlds of the ranks of this one; collective. Ranks that pass the same color get one new world.
  /// They are numbered in the order of their keys, and ranks with equal keys in the order of their ranks
  /// here. A rank without a color gets none, but has to make the call.
  ///
  /// A new world has the timeout and the workers of this one. It does not depend on this one: either may be
  /// destroyed first, and abort() of one does not stop the other. former_ranks() of it is empty.
  ///
  /// \param color  none: this rank gets no new world
  /// \throws RunError as barrier(). If one rank cannot make its new world, all ranks of this world throw; the
  ///         reason is resources if memory or file descriptors have run out
  /// \throws UsageError if the world has several hosts
  std::optional<World> split(std::optional<int> color, int key);

  /// Returns how often this rank has called reset(). Anything shared before the last reset is no longer
  /// valid.
  uint64_t resets() const;

  /// Throws the RunError that has stopped the world; does nothing while the world runs. Never blocks.
  void check() const;

  /// Returns the word that waits in kernels and fibers poll to see an abort. All ranks share one word. Never
  /// null.
  AbortWord* abort_word() const;

  /// Returns the scheduler that runs this rank's blocks on the CPU.
  fibers::Scheduler& scheduler() const;

  /// Returns the group of ranks behind this handle, for Window and the backends.
  world::Group& group() const { return *group_; }

 private:
  friend void run_local(int, const std::function<void(World&)>&, LocalOptions);
  World(std::shared_ptr<world::Group> group, int rank);

  std::shared_ptr<world::Group> group_;
  int rank_ = -1;
};

/// Runs `body` once per rank of a local world and waits for all of them.
///
/// Without a seed each rank has a thread. With a seed, the ranks and every block that they launch are fibers
/// of the calling thread. A random generator that starts from the seed picks the next fiber at every switch,
/// so the same seed gives the same interleaving. A body that throws aborts the world.
///
/// With a seed the body of a rank has a stack of 8 MiB. With or without a seed, a block has a stack of 96 KiB
/// (256 KiB under the address and thread sanitizers). In a world with a seed only the body itself may wait or
/// launch. Such calls throw UsageError from another thread, or after run_local() has returned.
///
/// \throws UsageError as World::local(), or if `body` is empty
/// \throws the exception of the lowest rank that threw one. Exceptions that are only the effect of another
///         rank's exception count last
void run_local(int ranks, const std::function<void(World&)>& body, LocalOptions options = {});

}  // namespace chorale
