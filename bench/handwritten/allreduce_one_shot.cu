// Runs all-reduce in one exchange: every rank sends its whole input to every peer and adds up the inputs that
// it receives. plans/allreduce_one_shot.cpp says why two banks of packets are enough.

#include "allreduce.cuh"

namespace chorale::handwritten {
namespace {

template <class T, uint32_t Ranks>
__global__ void __launch_bounds__(most_threads, 1)
    one_shot(const __grid_constant__ AllReduce with, const char* in, char* out, uint64_t bytes) {
  const Run<Ranks> run(with);
  const uint64_t slot = packet_bytes<P>(with.capacity), bank = run.bank(Ranks * slot);
  transfer(run.group, bytes, Mem(in), ToPeers<Ranks>{run, bank + with.rank * slot});
  run.leave(transfer(run.group, bytes, InRankOrder<T, Ranks>{run, Mem(in), bank, slot}, Mem(out)));
}

struct OneShot {
  template <class T, uint32_t Ranks>
  const void* kernel() const {
    return reinterpret_cast<const void*>(&one_shot<T, Ranks>);
  }
};

}  // namespace

uint64_t one_shot_scratch_bytes(uint32_t ranks, uint64_t capacity) {
  return 2 * ranks * packet_bytes<P>(capacity);
}

cudaError_t launch_one_shot(const AllReduce& with, const void* in, void* out, uint64_t bytes, DType dtype,
                            cudaStream_t stream) {
  return launch(choose(with, dtype, OneShot{}), with, in, out, bytes, stream);
}

}  // namespace chorale::handwritten
