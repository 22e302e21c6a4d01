#include "tools/bench/nccl.hpp"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/library.hpp"

namespace chorale::tools {
namespace {

// These declarations are the part of NCCL's binary interface that we use, so that the build needs neither its
// header nor the library. Its functions return 0 on success.
struct UniqueId {
  char bytes[128];
};
using Comm = struct ncclComm*;
using Stream = struct CUstream_st*;

std::optional<int> type_number(DType type) {
  switch (type) {
    case DType::i8:
      return 0;
    case DType::u8:
      return 1;
    case DType::i32:
      return 2;
    case DType::u32:
      return 3;
    case DType::i64:
      return 4;
    case DType::u64:
      return 5;
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 9;
    case DType::fp8_e4m3:
      return 10;
    case DType::fp8_e5m2:
      return 11;
  }
  return {};
}

int op_number(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return 0;
    case ReduceOp::prod:
      return 1;
    case ReduceOp::max:
      return 2;
    case ReduceOp::min:
      return 3;
    case ReduceOp::avg:
      return 4;
  }
  return 0;
}

/// Looks up the functions of NCCL's library by name.
struct Functions {
  int (*ncclGetVersion)(int*) = nullptr;
  const char* (*ncclGetErrorString)(int) = nullptr;
  int (*ncclGetUniqueId)(UniqueId*) = nullptr;
  int (*ncclCommInitRank)(Comm*, int, UniqueId, int) = nullptr;
  int (*ncclCommDestroy)(Comm) = nullptr;
  int (*ncclCommAbort)(Comm) = nullptr;
  int (*ncclAllReduce)(const void*, void*, size_t, int, int, Comm, Stream) = nullptr;
  int (*ncclReduceScatter)(const void*, void*, size_t, int, int, Comm, Stream) = nullptr;
  int (*ncclAllGather)(const void*, void*, size_t, int, Comm, Stream) = nullptr;
  int (*ncclBroadcast)(const void*, void*, size_t, int, int, Comm, Stream) = nullptr;
  int (*ncclReduce)(const void*, void*, size_t, int, int, int, Comm, Stream) = nullptr;
  int (*ncclSend)(const void*, size_t, int, int, Comm, Stream) = nullptr;
  int (*ncclRecv)(void*, size_t, int, int, Comm, Stream) = nullptr;
  int (*ncclGroupStart)() = nullptr;
  int (*ncclGroupEnd)() = nullptr;
  int (*ncclCommInitRankConfig)(Comm*, int, UniqueId, int, const void*) = nullptr;
  // These are null if the library is too old: symmetric windows came with NCCL 2.27, the all-to-all
  // with 2.28.
  int (*ncclAlltoAll)(const void*, void*, size_t, int, Comm, Stream) = nullptr;
  int (*ncclMemAlloc)(void**, size_t) = nullptr;
  int (*ncclMemFree)(void*) = nullptr;
  int (*ncclCommWindowRegister)(Comm, void*, size_t, void**, int) = nullptr;

  std::string problem;  ///< why NCCL is not available

  /// Returns the library's functions. It loads the library once per process and never unloads it, because
  /// NCCL's threads may still run.
  static const Functions& get() {
    static const Functions functions;
    return functions;
  }

 private:
  Functions() {
    const Library library{"libnccl.so.2"};
    if (!library) {
      problem = "NCCL cannot be loaded: " + library.problem();
      return;
    }
    // A comparison of Chorale with itself would say nothing.
    if (library.find<int()>("chorale_nccl_calls")) {
      problem =
          "the libnccl.so.2 that the loader finds is Chorale's own: take its folder out of LD_LIBRARY_PATH "
          "and LD_PRELOAD";
      return;
    }
#define FIND(name) \
  name = library.find<std::remove_pointer_t<decltype(name)>>(#name); \
  if (!name && problem.empty()) problem = "libnccl.so.2 has no " #name
    FIND(ncclGetVersion);
    FIND(ncclGetErrorString);
    FIND(ncclGetUniqueId);
    FIND(ncclCommInitRank);
    FIND(ncclCommInitRankConfig);
    FIND(ncclCommDestroy);
    FIND(ncclCommAbort);
    FIND(ncclAllReduce);
    FIND(ncclReduceScatter);
    FIND(ncclAllGather);
    FIND(ncclBroadcast);
    FIND(ncclReduce);
    FIND(ncclSend);
    FIND(ncclRecv);
    FIND(ncclGroupStart);
    FIND(ncclGroupEnd);
#undef FIND
#define FIND_IF_THERE(name) name = library.find<std::remove_pointer_t<decltype(name)>>(#name)
    FIND_IF_THERE(ncclAlltoAll);
    FIND_IF_THERE(ncclMemAlloc);
    FIND_IF_THERE(ncclMemFree);
    FIND_IF_THERE(ncclCommWindowRegister);
#undef FIND_IF_THERE
  }
};

/// Describes the beginning of NCCL's configuration of a communicator. NCCL takes its defaults for members
/// that are not defined, and for those after the size.
struct Configuration {
  static constexpr int undefined = INT_MIN;
  size_t size = sizeof(Configuration);
  unsigned magic = 0xcafebeef, version = 22800;
  int blocking = undefined, cga_cluster_size = undefined, min_ctas = undefined, max_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined, traffic_class = undefined;
  const char* name = nullptr;
  int collnet = undefined, cta_policy = undefined;
};

std::string error_text(const char* function, int result) {
  return std::string(function) + ": " + Functions::get().ncclGetErrorString(result);
}

void must(int result, const char* function) {
  if (result) throw RunError(RunError::Reason::other, error_text(function, result));
}

/// Describes one call of a collective.
struct Call {
  const void* in;
  void* out;
  size_t in_elements, out_elements, element_bytes;
  int type, op, ranks;
  Comm comm;
  Stream stream;
};
using Enqueue = void(const Call&);

void all_reduce(const Call& call) {
  must(Functions::get().ncclAllReduce(call.in, call.out, call.in_elements, call.type, call.op, call.comm,
                                      call.stream),
       "ncclAllReduce");
}

void reduce_scatter(const Call& call) {
  must(Functions::get().ncclReduceScatter(call.in, call.out, call.out_elements, call.type, call.op, call.comm,
                                          call.stream),
       "ncclReduceScatter");
}

void all_gather(const Call& call) {
  must(Functions::get().ncclAllGather(call.in, call.out, call.in_elements, call.type, call.comm, call.stream),
       "ncclAllGather");
}

void broadcast(const Call& call) {
  must(Functions::get().ncclBroadcast(call.in, call.out, call.in_elements, call.type, /*root=*/0, call.comm,
                                      call.stream),
       "ncclBroadcast");
}

void reduce(const Call& call) {
  must(Functions::get().ncclReduce(call.in, call.out, call.in_elements, call.type, call.op, /*root=*/0,
                                   call.comm, call.stream),
       "ncclReduce");
}

/// Sends each rank its part of the input. Older versions of NCCL have no all-to-all.
void sends_and_recvs(const Call& call) {
  const Functions& nccl = Functions::get();
  const size_t part = call.in_elements / size_t(call.ranks);
  if (nccl.ncclAlltoAll)
    return must(nccl.ncclAlltoAll(call.in, call.out, part, call.type, call.comm, call.stream),
                "ncclAlltoAll");
  must(nccl.ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < call.ranks; ++peer) {
    const size_t at = size_t(peer) * part * call.element_bytes;
    must(nccl.ncclSend(static_cast<const char*>(call.in) + at, part, call.type, peer, call.comm, call.stream),
         "ncclSend");
    must(nccl.ncclRecv(static_cast<char*>(call.out) + at, part, call.type, peer, call.comm, call.stream),
         "ncclRecv");
  }
  must(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

/// Returns the function that enqueues NCCL's call of a collective. Returns null if NCCL has none.
Enqueue* enqueue_of(std::string_view collective) {
  constexpr Enqueue* none = nullptr;
#define CHORALE_COLLECTIVE(word, input, output, holds, at, in_place, nccl) \
  if (collective == #word) return nccl;
#include "chorale/collectives.def"
  return none;
}

}  // namespace

struct Nccl::State {
  Comm comm = nullptr;
  int ranks = 1;
  std::vector<void*> symmetric;  ///< memory from ncclMemAlloc()
};

void quieten_nccl() { ::setenv("NCCL_NVLS_ENABLE", "0", 0); }

const char* variable_for_ctas() {
  for (const char* const name :
       {"NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS"})
    if (std::getenv(name)) return name;
  return nullptr;
}

std::string multicast_words(const char* nvls) {
  if (!nvls) return "NVLink multicast as NCCL chooses";
  // NCCL reads the variable in the same way: an empty one counts as unset, and a word that is not a number as
  // 0.
  if (*nvls && std::strtoll(nvls, nullptr, 0) == 0) return "NVLink multicast off";
  return "NVLink multicast as NCCL_NVLS_ENABLE=" + std::string(nvls) + " has it";
}

Nccl::Nccl(std::unique_ptr<State> state) : state_(std::move(state)) {}

Nccl::~Nccl() {
  // We abort and do not destroy, because ncclCommDestroy() waits for work that may never end if a rank has
  // failed.
  if (state_->comm) Functions::get().ncclCommAbort(state_->comm);
  for (void* const memory : state_->symmetric) Functions::get().ncclMemFree(memory);
}

std::unique_ptr<Nccl> Nccl::join(World& world, std::string& why, Policy policy, uint32_t max_ctas) {
  const Functions& nccl = Functions::get();
  const auto all_well = [&](const std::string& problem) {
    try {
      world.agree(problem.empty() ? std::nullopt : std::optional(problem), RunError::Reason::resources);
      return true;
    } catch (const RunError& error) {
      why = error.what();
      world.check();
      return false;
    }
  };
  if (!all_well(nccl.problem)) return nullptr;
  UniqueId id = {};
  std::string problem;
  if (world.rank() == 0) {
    if (const int result = nccl.ncclGetUniqueId(&id)) problem = error_text("ncclGetUniqueId", result);
  }
  if (!all_well(problem)) return nullptr;
  const auto ids = world.allgather(std::as_bytes(std::span(&id, 1)));
  std::memcpy(&id, ids[0].data(), sizeof id);
  auto state = std::make_unique<State>();
  state->ranks = world.ranks();
  Configuration configuration;
  if (policy == Policy::zero_cta) configuration.cta_policy = 2;  // NCCL_CTA_POLICY_ZERO
  if (max_ctas != 0) configuration.max_ctas = int(max_ctas);
  if (const int result =
          policy == Policy::normal && max_ctas == 0
              ? nccl.ncclCommInitRank(&state->comm, world.ranks(), id, world.rank())
              : nccl.ncclCommInitRankConfig(&state->comm, world.ranks(), id, world.rank(), &configuration)) {
    problem = error_text("making a communicator", result);
    state->comm = nullptr;
  }
  std::unique_ptr<Nccl> made(new Nccl(std::move(state)));
  return all_well(problem) ? std::move(made) : nullptr;
}

std::byte* Nccl::allocate_symmetric(World& world, uint64_t bytes) {
  const Functions& nccl = Functions::get();
  const auto agree = [&](const std::string& problem) {
    world.agree(problem.empty() ? std::nullopt : std::optional(problem), RunError::Reason::resources);
  };
  if (!nccl.ncclMemAlloc || !nccl.ncclMemFree || !nccl.ncclCommWindowRegister)
    throw UsageError("NCCL " + version() + " has no symmetric windows, which came with NCCL 2.27");
  void* memory = nullptr;
  std::string problem;
  if (const int result = nccl.ncclMemAlloc(&memory, bytes)) {
    problem = error_text("ncclMemAlloc", result);
  } else {
    state_->symmetric.push_back(memory);
  }
  agree(problem);
  constexpr int symmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
  void* window = nullptr;
  if (const int result = nccl.ncclCommWindowRegister(state_->comm, memory, bytes, &window, symmetric))
    problem = error_text("ncclCommWindowRegister", result);
  agree(problem);
  return static_cast<std::byte*>(memory);
}

std::string Nccl::refuses(const std::string& collective, bool in_place, DType type) {
  Enqueue* const call = enqueue_of(collective);
  if (!call) return "NCCL has no '" + collective + "'";
  if (call == sends_and_recvs && in_place) return "NCCL's sends and receives cannot be in place";
  if (!type_number(type)) return std::string("NCCL has no type ") + dtype_name(type);
  return "";
}

void Nccl::enqueue(const std::string& collective, const void* in, void* out, MessageSizes sizes, DType dtype,
                   ReduceOp op, void* on) {
  const uint64_t width = dtype_size(dtype);
  enqueue_of(collective)({in, out, sizes.input / width, sizes.output / width, width, *type_number(dtype),
                          op_number(op), state_->ranks, state_->comm, static_cast<Stream>(on)});
}

void Nccl::exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* on) {
  const Functions& nccl = Functions::get();
  const int type = *type_number(DType::u8);
  const Stream stream = static_cast<Stream>(on);
  must(nccl.ncclGroupStart(), "ncclGroupStart");
  for (const SendTo& send : sends)
    must(nccl.ncclSend(send.data, send.bytes, type, send.peer, state_->comm, stream), "ncclSend");
  for (const RecvFrom& recv : recvs)
    must(nccl.ncclRecv(recv.data, recv.bytes, type, recv.peer, state_->comm, stream), "ncclRecv");
  must(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

std::string Nccl::version() const {
  int number = 0;
  must(Functions::get().ncclGetVersion(&number), "ncclGetVersion");
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

}  // namespace chorale::tools
