#ifndef CHORALE_CHORALE_H
#define CHORALE_CHORALE_H
/// \file
/// This header is Chorale's C API: worlds, plans, executors, plans chosen by size, and messages. It is valid
/// C99 and C++, and needs only libchorale.so. Here is an all-reduce of `n` floats. (A real program also
/// checks the status of each call.)
///
///     chorale_world* world;
///     chorale_plan* plan;
///     chorale_executor* executor;
///     chorale_world_join("tcp://127.0.0.1:29517", rank, ranks, NULL, &world);
///     chorale_plan_make("allreduce_all_pairs", ranks, NULL, 0, &plan);
///     chorale_executor_create(world, NULL, CHORALE_CPU, CHORALE_CURRENT_DEVICE, &executor);
///     chorale_arguments arguments = CHORALE_ARGUMENTS;
///     arguments.in = x;
///     arguments.out = y;
///     arguments.bytes = n * sizeof(float);
///     arguments.dtype = CHORALE_F32;
///     chorale_executor_execute(executor, plan, &arguments, NULL);
///     chorale_world_barrier(world);  // no rank closes memory that another one still reads
///     chorale_executor_close(executor);
///     chorale_plan_close(plan);
///     chorale_world_close(world);
///
/// **Errors.** Every function that can fail returns a chorale_status. When one fails, chorale_last_error()
/// has the whole message, with the values and, if one is known, the remedy. A call that fails sets its result
/// to 0. No function throws. A status number never changes its meaning.
///
/// **Handles** are numbers, not addresses, and the library never reuses one. A call returns
/// CHORALE_INVALID_HANDLE for a handle that is null, closed or of another kind. Each kind of handle has a
/// function chorale_..._close(). You may close handles in any order, also before the handles that were made
/// from them. A rank leaves its world when the world's handle and those of all its executors and exchanges
/// are closed.
///
/// **Threads.** You may call all functions from any thread. But a world, with its executors and exchanges,
/// takes one call at a time. A call during another one returns CHORALE_IN_USE and does nothing. The exception
/// is chorale_world_abort(), which may run at any time.
///
/// **Calls.** On the CPU a call that runs something returns when the run has ended on this rank. The results
/// are then ready, and the status is that of the run. With CUDA the call only enqueues on its stream. The
/// results are ready when the stream has executed the call, or after chorale_..._synchronize(). Keep the
/// buffers alive until then. If the run fails later, the next call returns the error. docs/calls.md has a
/// table of the calls.
///
/// **Processes.** A handle belongs to the process that made it. Do not use it in a child of fork().
///
/// **Text** is UTF-8 and ends with 0. Free the text that a call stores in a `char**` with
/// chorale_text_free(); a `const char*` belongs to the library. Sizes are in bytes unless a comment says
/// otherwise.
///
/// **Collective** functions must be called by all ranks of the world, in the same order.

#include <stdint.h>

#define CHORALE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// -- Versions

/// Is the version of this interface. It rises when a part of the interface changes, but not when something
/// is added.
#define CHORALE_ABI 1

/// Returns the library's CHORALE_ABI, which is also the number in the name of its file, libchorale.so.1.
CHORALE_API int32_t chorale_abi(void);
/// Returns the library's version, for example "0.1.0".
CHORALE_API const char* chorale_version(void);

// -- Status

/// Says how a call ended.
typedef int32_t chorale_status;
enum {
  CHORALE_OK = 0,
  // The call was wrong. Correct its arguments; the machine is not the cause.
  CHORALE_INVALID_ARGUMENT = 1,
  CHORALE_INVALID_HANDLE = 2,   ///< null, closed, or of another kind
  CHORALE_IN_USE = 3,           ///< another thread is in a call of the same world
  CHORALE_INVALID_PLAN = 4,     ///< the text is not a plan, or a check or a proof has found an error
  CHORALE_UNREADABLE_FILE = 5,  ///< the file does not exist, or cannot be read
  // The machine or the run failed. In C++ these are RunError::Reason.
  CHORALE_TIMED_OUT = 16,  ///< a wait reached its deadline; the message names the ranks that are missing
  CHORALE_ABORTED = 17,    ///< a rank called chorale_world_abort(); the message names the rank and its reason
  CHORALE_DEADLOCK = 18,   ///< no rank can continue; this is found without waiting for a deadline
  CHORALE_PEER_LOST = 19,  ///< a peer's process died, or the peer has left the world
  CHORALE_MISMATCH = 20,   ///< the ranks disagree: two processes have one rank, or sizes or plans differ
  CHORALE_RESOURCES = 21,  ///< there is not enough memory, shared memory or descriptors
  CHORALE_FAILED = 22      ///< anything else; the message says what
};

/// Returns the name of a status: "timed_out", "invalid_handle", ...; "unknown" for any other number.
CHORALE_API const char* chorale_status_name(chorale_status status);

/// Returns the message of this thread's last call that failed; "" if none has. The text is valid until this
/// thread's next call that fails.
CHORALE_API const char* chorale_last_error(void);

/// Frees text that a function of this library has returned. It does nothing with null.
CHORALE_API void chorale_text_free(char* text);

// -- Values

/// Names the type of one element; 0 is no type. Only some operators reduce the types from CHORALE_BOOL on,
/// so a call must name the operator for them. No operator reduces the types from CHORALE_I16 on.
/// docs/c-api.md lists them all.
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

/// Names the operator that combines elements of the same index. CHORALE_BAND and CHORALE_BOR are for
/// CHORALE_BOOL. Calls refuse CHORALE_BXOR and CHORALE_PREMUL_SUM, and the message says what to do instead.
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

/// Says how packets carry their arrival flag. CHORALE_PACKET_OF_CONFIG stands for the setting CHORALE_PACKET.
typedef int32_t chorale_packet;
enum { CHORALE_PACKET_OF_CONFIG = 0, CHORALE_LL8 = 1, CHORALE_LL16 = 2, CHORALE_LL128 = 3 };

/// Names the backend that runs plans. CHORALE_BACKEND_OF_CONFIG stands for the setting CHORALE_BACKEND.
typedef int32_t chorale_backend;
enum { CHORALE_BACKEND_OF_CONFIG = 0, CHORALE_CPU = 1, CHORALE_CUDA = 2 };

/// Stands for the GPU that is current in the calling thread.
enum { CHORALE_CURRENT_DEVICE = -1 };

// -- Configuration

/// A configuration has settings from the ini file that CHORALE_CONFIG names and from environment variables
/// CHORALE_<NAME>. `chorale doctor --only settings` lists them. If you pass null to a function that takes a
/// configuration, the function loads a new one.
typedef struct chorale_config chorale_config;

/// Reads the file and the environment.
/// \retval CHORALE_INVALID_ARGUMENT if the file cannot be read, or for an unknown name or a bad value. The
///         message suggests a similar name
CHORALE_API chorale_status chorale_config_load(chorale_config** config);

/// Overrides a setting of this handle. `name` and `value` are as in the environment: "CHORALE_TIMEOUT",
/// "10s". Existing worlds and executors keep their settings. CHORALE_LOG_LEVEL is the exception: it changes
/// for the whole process at once.
/// \retval CHORALE_INVALID_ARGUMENT for an unknown name or a bad value; the setting is then unchanged
CHORALE_API chorale_status chorale_config_set(chorale_config* config, const char* name, const char* value);

/// Gets the value of a setting as text: "10s" for "CHORALE_TIMEOUT".
/// \retval CHORALE_INVALID_ARGUMENT for an unknown name
CHORALE_API chorale_status chorale_config_get(chorale_config* config, const char* name, char** text);

/// Lists all settings, one line "name = value  (from)" per setting.
CHORALE_API chorale_status chorale_config_describe(chorale_config* config, char** text);

CHORALE_API chorale_status chorale_config_close(chorale_config* config);

// -- Worlds

/// A world is one rank's handle on the group of ranks that run collectives together. Every wait in it ends:
/// when its condition holds, at the deadline CHORALE_TIMEOUT, at an abort, or when a peer dies.
typedef struct chorale_world chorale_world;

/// Collective: joins `ranks` processes to a world. The ranks find each other at `address`. It is "shm://name"
/// on one host, or "tcp://host:port" on one or several hosts, where rank 0 listens until all have joined. The
/// settings CHORALE_SECRET and CHORALE_HOST apply to tcp://, see World::join() in world.hpp.
/// \param config  may be null
/// \retval CHORALE_INVALID_ARGUMENT for another form of address, or a rank outside [0, ranks)
/// \retval CHORALE_TIMED_OUT if some ranks did not join; the message names them
/// \retval CHORALE_MISMATCH if two jobs use the address, two processes have one rank, the numbers of ranks,
///         the versions or the secrets differ, or ranks of one machine share no memory
/// \retval CHORALE_RESOURCES if shared memory is full or the port is in use
CHORALE_API chorale_status chorale_world_join(const char* address, int32_t rank, int32_t ranks,
                                              chorale_config* config, chorale_world** world);

/// Collective: joins the world that the launcher (torchrun, mpirun, srun) describes in the environment, with
/// MASTER_ADDR and MASTER_PORT. See World::from_environment() in world.hpp.
/// \retval CHORALE_INVALID_ARGUMENT if a variable is missing or malformed; the message names it. Others are
///         those of chorale_world_join()
CHORALE_API chorale_status chorale_world_from_environment(chorale_config* config, chorale_world** world);

/// Makes a world whose ranks are threads of this process. Call each rank from its own thread.
/// \param worlds  an array for `ranks` handles; the call sets element r to the handle of rank r
/// \retval CHORALE_INVALID_ARGUMENT for a wrong number of ranks, or if the configuration has a seed
CHORALE_API chorale_status chorale_world_local(int32_t ranks, chorale_config* config, chorale_world** worlds);

CHORALE_API chorale_status chorale_world_rank(chorale_world* world, int32_t* rank);
CHORALE_API chorale_status chorale_world_ranks(chorale_world* world, int32_t* ranks);

/// Collective: returns once all ranks have called it.
/// \retval CHORALE_TIMED_OUT, CHORALE_ABORTED, CHORALE_DEADLOCK or CHORALE_PEER_LOST if the wait ends early
/// \retval CHORALE_MISMATCH on all ranks, if another rank makes another collective call
CHORALE_API chorale_status chorale_world_barrier(chorale_world* world);

/// Ends every pending and later wait of every rank with CHORALE_ABORTED, which names this rank and `why`. You
/// may call it from any thread, any number of times. Only the first abort in the world counts. It never
/// blocks.
CHORALE_API chorale_status chorale_world_abort(chorale_world* world, const char* why);

/// Returns CHORALE_OK, or the error that stopped the world. It never blocks.
CHORALE_API chorale_status chorale_world_check(chorale_world* world);

/// Collective: clears an abort, a timeout or a deadlock, so that you can use the world again.
/// \retval CHORALE_PEER_LOST if a peer died or left and so cannot call it: see chorale_world_survivors()
CHORALE_API chorale_status chorale_world_reset(chorale_world* world);

/// Makes a world of the ranks that remain after a peer has died or left, numbered in the old order. All of
/// them must call it. Close the old world and its executors as always, before or after. If the old world has
/// not stopped, a rank that still waits in it does not notice this call, so abort the old world first.
/// \retval CHORALE_TIMED_OUT if a remaining rank does not call it; the message names it
/// \retval CHORALE_INVALID_ARGUMENT if the world has several hosts
CHORALE_API chorale_status chorale_world_survivors(chorale_world* world, chorale_world** survivors);

/// Gets, for each rank of this world, its rank in the older world from which chorale_world_survivors() made
/// this one. The count is 0 if this world was made in another way.
/// \param former  an array for `room` numbers; may be null if `room` is 0
/// \param count   receives the number of former ranks
/// \retval CHORALE_INVALID_ARGUMENT if `room` is too small for all of them, but not 0; `count` is set
CHORALE_API chorale_status chorale_world_former_ranks(chorale_world* world, int32_t* former, uint64_t room,
                                                      uint64_t* count);

/// Closes the handle. Never blocks. The rank has left the world once its executors and exchanges are closed
/// too and no other thread is in a call of the world. Closing does not end such a call;
/// chorale_world_abort() does. Call chorale_world_barrier() first, so that peers can finish.
CHORALE_API chorale_status chorale_world_close(chorale_world* world);

// -- Plans

/// A plan lists what every thread block of every rank does in one collective. It does not change.
typedef struct chorale_plan chorale_plan;

/// Reads a plan from a file in JSON or CBOR, which may also be a plan of MSCCL++. It does not check that the
/// plan is right: see chorale_plan_prove().
/// \retval CHORALE_UNREADABLE_FILE if the file does not exist or cannot be read
/// \retval CHORALE_INVALID_PLAN if the file holds no plan
CHORALE_API chorale_status chorale_plan_load(const char* path, chorale_plan** plan);

/// Reads a plan as chorale_plan_load() does, from `bytes` bytes at `data`.
/// \retval CHORALE_INVALID_PLAN if the bytes are no plan
CHORALE_API chorale_status chorale_plan_read(const void* data, uint64_t bytes, chorale_plan** plan);

/// Makes the plan of a shipped algorithm for `ranks` ranks. It builds, compiles and proves the plan, which
/// takes milliseconds for eight ranks.
/// \param name      an algorithm, "allreduce_all_pairs", or a shipped plan, "allreduce_two_shot_ordered_b16"
/// \param settings  `count` further parameters in the form "instances=16", without "ranks"; may be null if
///                  `count` is 0
/// \retval CHORALE_INVALID_ARGUMENT if there is no such algorithm, or if it refuses the parameters
CHORALE_API chorale_status chorale_plan_make(const char* name, int32_t ranks, const char* const* settings,
                                             uint64_t count, chorale_plan** plan);

/// Gets the plan's canonical JSON text.
CHORALE_API chorale_status chorale_plan_json(chorale_plan* plan, char** text);

/// Checks the plan and proves that it computes its collective, ends, has no data race and may be launched
/// again and again.
/// \retval CHORALE_INVALID_PLAN if a check or a proof finds something
/// \param findings  all findings of the first check or proof that finds something, at their author's lines;
///                  null if nothing is found. May be null: chorale_last_error() has them too
CHORALE_API chorale_status chorale_plan_prove(chorale_plan* plan, char** findings);

/// Describes a plan.
typedef struct chorale_plan_info {
  uint64_t struct_bytes;   ///< set by the caller: sizeof(chorale_plan_info)
  const char* name;        ///< valid until the plan is closed, and so is `collective`
  const char* collective;  ///< "allreduce", "allgather", ...; "custom" and "test" for others
  int32_t ranks;
  int32_t in_place;            ///< 1 if input and output are the same memory; else 0
  uint64_t min_message_bytes;  ///< counted as in chorale_arguments
  uint64_t max_message_bytes;
  uint64_t message_parts;  ///< the number of elements in a message is a multiple of this number
} chorale_plan_info;

/// Sets the members of `info` that fit into `info->struct_bytes`.
CHORALE_API chorale_status chorale_plan_describe(chorale_plan* plan, chorale_plan_info* info);

/// Gets the bytes of a rank's input and output for a message of `bytes` bytes, counted as in
/// chorale_arguments.
/// \retval CHORALE_INVALID_ARGUMENT if the plan does not take that size; the message says which it takes
CHORALE_API chorale_status chorale_plan_message_sizes(chorale_plan* plan, uint64_t bytes, chorale_dtype dtype,
                                                      uint64_t* input, uint64_t* output);

/// Describes what one rank of a plan needs for one size of message.
typedef struct chorale_needs {
  uint64_t struct_bytes;   ///< set by the caller: sizeof(chorale_needs)
  uint64_t scratch_bytes;  ///< the executor allocates this memory when it binds the plan
  uint32_t thread_blocks;  ///< all of them must be resident at once, because they wait for each other
  int32_t input_reached;   ///< 1 if peers read or write the input. On GPUs a call with another input
                           ///< buffer then binds again on all ranks
  int32_t output_reached;  ///< 1 if peers read or write the output, with the same effect
  int32_t reserved;
} chorale_needs;

/// Gets the resources that one rank of a plan needs for a message. Sets the members of `needs` that fit into
/// `needs->struct_bytes`.
/// \param bytes  counted as in chorale_arguments
/// \retval CHORALE_INVALID_ARGUMENT if the plan has no such rank or does not take that size
CHORALE_API chorale_status chorale_plan_needs(chorale_plan* plan, int32_t rank, uint64_t bytes,
                                              chorale_dtype dtype, chorale_needs* needs);

CHORALE_API chorale_status chorale_plan_close(chorale_plan* plan);

// -- Executors

/// An executor runs plans on one rank. It keeps plans bound for later calls, so make only one executor for
/// each world and device.
typedef struct chorale_executor chorale_executor;

/// Describes one call of a collective on one rank. CHORALE_ARGUMENTS sets the members that have a default.
typedef struct chorale_arguments {
  uint64_t struct_bytes;  ///< sizeof(chorale_arguments)
  const void* in;  ///< this rank's input. In a call in place, `in` may be a part of `out`, or `out` of `in`
  void* out;       ///< this rank's output
  /// Holds the size of the message: the bytes of the input, or of the output for all-gather. It is a whole
  /// number of elements. For all-gather, reduce-scatter and all-to-all, that number is a multiple of the
  /// number of ranks.
  uint64_t bytes;
  chorale_dtype dtype;
  chorale_op op;          ///< replaces the plan's operator
  chorale_packet packet;  ///< the form of packets; chorale_tuned_plans_choose() returns one
  int32_t reserved;       ///< 0
} chorale_arguments;
#define CHORALE_ARGUMENTS \
  { sizeof(chorale_arguments), 0, 0, 0, 0, CHORALE_OP_OF_PLAN, CHORALE_PACKET_OF_CONFIG, 0 }

/// Collective: creates this rank's executor.
/// \param backend  CHORALE_CPU, CHORALE_CUDA or CHORALE_BACKEND_OF_CONFIG
/// \param device   with CUDA the GPU's number, or CHORALE_CURRENT_DEVICE; a number makes that GPU the current
///                 one of this thread, as cudaSetDevice() does. On the CPU it must be CHORALE_CURRENT_DEVICE
/// \retval CHORALE_INVALID_ARGUMENT if the library was built without the backend, or there is no such GPU
/// \retval CHORALE_FAILED if there is no driver
CHORALE_API chorale_status chorale_executor_create(chorale_world* world, chorale_config* config,
                                                   chorale_backend backend, int32_t device,
                                                   chorale_executor** executor);

/// Collective: binds without running, so that the next chorale_executor_execute() with these arguments only
/// launches. Call it before a CUDA graph captures that launch.
CHORALE_API chorale_status chorale_executor_prepare(chorale_executor* executor, chorale_plan* plan,
                                                    const chorale_arguments* arguments);

/// Collective: runs `plan` once. On the CPU it returns when this rank's part has ended. `out` is then
/// complete, and the status is that of the run. With CUDA it only enqueues on `stream`, a cudaStream_t (null:
/// the default stream); see "Calls" above. The first call with these arguments binds the plan: it allocates
/// the memory that the run needs and exchanges its addresses with the other ranks. After
/// chorale_executor_prepare() a CUDA graph may capture the call. You may close the plan after the call. Two
/// launches of one plan with the same bytes, dtype, op and packets must not run at the same time, whatever
/// their buffers: see executor.hpp.
///
/// After a failed run call chorale_world_reset(), or chorale_world_survivors(), on all ranks.
/// \retval CHORALE_INVALID_ARGUMENT for a plan that this world cannot run, or arguments that the plan does
///         not accept
/// \retval CHORALE_TIMED_OUT, CHORALE_ABORTED, CHORALE_DEADLOCK, CHORALE_PEER_LOST or CHORALE_MISMATCH if the
///         run fails
CHORALE_API chorale_status chorale_executor_execute(chorale_executor* executor, chorale_plan* plan,
                                                    const chorale_arguments* arguments, void* stream);

/// Returns CHORALE_OK, or the error of an earlier run. It never blocks.
CHORALE_API chorale_status chorale_executor_check(chorale_executor* executor);

/// Waits for `stream`, then returns what chorale_executor_check() does. On the CPU there is nothing to wait
/// for.
CHORALE_API chorale_status chorale_executor_synchronize(chorale_executor* executor, void* stream);

/// Allocates zeroed memory that peers reach without a copy, on the CPU or on the executor's GPU. Closing the
/// executor frees it. The call is collective if ranks are processes. `bytes` may differ from rank to rank.
/// \retval CHORALE_RESOURCES if memory runs out
CHORALE_API chorale_status chorale_executor_allocate(chorale_executor* executor, uint64_t bytes,
                                                     void** memory);

/// Closes the executor. Peers write into its memory, so call it only when the launches of all ranks have
/// ended: after chorale_executor_synchronize() and chorale_world_barrier().
CHORALE_API chorale_status chorale_executor_close(chorale_executor* executor);

// -- Plans by size

/// Tuned plans are plans that are chosen by the size of the message. They come from a table that `chorale
/// tune` writes, and from a folder of plans. All ranks must have the same table. Otherwise they may choose
/// different plans, which the executor refuses.
typedef struct chorale_tuned_plans chorale_tuned_plans;

/// Opens a table and its folder of plans.
/// \param table    the path of the table; null if there is none. The choices are then defaults by size
/// \param folder   PREFIX/share/chorale/plans/shipped. The library makes the plans that the folder lacks, and
///                 all of them if it is null
/// \param backend  CHORALE_CPU or CHORALE_CUDA
/// \param device   the GPU's name, "NVIDIA H200", as in the table; null on the CPU
/// \param rank_order  1: for collectives that reduce, choose only plans that add in the order of the ranks,
///                 so that a sum has the same bits in messages of every size; else 0
CHORALE_API chorale_status chorale_tuned_plans_open(const char* table, const char* folder, int32_t ranks,
                                                    chorale_backend backend, const char* device,
                                                    int32_t rank_order, chorale_tuned_plans** plans);

/// Limits the thread blocks of the plans that are chosen from now on. Before the first call the limit is the
/// setting max_blocks of the environment.
/// \param max_blocks  0: any number. All ranks must set the same
CHORALE_API chorale_status chorale_tuned_plans_set_max_blocks(chorale_tuned_plans* plans, int32_t max_blocks);

/// Chooses a plan: the one that the table has for this size, else the one for the next smaller size, else a
/// default.
/// \param collective  "allreduce", "allgather", "reducescatter", "alltoall", "broadcast"
/// \param bytes    counted as in chorale_arguments
/// \param plan     a new handle, which the caller closes; the plan itself is read or made once
/// \param packet   the value for the member `packet` of chorale_arguments. May be null
/// \retval CHORALE_INVALID_ARGUMENT for an unknown collective, or if there is no plan for it, or none within
/// the
///                 limit of thread blocks
CHORALE_API chorale_status chorale_tuned_plans_choose(chorale_tuned_plans* plans, const char* collective,
                                                      uint64_t bytes, chorale_dtype dtype,
                                                      chorale_plan** plan, chorale_packet* packet);

/// Says which plan is chosen and why: "allreduce_one_shot_b128, ll16, as tuned for 65536 bytes of bf16".
CHORALE_API chorale_status chorale_tuned_plans_explain(chorale_tuned_plans* plans, const char* collective,
                                                       uint64_t bytes, chorale_dtype dtype, char** text);

/// Collective: calls chorale_executor_execute() with the plan that is chosen for `arguments`, whose `packet`
/// is ignored. Before a capture, call chorale_executor_prepare() with the chosen plan and packet.
CHORALE_API chorale_status chorale_tuned_plans_execute(chorale_tuned_plans* plans, chorale_executor* executor,
                                                       const char* collective,
                                                       const chorale_arguments* arguments, void* stream);

CHORALE_API chorale_status chorale_tuned_plans_close(chorale_tuned_plans* plans);

// -- Messages

/// An exchange sends and receives messages between this rank and the others of its world. The host knows the
/// sizes of the messages. Messages between two ranks match in order, as with ncclSend() and ncclRecv(), and
/// both ranks must name the same size.
typedef struct chorale_exchange chorale_exchange;

/// Describes the resources of an exchange, which are the same on all ranks. If a member is 0, the library
/// chooses it.
typedef struct chorale_exchange_options {
  uint64_t struct_bytes;     ///< sizeof(chorale_exchange_options)
  uint64_t slot_bytes;       ///< the bytes of a ring's slot, at least 16
  uint32_t slots;            ///< the slots of a ring, at most 256
  uint32_t blocks_per_peer;  ///< the most thread blocks that serve one peer and direction
} chorale_exchange_options;

/// Describes a message to rank `peer`.
typedef struct chorale_send_to {
  const void* data;  ///< any alignment; multiples of 16 are fast. May be null if there are no bytes
  uint64_t bytes;
  int32_t peer;
  int32_t reserved;  ///< 0
} chorale_send_to;

/// Describes a message from rank `peer`.
typedef struct chorale_recv_from {
  void* data;  ///< as in chorale_send_to
  uint64_t bytes;
  int32_t peer;
  int32_t reserved;  ///< 0
} chorale_recv_from;

/// Collective: creates this rank's exchange.
/// \param backend,device  as in chorale_executor_create()
/// \param options  may be null; the library then chooses all options
/// \retval CHORALE_INVALID_ARGUMENT on all ranks, for options that are out of range; otherwise as
///         chorale_executor_create()
/// \retval CHORALE_MISMATCH on all ranks, if the options differ
CHORALE_API chorale_status chorale_exchange_create(chorale_world* world, chorale_config* config,
                                                   chorale_backend backend, int32_t device,
                                                   const chorale_exchange_options* options,
                                                   chorale_exchange** exchange);

/// Moves all messages at once. No message waits for a message of another peer or direction. So all ranks may
/// send to and receive from all ranks, whatever the sizes. Messages of one peer and direction move in the
/// order of the list. When a rank sends a message to itself, the same call must receive it. The memory of a
/// received message must not overlap with the memory of any other message of the call.
///
/// On the CPU it returns when this rank's messages have ended. With CUDA it only enqueues on `stream`, and a
/// CUDA graph may capture it. If two calls have a peer and direction in common, run them on one stream, or
/// order them. After a failure call chorale_world_reset() and chorale_exchange_reset() on all ranks.
/// \param sends, recvs  each may be null if there are none
/// \retval CHORALE_ABORTED on all ranks if sender and receiver name different sizes for a message
/// \retval CHORALE_TIMED_OUT if a peer does not make its call in time
CHORALE_API chorale_status chorale_exchange_run(chorale_exchange* exchange, const chorale_send_to* sends,
                                                uint64_t send_count, const chorale_recv_from* recvs,
                                                uint64_t recv_count, void* stream);

/// Calls chorale_exchange_run() with one message.
CHORALE_API chorale_status chorale_exchange_send(chorale_exchange* exchange, const void* data, uint64_t bytes,
                                                 int32_t peer, void* stream);
CHORALE_API chorale_status chorale_exchange_recv(chorale_exchange* exchange, void* data, uint64_t bytes,
                                                 int32_t peer, void* stream);

/// Do for an exchange what chorale_executor_check() and chorale_executor_synchronize() do for an executor.
CHORALE_API chorale_status chorale_exchange_check(chorale_exchange* exchange);
CHORALE_API chorale_status chorale_exchange_synchronize(chorale_exchange* exchange, void* stream);

/// Collective: clears the rings, so that leftovers of a stopped call are not taken for data. Call it after
/// chorale_world_reset().
CHORALE_API chorale_status chorale_exchange_reset(chorale_exchange* exchange);

/// Closes the exchange, under the same conditions as chorale_executor_close().
CHORALE_API chorale_status chorale_exchange_close(chorale_exchange* exchange);

#ifdef __cplusplus
}
#endif

#endif
