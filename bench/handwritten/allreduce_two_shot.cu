// Runs all-reduce in two exchanges: every rank sends part r to rank r, which adds the parts up and sends the
// sum to all. plans/allreduce_two_shot.cpp says why two banks of packets are enough. A thread sends, sums and
// unpacks the same units of every part, so the threads need no synchronisation between the exchanges.

#include "allreduce.cuh"

namespace chorale::handwritten {
namespace {

/// Returns the bytes of a part of a message, in whole units. The last parts may be short or empty. Ranks send
/// all packets of each part anyway, so that every rank receives something from every other rank.
CHORALE_HD uint64_t part_bytes(uint32_t ranks, uint64_t bytes) {
  return (units_of(bytes) + ranks - 1) / ranks * unit_bytes;
}

struct Parts {
  char* data;
  uint64_t bytes, part;

  CHORALE_FN Mem operator[](uint32_t rank) const {
    const uint64_t first = rank * part;
    return Mem(static_cast<void*>(data + first), first < bytes ? bytes - first : 0);
  }
};

/// Calls step(turn) for each of the thread's units of a part.
template <uint32_t Ranks, class Step>
CHORALE_FN Stop each_unit(const Run<Ranks>& run, uint64_t part, const Step& step) {
  for (uint64_t unit = run.group.rank; unit < part / unit_bytes; unit += run.group.size) {
    const Stop stop = step(Turn{unit, run.group.size, 1, unit_bytes});
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Gives the number of peers that a thread serves at once. If units are whole, that is all peers. Otherwise
/// it serves one after the other, to keep that code short.
template <bool Whole, uint32_t Ranks>
constexpr uint32_t together = Whole ? Ranks - 1 : 1;

/// Sends each part to its owner. `Whole` means that all units of all parts exist and are aligned.
template <bool Whole, uint32_t Ranks>
CHORALE_FN void send_parts(const Run<Ranks>& run, const Parts& in, uint64_t offset) {
  constexpr uint32_t K = together<Whole, Ranks>;
#pragma unroll 1
  for (uint32_t first = 0; first < run.peers; first += K) {
    each_unit(run, in.part, [&](const Turn& turn) {
      Unit held[K][1];
      Mem::gather<Whole, K, 1>(
          run.group, turn, K, [&](uint32_t k) { return in[run.peer(first + k)]; }, held);
#pragma unroll
      for (uint32_t k = 0; k < K; ++k) {
        run.packets(run.peer(first + k), offset).template write<Whole, 1>(turn, held[k]);
      }
      return Stop::none;
    });
  }
}

/// Receives the owners' sums and stores them in place.
template <bool Whole, uint32_t Ranks>
CHORALE_FN Stop receive_sums(const Run<Ranks>& run, const Parts& out, uint64_t offset, uint64_t slot) {
  constexpr uint32_t K = together<Whole, Ranks>;
  Stop stop = Stop::none;
#pragma unroll 1
  for (uint32_t first = 0; first < run.peers && stop == Stop::none; first += K) {
    stop = each_unit(run, out.part, [&](const Turn& turn) {
      PacketWords held[K][1];
      const Stop stopped = Packets<P>::gather<Whole, K, 1>(
          run.group, turn, K,
          [&](uint32_t k) { return run.packets(run.with.rank, offset + run.peer(first + k) * slot); }, held);
      if (stopped != Stop::none) return stopped;
#pragma unroll
      for (uint32_t k = 0; k < K; ++k) {
        const Unit unit[1] = {unit_of(held[k][0])};
        out[run.peer(first + k)].template write<Whole, 1>(turn, unit);
      }
      return Stop::none;
    });
  }
  return stop;
}

template <class T, uint32_t Ranks>
__global__ void __launch_bounds__(most_threads, 1)
    two_shot(const __grid_constant__ AllReduce with, char* in_data, char* out_data, uint64_t bytes) {
  const Run<Ranks> run(with);
  const uint64_t part = part_bytes(Ranks, bytes);
  const uint64_t slot = packet_bytes<P>(part_bytes(Ranks, with.capacity));
  const uint64_t parts = run.bank(2 * Ranks * slot), sums = parts + Ranks * slot;
  const Parts in{in_data, bytes, part}, out{out_data, bytes, part};
  const bool whole = bytes == part * Ranks && Mem(in_data).whole(bytes) && Mem(out_data).whole(bytes);

  if (whole) {
    send_parts<true>(run, in, parts + with.rank * slot);
  } else {
    send_parts<false>(run, in, parts + with.rank * slot);
  }
  Stop stop = transfer(run.group, part, InRankOrder<T, Ranks>{run, in[with.rank], parts, slot},
                       Tee{out[with.rank], ToPeers<Ranks>{run, sums + with.rank * slot}});
  if (stop == Stop::none) {
    stop = whole ? receive_sums<true>(run, out, sums, slot) : receive_sums<false>(run, out, sums, slot);
    stop = run.group.agree(stop);
  }
  run.leave(stop);
}

struct TwoShot {
  template <class T, uint32_t Ranks>
  const void* kernel() const {
    return reinterpret_cast<const void*>(&two_shot<T, Ranks>);
  }
};

}  // namespace

uint64_t two_shot_scratch_bytes(uint32_t ranks, uint64_t capacity) {
  return 4 * ranks * packet_bytes<P>(part_bytes(ranks, capacity));
}

cudaError_t launch_two_shot(const AllReduce& with, const void* in, void* out, uint64_t bytes, DType dtype,
                            cudaStream_t stream) {
  return launch(choose(with, dtype, TwoShot{}), with, in, out, bytes, stream);
}

}  // namespace chorale::handwritten
