#ifndef CHORALE_CHORALE_H
#define CHORALE_CHORALE_H
/// \file
/// Chorale's plain C API: worlds, plans, executors, plans by size, messages. libchorale.so is all that it
/// needs. C99, and C++.
///
/// **Errors.** Every function that can fail returns a chorale_status; chorale_last_error() then has the whole
/// message, with the values and, where one is known, the remedy. Nothing is thrown, and what a call would
/// have made is then 0. Numbers are never given another meaning.
///
/// **Handles** are numbers and not addresses, and none is given twice: one that is null, closed or of another
/// kind is CHORALE_INVALID_HANDLE. Each is closed by its chorale_..._close(). What a handle was made of may
/// be closed before it, in any order: a world is left when it and all its executors and exchanges are closed.
///
/// **Threads.** A world, with its executors and exchanges, takes calls of one thread at a time: a call beside
/// another one is CHORALE_IN_USE and does nothing. chorale_world_abort() may come from any thread at any
/// time. All else may be called from any thread.
///
/// **Processes.** A handle is of the process that made it: none is used in a child of fork().
///
/// **Text** is UTF-8 and ends with 0. What a `char** text` has got is given back with chorale_text_free();
/// `const char*` belongs to the library. Sizes are in bytes where nothing else is said.
///
/// "Collective" functions are called by all ranks of the world, in the same order.

#include <stdint.h>

#define CHORALE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// -- Versions

/// Of what this header says: raised when something that was there changes. Additions leave it.
#define CHORALE_ABI 1

/// CHORALE_ABI of the library. It is also the number in its file's name, libchorale.so.1.
CHORALE_API int32_t chorale_abi(void);
/// "0.1.0": of the library.
CHORALE_API const char* chorale_version(void);

// -- Status

typedef int32_t chorale_status;
enum {
  CHORALE_OK = 0,
  // The call was wrong: it can be mended without looking at the machine.
  CHORALE_INVALID_ARGUMENT = 1,
  CHORALE_INVALID_HANDLE = 2,   ///< null, closed, or of another kind
  CHORALE_IN_USE = 3,           ///< another thread is in a call of the same world
  CHORALE_INVALID_PLAN = 4,     ///< the text is no plan, or a check or a proof has found something
  CHORALE_UNREADABLE_FILE = 5,  ///< it is not there, or cannot be read
  // The machine or the run failed: as RunError::Reason in C++.
  CHORALE_TIMED_OUT = 16,  ///< a wait reached its deadline; the message names the ranks that are missing
  CHORALE_ABORTED = 17,  ///< somebody called chorale_world_abort(); the message names the rank and its reason
  CHORALE_DEADLOCK = 18,   ///< nothing can run any more: found without waiting for a deadline
  CHORALE_PEER_LOST = 19,  ///< a peer's process died, or the peer has left the world
  CHORALE_MISMATCH = 20,   ///< the ranks disagree: two processes with one rank, other sizes, other plans
  CHORALE_RESOURCES = 21,  ///< memory, shared memory or descriptors ran out
  CHORALE_FAILED = 22      ///< anything else; the message says what
};

/// "timed_out", "invalid_handle", ...; "unknown" for a number that is none of these.
CHORALE_API const char* chorale_status_name(chorale_status status);

/// The message of this thread's last call that failed; "" if none has. Good until this thread's next call
/// that fails.
CHORALE_API const char* chorale_last_error(void);

/// Gives text back that a function of this library has made. Null: does nothing.
CHORALE_API void chorale_text_free(char* text);

// -- Values

/// Type of one element. 0 is none. Those from CHORALE_U64 on are reduced by some operators only, which a call
/// then names, and those from CHORALE_I16 on by none: docs/c-api.md has them all.
typedef int32_t chorale_dtype;
enum {
  CHORALE_F32 = 1,
  CHORALE_F16 = 2,
  CHORALE_BF16 = 3,
  CHORALE_F64 = 4,
  CHORALE_I32 = 5,
  CHORALE_U32 = 6,
  CHORALE_I64 = 7,
  CHORALE_U8 = 8,
  CHORALE_I8 = 9,
  CHORALE_FP8_E4M3 = 10,
  CHORALE_FP8_E5M2 = 11,
  CHORALE_U64 = 12,
  CHORALE_BOOL = 13,  ///< a byte, 0 or 1
  CHORALE_C32 = 14,   ///< two CHORALE_F16: the real and the imaginary part
  CHORALE_C64 = 15,   ///< two CHORALE_F32
  CHORALE_C128 = 16,  ///< two CHORALE_F64
  CHORALE_I16 = 17,
  CHORALE_U16 = 18
};

/// How elements of the same index are combined. CHORALE_BAND and CHORALE_BOR are for CHORALE_BOOL;
/// CHORALE_BXOR and CHORALE_PREMUL_SUM are refused, with what to do instead.
typedef int32_t chorale_op;
enum {
  CHORALE_OP_OF_PLAN = 0,  ///< as the plan says
  CHORALE_SUM = 1,
  CHORALE_MIN = 2,
  CHORALE_MAX = 3,
  CHORALE_PROD = 4,
  CHORALE_AVG = 5,
  CHORALE_BAND = 6,
  CHORALE_BOR = 7,
  CHORALE_BXOR = 8,
  CHORALE_PREMUL_SUM = 9
};

/// How packets carry their flag.
typedef int32_t chorale_packet;
enum { CHORALE_PACKET_OF_CONFIG = 0, CHORALE_LL8 = 1, CHORALE_LL16 = 2, CHORALE_LL128 = 3 };

/// Where plans run.
typedef int32_t chorale_backend;
enum { CHORALE_BACKEND_OF_CONFIG = 0, CHORALE_CPU = 1, CHORALE_CUDA = 2 };

/// The GPU that is current in the calling thread.
enum { CHORALE_CURRENT_DEVICE = -1 };

// -- Configuration

/// Settings, as the ini file that CHORALE_CONFIG names and the environment CHORALE_<NAME> have them;
/// `chorale doctor --only settings` lists them. Where a function takes one, null stands for a new one.
typedef struct chorale_config chorale_config;

/// Reads file and environment.
/// \retval CHORALE_INVALID_ARGUMENT for an unknown name, "did you mean", or a bad value
CHORALE_API chorale_status chorale_config_load(chorale_config** config);

/// Overrides a setting of this handle: `name` as in the environment, "CHORALE_TIMEOUT", `value` too, "10s".
/// Worlds and executors that there are keep theirs; CHORALE_LOG_LEVEL is the process's, at once.
CHORALE_API chorale_status chorale_config_set(chorale_config* config, const char* name, const char* value);

/// The value of "CHORALE_TIMEOUT": "10s".
CHORALE_API chorale_status chorale_config_get(chorale_config* config, const char* name, char** text);

/// One "name = value  (from)" a line.
CHORALE_API chorale_status chorale_config_describe(chorale_config* config, char** text);

CHORALE_API chorale_status chorale_config_close(chorale_config* config);

// -- Worlds

/// One rank's handle on the group of ranks that run collectives together. Every wait in it ends: with its
/// condition, at the deadline CHORALE_TIMEOUT, at an abort, or when a peer dies.
typedef struct chorale_world chorale_world;

/// Collective over `ranks` processes of one host. They meet under `address`, "tcp://host:port", where rank 0
/// listens until all have come, or "shm://name".
/// \retval CHORALE_INVALID_ARGUMENT for another address, or a rank outside [0, ranks)
/// \retval CHORALE_TIMED_OUT naming the ranks that did not come
/// \retval CHORALE_MISMATCH if two jobs use the address, two processes have one rank, the numbers of ranks or
///         the versions differ, or the ranks are on several hosts
CHORALE_API chorale_status chorale_world_join(const char* address, int32_t rank, int32_t ranks,
                                              chorale_config* config, chorale_world** world);

/// Collective: joins as the launcher says in the environment, torchrun or mpirun: RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, or OMPI_COMM_WORLD_RANK and _SIZE with these two.
CHORALE_API chorale_status chorale_world_from_environment(chorale_config* config, chorale_world** world);

/// A world whose ranks live in this process, each to be used by a thread of its own.
/// \param worlds  room for `ranks` handles: all are set, by rank
CHORALE_API chorale_status chorale_world_local(int32_t ranks, chorale_config* config, chorale_world** worlds);

CHORALE_API chorale_status chorale_world_rank(chorale_world* world, int32_t* rank);
CHORALE_API chorale_status chorale_world_ranks(chorale_world* world, int32_t* ranks);

/// Collective: returns once all ranks have called it.
CHORALE_API chorale_status chorale_world_barrier(chorale_world* world);

/// Ends every pending and later wait of every rank with CHORALE_ABORTED, naming this rank and `why`. From any
/// thread, any number of times: the first abort of the world wins. Never blocks.
CHORALE_API chorale_status chorale_world_abort(chorale_world* world, const char* why);

/// CHORALE_OK, or what the world has stopped with. Never blocks.
CHORALE_API chorale_status chorale_world_check(chorale_world* world);

/// Collective: takes an abort, a timeout or a deadlock back.
/// \retval CHORALE_PEER_LOST if a peer died or left, which cannot call it: see chorale_world_survivors()
CHORALE_API chorale_status chorale_world_reset(chorale_world* world);

/// Collective of those that are left, after a peer has died or left: a world of them alone, numbered in the
/// old order. The old one, and executors of it, are closed as always, before or after. If the old world has
/// not stopped, who still waits in it hears nothing of this call: abort it first.
CHORALE_API chorale_status chorale_world_survivors(chorale_world* world, chorale_world** survivors);

/// By rank of this world: which rank it had in the one whose survivors it has. None if it has no such.
/// \param former  room for `room` numbers; may be null if that is 0
/// \param count   how many there are
/// \retval CHORALE_INVALID_ARGUMENT if there is room for some, but not for all; `count` is set
CHORALE_API chorale_status chorale_world_former_ranks(chorale_world* world, int32_t* former, uint64_t room,
                                                      uint64_t* count);

/// Marks this rank as having left, once its executors and exchanges are closed too, and once a call that
/// another thread has under way in the world has ended, which it does not end: abort does. Never blocks;
/// chorale_world_barrier() before it lets peers end what they do.
CHORALE_API chorale_status chorale_world_close(chorale_world* world);

// -- Plans

/// What every thread block of every rank does in one collective. It does not change.
typedef struct chorale_plan chorale_plan;

/// Reads a file, JSON or CBOR; of MSCCL++ too. Says nothing about whether the plan is right: see
/// chorale_plan_prove().
CHORALE_API chorale_status chorale_plan_load(const char* path, chorale_plan** plan);

/// The same from `bytes` bytes at `data`.
CHORALE_API chorale_status chorale_plan_read(const void* data, uint64_t bytes, chorale_plan** plan);

/// The plan of a shipped algorithm for `ranks` ranks: built, compiled and proved here, in milliseconds.
/// \param name      "allreduce_all_pairs", or as shipped plans are called, "allreduce_two_shot_ordered_b16"
/// \param settings  further parameters, "instances=16" each, without "ranks"; may be null if `count` is 0
CHORALE_API chorale_status chorale_plan_make(const char* name, int32_t ranks, const char* const* settings,
                                             uint64_t count, chorale_plan** plan);

/// Its canonical JSON text.
CHORALE_API chorale_status chorale_plan_json(chorale_plan* plan, char** text);

/// Checks and proves it: that it computes its collective, ends, has no data race and may be launched again
/// and again.
/// \retval CHORALE_INVALID_PLAN if something is found
/// \param findings  all of the first check or proof that finds something, at their author's lines; null if
///                  nothing is found. May be null: chorale_last_error() has them too
CHORALE_API chorale_status chorale_plan_prove(chorale_plan* plan, char** findings);

typedef struct chorale_plan_info {
  uint64_t struct_bytes;   ///< set by the caller: sizeof(chorale_plan_info)
  const char* name;        ///< this and `collective`: until the plan is closed
  const char* collective;  ///< "allreduce", "allgather", ...; "custom" and "test" for others
  int32_t ranks;
  int32_t in_place;            ///< 1 if input and output are one memory; else 0
  uint64_t min_message_bytes;  ///< counted as in chorale_arguments
  uint64_t max_message_bytes;
  uint64_t message_parts;  ///< a message is a multiple of so many elements
} chorale_plan_info;

/// Fills the members that `info` has room for.
CHORALE_API chorale_status chorale_plan_describe(chorale_plan* plan, chorale_plan_info* info);

/// Bytes of a rank's input and output for a message of `bytes`, counted as in chorale_arguments.
/// \retval CHORALE_INVALID_ARGUMENT if the plan does not take that size: says which sizes it takes
CHORALE_API chorale_status chorale_plan_message_sizes(chorale_plan* plan, uint64_t bytes, chorale_dtype dtype,
                                                      uint64_t* input, uint64_t* output);

typedef struct chorale_needs {
  uint64_t struct_bytes;   ///< set by the caller: sizeof(chorale_needs)
  uint64_t scratch_bytes;  ///< allocated when the plan is bound
  uint32_t thread_blocks;  ///< all of them at a time: they wait for each other
  int32_t input_reached;   ///< 1 if peers read or write there: on GPUs other memory means another binding,
  int32_t output_reached;  ///< on all ranks
  int32_t reserved;
} chorale_needs;

/// What one rank of a plan takes of the machine for a message.
CHORALE_API chorale_status chorale_plan_needs(chorale_plan* plan, int32_t rank, uint64_t bytes,
                                              chorale_dtype dtype, chorale_needs* needs);

CHORALE_API chorale_status chorale_plan_close(chorale_plan* plan);

// -- Executors

/// Runs plans on one rank. What runs and what is bound is of one executor: an application has one for each
/// world and device.
typedef struct chorale_executor chorale_executor;

/// One call of a collective on one rank. CHORALE_ARGUMENTS sets what has a default.
typedef struct chorale_arguments {
  uint64_t struct_bytes;  ///< sizeof(chorale_arguments)
  const void* in;         ///< this rank's input; it may lie in `out`, or `out` in it, as for a call in place
  void* out;              ///< this rank's output
  /// Of the message: of the input, but of the output for all-gather. Any whole number of elements; for
  /// all-gather, reduce-scatter and all-to-all a multiple of ranks elements.
  uint64_t bytes;
  chorale_dtype dtype;
  chorale_op op;          ///< replaces the plan's
  chorale_packet packet;  ///< as chorale_tuned_plans_choose() says it, or 0
  int32_t reserved;       ///< 0
} chorale_arguments;
#define CHORALE_ARGUMENTS \
  { sizeof(chorale_arguments), 0, 0, 0, 0, CHORALE_OP_OF_PLAN, CHORALE_PACKET_OF_CONFIG, 0 }

/// Collective.
/// \param backend  or CHORALE_BACKEND_OF_CONFIG
/// \param device   of CUDA: the GPU's number, which is then the current one in this thread, as after
///                 cudaSetDevice(); or CHORALE_CURRENT_DEVICE, which it must be on the CPU
/// \retval CHORALE_INVALID_ARGUMENT if the library was built without the backend, or there is no such GPU
/// \retval CHORALE_FAILED if there is no driver
CHORALE_API chorale_status chorale_executor_create(chorale_world* world, chorale_config* config,
                                                   chorale_backend backend, int32_t device,
                                                   chorale_executor** executor);

/// Collective: binds without running, so that the next chorale_executor_execute() with these arguments only
/// launches: needed before a CUDA graph captures it.
CHORALE_API chorale_status chorale_executor_prepare(chorale_executor* executor, chorale_plan* plan,
                                                    const chorale_arguments* arguments);

/// Collective: runs `plan` once. On the CPU it returns when this rank's part has ended; on CUDA it enqueues
/// on `stream`, a cudaStream_t (null: the default stream), and returns, and what goes wrong later is the
/// status of the next call. The first call with these arguments binds: it allocates and exchanges what the
/// run needs. A stream may be captured, after chorale_executor_prepare(). The plan may be closed after it.
/// Two launches of one plan with the same bytes, dtype, op and packets must not be under way at once, whatever
/// their buffers: see executor.hpp.
///
/// After a failed run the ranks call chorale_world_reset(), or chorale_world_survivors().
CHORALE_API chorale_status chorale_executor_execute(chorale_executor* executor, chorale_plan* plan,
                                                    const chorale_arguments* arguments, void* stream);

/// CHORALE_OK, or what an earlier run has failed with. Never blocks.
CHORALE_API chorale_status chorale_executor_check(chorale_executor* executor);

/// Waits for `stream`, and then as chorale_executor_check(). On the CPU nothing is left to wait for.
CHORALE_API chorale_status chorale_executor_synchronize(chorale_executor* executor, void* stream);

/// Zeroed memory that peers reach without a copy, of the CPU or of the executor's GPU. It is given back when
/// the executor is closed. Collective where ranks are processes; `bytes` may differ by rank.
CHORALE_API chorale_status chorale_executor_allocate(chorale_executor* executor, uint64_t bytes,
                                                     void** memory);

/// Peers write into its memory: it is closed when the launches of all ranks have ended, after
/// chorale_executor_synchronize() and chorale_world_barrier().
CHORALE_API chorale_status chorale_executor_close(chorale_executor* executor);

// -- Plans by size

/// A table of `chorale tune`, and the folder of plans that it names. All ranks have one table: with another
/// they may choose different plans, which the executor refuses.
typedef struct chorale_tuned_plans chorale_tuned_plans;

/// \param table    a file; null: none, which is defaults by size
/// \param folder   PREFIX/share/chorale/plans/shipped; what it lacks is made. Null: everything is
/// \param backend  CHORALE_CPU or CHORALE_CUDA
/// \param device   the GPU's name, "NVIDIA H200", as in the table; null on the CPU
/// \param rank_order  1: of collectives that reduce only plans that add in the order of the ranks, so that
///                 a sum has the same bits in messages of every size; else 0
CHORALE_API chorale_status chorale_tuned_plans_open(const char* table, const char* folder, int32_t ranks,
                                                    chorale_backend backend, const char* device,
                                                    int32_t rank_order, chorale_tuned_plans** plans);

/// What a table has for this size, else for the next smaller one, else a default.
/// \param collective  "allreduce", "allgather", "reducescatter", "alltoall", "broadcast"
/// \param bytes    counted as in chorale_arguments
/// \param plan     a handle of its own, to be closed; the plan itself is read or made once
/// \param packet   for chorale_arguments. May be null
CHORALE_API chorale_status chorale_tuned_plans_choose(chorale_tuned_plans* plans, const char* collective,
                                                      uint64_t bytes, chorale_dtype dtype,
                                                      chorale_plan** plan, chorale_packet* packet);

/// Which plan that is, and why: "allreduce_one_shot_b128, ll16, as tuned for 65536 bytes of bf16".
CHORALE_API chorale_status chorale_tuned_plans_explain(chorale_tuned_plans* plans, const char* collective,
                                                       uint64_t bytes, chorale_dtype dtype, char** text);

/// Collective: chorale_executor_execute() of the plan that is chosen for `arguments`; its `packet` is not
/// looked at. Before a capture: chorale_executor_prepare() with the plan and the packet that are chosen.
CHORALE_API chorale_status chorale_tuned_plans_execute(chorale_tuned_plans* plans, chorale_executor* executor,
                                                       const char* collective,
                                                       const chorale_arguments* arguments, void* stream);

CHORALE_API chorale_status chorale_tuned_plans_close(chorale_tuned_plans* plans);

// -- Messages

/// One rank's end of messages between ranks whose sizes the host knows. Messages between two ranks are
/// matched in their order, as those of ncclSend() and ncclRecv(), and both ranks name one size.
typedef struct chorale_exchange chorale_exchange;

/// What an exchange is made of; 0: chosen by the library. The same on all ranks.
typedef struct chorale_exchange_options {
  uint64_t struct_bytes;     ///< sizeof(chorale_exchange_options)
  uint64_t slot_bytes;       ///< of a ring's slot, at least 16
  uint32_t slots;            ///< of a ring, at most 256
  uint32_t blocks_per_peer;  ///< thread blocks that work on one peer and direction, at most
} chorale_exchange_options;

typedef struct chorale_send_to {
  const void* data;  ///< any alignment; multiples of 16 are fast. May be null if there are no bytes
  uint64_t bytes;
  int32_t peer;
  int32_t reserved;  ///< 0
} chorale_send_to;

typedef struct chorale_recv_from {
  void* data;
  uint64_t bytes;
  int32_t peer;
  int32_t reserved;  ///< 0
} chorale_recv_from;

/// Collective.
/// \param backend,device  as of chorale_executor_create()
/// \param options  null: all are chosen
CHORALE_API chorale_status chorale_exchange_create(chorale_world* world, chorale_config* config,
                                                   chorale_backend backend, int32_t device,
                                                   const chorale_exchange_options* options,
                                                   chorale_exchange** exchange);

/// Moves all messages at once: none waits for one of another peer or direction, so all ranks may send to and
/// receive from everybody, whatever the sizes. Those of one peer and direction go in the order in which they
/// stand. A message to oneself is received in the same call. What is received must not lie in what is sent or
/// received beside it.
///
/// On CUDA it enqueues on `stream`, and may be captured; calls that have a peer and direction in common are
/// made on one stream, or ordered by the caller. On the CPU it returns when this rank's messages have ended.
/// \param sends, recvs  each may be null if there are none
/// \retval CHORALE_ABORTED on all ranks if two name different sizes for a message
/// \retval CHORALE_TIMED_OUT if a peer does not come. After either, chorale_world_reset() and
///         chorale_exchange_reset()
CHORALE_API chorale_status chorale_exchange_run(chorale_exchange* exchange, const chorale_send_to* sends,
                                                uint64_t send_count, const chorale_recv_from* recvs,
                                                uint64_t recv_count, void* stream);

/// chorale_exchange_run() of one message.
CHORALE_API chorale_status chorale_exchange_send(chorale_exchange* exchange, const void* data, uint64_t bytes,
                                                 int32_t peer, void* stream);
CHORALE_API chorale_status chorale_exchange_recv(chorale_exchange* exchange, void* data, uint64_t bytes,
                                                 int32_t peer, void* stream);

/// As chorale_executor_check() and chorale_executor_synchronize().
CHORALE_API chorale_status chorale_exchange_check(chorale_exchange* exchange);
CHORALE_API chorale_status chorale_exchange_synchronize(chorale_exchange* exchange, void* stream);

/// Collective, after chorale_world_reset(): makes the rings new.
CHORALE_API chorale_status chorale_exchange_reset(chorale_exchange* exchange);

/// As chorale_executor_close().
CHORALE_API chorale_status chorale_exchange_close(chorale_exchange* exchange);

#ifdef __cplusplus
}
#endif

#endif
