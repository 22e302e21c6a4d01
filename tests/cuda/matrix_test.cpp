// Compares every shipped algorithm on GPUs with the oracle, bit for bit, with one process per GPU. The oracle
// is the one of the CPU's matrix, which the CPU backend equals, so the backends equal each other.
//
//   matrix_test [--ranks N] [--filter TEXT] [--dtypes LIST] [--packet FORM] [--quick] [--share-gpus]
//
// With --share-gpus, if there are fewer GPUs than ranks, several ranks share one and take turns on it.
//
// Each case is five runs with new data and no host synchronisation between them. They are launched one by
// one, and then as one launch that is captured in a CUDA graph and replayed.

#include "tests/cpu/matrix.hpp"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace matrix;

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
}

/// Holds device memory for all cases of a process. It is larger than any of them.
class Arena {
 public:
  explicit Arena(size_t bytes) { must(cudaMalloc(&memory_, bytes), "cudaMalloc"); }
  ~Arena() { cudaFree(memory_); }
  Arena(const Arena&) = delete;
  std::byte* at(size_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  void* memory_ = nullptr;
};

constexpr size_t guard = 64;
constexpr std::byte canary{0xc5}, fresh{0xee};
constexpr size_t arena_bytes = size_t(3) << 30;

size_t up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Runs one rank's part of a case.
/// \return the error; empty: none
std::string run_rank_on_gpu(chorale::Executor& executor, size_t rank, const Case& of, const Prepared& all,
                            const Arena& arena, cudaStream_t stream, bool graph) {
  const size_t input_bytes = all.inputs[0][rank].size(), output_bytes = all.outputs[0][rank].size();
  const std::string& collective = of.built->setting.collective;
  const size_t first_bytes = of.alias ? std::max(input_bytes, output_bytes) : output_bytes;
  const size_t second_bytes = of.alias ? 0 : input_bytes;
  // A guarded buffer has a guard, the shift, the bytes, and a guard.
  const size_t first_room = up(2 * guard + of.shift + first_bytes),
               second_room = up(2 * guard + of.shift + second_bytes);
  std::byte* const rooms = arena.at(0);
  std::byte* const first = rooms + guard + of.shift;
  std::byte* const second = rooms + first_room + guard + of.shift;
  std::byte* const output = first + (of.alias && collective == "reducescatter" ? rank * of.size : 0);
  std::byte* const input = of.alias ? first + (collective == "allgather" ? rank * of.size : 0) : second;

  // There is memory for the new data of each run and for its results.
  std::byte* const fed = rooms + first_room + second_room;
  const size_t fed_room = up(input_bytes), kept_room = first_room + second_room;
  std::byte* const kept = fed + size_t(of.runs) * fed_room;
  if (size_t(kept - rooms) + size_t(of.runs) * kept_room > arena_bytes) return "the arena is too small";
  for (int run = 0; run < of.runs; ++run) {
    const Bytes& data = all.inputs[size_t(run)][rank];
    must(cudaMemcpyAsync(fed + size_t(run) * fed_room, data.data(), data.size(), cudaMemcpyHostToDevice,
                         stream),
         "H2D");
  }
  must(cudaMemsetAsync(rooms, int(canary), first_room + second_room, stream), "guards");

  chorale::Arguments arguments{.in = input, .out = output, .bytes = std::max(input_bytes, output_bytes)};
  if (output_bytes == 0 && !of.alias) arguments.out = nullptr;  // this rank gets no result
  arguments.dtype = of.type;
  arguments.packet = of.packet;
  if (chorale::collective_reduces(collective)) arguments.op = of.op;
  cudaGraphExec_t replay = nullptr;
  if (graph) {
    executor.prepare(of.built->plan, arguments);
    cudaGraph_t captured = nullptr;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    executor.execute(of.built->plan, arguments, stream);
    must(cudaStreamEndCapture(stream, &captured), "end of the capture");
    must(cudaGraphInstantiate(&replay, captured, 0), "instantiation");
    must(cudaGraphDestroy(captured), "graph");
  }
  for (int run = 0; run < of.runs; ++run) {
    must(cudaMemsetAsync(first, int(fresh), first_bytes, stream), "output");
    must(cudaMemcpyAsync(input, fed + size_t(run) * fed_room, input_bytes, cudaMemcpyDeviceToDevice, stream),
         "input");
    if (graph) {
      must(cudaGraphLaunch(replay, stream), "replay");
    } else {
      executor.execute(of.built->plan, arguments, stream);
    }
    must(cudaMemcpyAsync(kept + size_t(run) * kept_room, rooms, kept_room, cudaMemcpyDeviceToDevice, stream),
         "result");
  }
  executor.synchronize(stream);
  if (replay) cudaGraphExecDestroy(replay);

  std::vector<std::byte> seen(kept_room);
  for (int run = 0; run < of.runs; ++run) {
    must(cudaMemcpy(seen.data(), kept + size_t(run) * kept_room, kept_room, cudaMemcpyDeviceToHost), "D2H");
    const Bytes& data = all.inputs[size_t(run)][rank];
    std::string wrong = difference(seen.data() + (output - rooms), all.outputs[size_t(run)][rank], of.type);
    if (wrong.empty() && !of.alias) {
      wrong = difference(seen.data() + (input - rooms), data, of.type);
      if (!wrong.empty()) wrong = "input changed: " + wrong;
    }
    const auto guarded = [&](size_t from, size_t to) {
      return std::all_of(seen.begin() + long(from), seen.begin() + long(to),
                         [](std::byte one) { return one == canary; });
    };
    const size_t second_at = first_room;
    if (wrong.empty() &&
        !(guarded(0, guard + of.shift) && guarded(guard + of.shift + first_bytes, first_room) &&
          guarded(second_at, second_at + guard + of.shift) &&
          guarded(second_at + guard + of.shift + second_bytes, second_at + second_room))) {
      wrong = "bytes beside a buffer were written";
    }
    if (!wrong.empty()) return "run " + std::to_string(run) + (graph ? " of a graph" : "") + ": " + wrong;
  }
  return "";
}

std::string wanted_dtypes;  ///< comma-separated; empty: all
std::string packet_form;    ///< empty: all in turn
bool share_gpus = false;

std::vector<DType> types_of(size_t size) {
  std::vector<DType> types;
  for (DType type : chorale::all_dtypes) {
    const bool wanted =
        wanted_dtypes.empty() ||
        ("," + wanted_dtypes + ",").find("," + std::string(chorale::dtype_name(type)) + ",") !=
            std::string::npos;
    if (wanted && size % chorale::dtype_size(type) == 0) types.push_back(type);
  }
  return types;
}

/// Returns cases of every size. Small sizes use all element types and operators, large ones use them in turn.
/// With more than two ranks operators are used in turn, unless element types are named, because more ranks
/// change the traffic, but not how elements are added.
std::vector<Case> cases_of(const Algorithm& algorithm, int ranks, bool quick) {
  std::vector<Case> cases;
  const Built& built = build(algorithm, ranks);
  const std::vector<ReduceOp> ops =
      reduces(algorithm)
          ? std::vector<ReduceOp>(std::begin(chorale::all_reduce_ops), std::end(chorale::all_reduce_ops))
          : std::vector<ReduceOp>{ReduceOp::sum};
  uint64_t seed = 0;
  const auto add = [&](size_t size, DType type, ReduceOp op, bool other, size_t shift) {
    ++seed;
    Case of{.built = &built,
            .type = type,
            .op = op,
            .size = size,
            .alias = built.inplace != other,
            .shift = shift,
            .seed = seed};
    of.packet = PacketForm(seed % std::size(chorale::packet_form_names));
    for (size_t form = 0; form < std::size(chorale::packet_form_names); ++form) {
      if (packet_form == chorale::packet_form_names[form]) of.packet = PacketForm(form);
    }
    cases.push_back(of);
  };
  for (size_t size : {size_t{4}, size_t{17}, size_t{1000}, size_t{4100}}) {
    if (quick && size != 1000) continue;
    for (DType type : types_of(size)) {
      const ReduceOp in_turn = ops[cases.size() % ops.size()];
      for (ReduceOp op : ops) {
        if (quick && (type != DType::bf16 || op == ReduceOp::prod)) continue;
        if (ranks > 2 && wanted_dtypes.empty() && op != in_turn) continue;
        add(size, type, op, false, 0);
      }
    }
  }
  uint64_t turn = 0;
  // Sizes are those of one rank's part. They are smaller for more ranks, because otherwise the oracle would
  // take minutes.
  const size_t largest = (16 << 20) / size_t(ranks) + 4;
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{65536}, size_t{(1 << 20) + 12}, largest}) {
    const std::vector<DType> types = types_of(size);
    if (types.empty()) continue;
    for (const bool other : {false, true}) {
      ++turn;
      const DType type = types[turn % types.size()];
      if (quick && size > (1 << 20)) continue;
      add(size, type, ops[turn / 2 % ops.size()], other, turn % 2 * chorale::dtype_size(type));
    }
  }
  return cases;
}

/// Runs all cases of one rank.
/// \return how many failed
int run_all(int rank, int ranks, const std::string& address, const std::string& filter, bool quick) {
  int failed = 0, done = 0;
  try {
    int devices = 0;
    must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices < (share_gpus ? 1 : ranks)) {
      throw std::runtime_error(std::to_string(ranks) + " GPUs needed, found: " + std::to_string(devices) +
                               (devices == 0 ? "" : "; let several ranks have one with --share-gpus"));
    }
    must(cudaSetDevice(rank % devices), "cudaSetDevice");
    chorale::Config config = chorale::Config::load();
    config.backend = "cuda";
    chorale::World world = chorale::World::join(address, rank, ranks, config.join());
    chorale::Executor executor(world, config);
    const Arena arena(arena_bytes);
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    for (const Algorithm& algorithm : algorithms()) {
      if (std::find(algorithm.ranks.begin(), algorithm.ranks.end(), ranks) == algorithm.ranks.end()) continue;
      if (algorithm.name.find(filter) == std::string::npos) continue;
      int wrong_here = 0, cases = 0;
      for (const Case& of : cases_of(algorithm, ranks, quick)) {
        const Prepared all = prepare(of);
        for (const bool graph : {false, true}) {
          const std::string wrong =
              of.size == 0 && graph ? ""
                                    : run_rank_on_gpu(executor, size_t(rank), of, all, arena, stream, graph);
          ++cases;
          if (wrong.empty()) continue;
          ++wrong_here;
          if (wrong_here <= 3)
            std::printf("FAILED rank %d: %s: %s\n", rank, describe(of).c_str(), wrong.c_str());
          std::fflush(stdout);
        }
      }
      world.barrier();
      if (rank == 0)
        std::printf("%s%s: %d cases of 5 runs\n", algorithm.name.c_str(), algorithm.inplace ? " inplace" : "",
                    cases);
      std::fflush(stdout);
      failed += wrong_here;
      done += cases;
    }
    executor.synchronize(stream);
    world.barrier();
  } catch (const std::exception& error) {
    std::printf("FAILED rank %d: %s\n", rank, error.what());
    std::fflush(stdout);
    return failed + 1;
  }
  return failed + (done == 0);
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2;
  bool quick = false;
  std::string filter;
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--quick") quick = true;
    if (word == "--share-gpus") share_gpus = true;
    if (word == "--ranks" && at + 1 < argc) ranks = std::atoi(argv[++at]);
    if (word == "--dtypes" && at + 1 < argc) wanted_dtypes = argv[++at];
    if (word == "--packet" && at + 1 < argc) packet_form = argv[++at];
    if (word == "--filter" && at + 1 < argc) filter = argv[++at];
  }
  const std::string address = "shm://cuda-matrix-" + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());  // before any call of CUDA
    if (children.back() == 0) _exit(run_all(rank, ranks, address, filter, quick) != 0);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  std::printf("%s: %d of %d ranks\n", failed ? "FAILED" : "passed", failed ? failed : ranks, ranks);
  return failed != 0;
}
