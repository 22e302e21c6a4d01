/// \file
/// Defines what the hand-written all-reduces share.
#pragma once

#include <cstdint>

#include "allreduce.hpp"
#include "chorale/device.hpp"

namespace chorale::handwritten {

using P = LL16;

/// Describes one launch with `Ranks` ranks, as a thread sees it.
template <uint32_t Ranks>
struct Run {
  static constexpr uint32_t peers = Ranks - 1;

  const AllReduce& with;
  uint64_t epoch;
  Group group;  ///< all threads of the grid, over which the units rotate wherever the message ends

  CHORALE_FN explicit Run(const AllReduce& with)
      : with(with), epoch(with.epochs[blockIdx.x] + 1), group(block_group()) {
    group.rank += blockIdx.x * blockDim.x;
    group.size *= gridDim.x;
  }

  CHORALE_FN uint32_t flag() const { return uint32_t(epoch); }

  /// Returns the offset of the bank that this launch uses, of two.
  CHORALE_FN uint64_t bank(uint64_t bytes) const { return epoch % 2 * bytes; }

  /// Returns the peer of this rank's k-th step. No two ranks start with the same peer.
  CHORALE_FN uint32_t peer(uint32_t k) const {
    const uint32_t peer = with.rank + 1 + k;
    return peer < Ranks ? peer : peer - Ranks;
  }

  CHORALE_FN Packets<P> packets(uint32_t rank, uint64_t offset) const {
    return Packets<P>(static_cast<void*>(with.scratch[rank] + offset), flag(), &with.deadline);
  }

  /// Ends the launch. All threads of a block call it with the same verdict, and have synchronised since the
  /// launch began.
  CHORALE_FN void leave(Stop stop) const {
    if (threadIdx.x != 0) return;
    if (stop == Stop::none) {
      with.epochs[blockIdx.x] = epoch;
    } else if (with.deadline.shared) {
      raise_stop(with.deadline.shared, stop, with.rank);
    }
  }
};

/// Writes to the same place in the scratch of every peer.
template <uint32_t Ranks>
struct ToPeers {
  const Run<Ranks>& run;
  uint64_t offset;

  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t k = 0; k < run.peers; ++k) {
      run.packets(run.peer(k), offset).template write<Whole, N>(turn, from);
    }
  }
};

/// Adds this rank's data from memory and the peers' data from packets, in rank order. The slot of sender s is
/// at `offset` + s * `slot` in this rank's scratch.
template <class T, uint32_t Ranks>
struct InRankOrder {
  const Run<Ranks>& run;
  Mem mine;
  uint64_t offset, slot;

  static constexpr bool waits = true;
  static constexpr uint32_t at_once = 1;

  CHORALE_FN bool whole(uint64_t bytes) const { return mine.whole(bytes); }
  CHORALE_FN bool may_take_several() const { return false; }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    static_assert(N == 1);
    const uint32_t rank = run.with.rank;
    mine.template read<Whole, N>(group, turn, to);
    PacketWords held[run.peers][N];
    const Stop stop = Packets<P>::gather<Whole, run.peers, N>(
        group, turn, run.peers,
        [this, rank](uint32_t peer) {
          return run.packets(rank, offset + (peer < rank ? peer : peer + 1) * slot);
        },
        held);
    if (stop != Stop::none) return stop;
    detail::Sum<ReduceOp::sum, T> sum;
#pragma unroll
    for (uint32_t from = 0; from < Ranks; ++from) {
      const Unit before = unit_of(held[from != 0 ? from - 1 : 0][0]);
      const Unit at = unit_of(held[from != run.peers ? from : 0][0]);
      Unit next = to[0];
      if (from != rank) next = from < rank ? at : before;
      if (from == 0) {
        sum.start(next);
      } else {
        sum.add(next);
      }
    }
    to[0] = sum.finish(0);
    return Stop::none;
  }
};

/// Returns the kernel that `of` gives for the type and the number of ranks. There is one kernel for each
/// number, so that a unit of every peer has its own register.
template <class Of>
const void* choose(const AllReduce& with, DType dtype, const Of& of) {
  const auto with_type = [&](auto tag) -> const void* {
    using T = typename decltype(tag)::type;
    switch (with.ranks) {
      case 2:
        return of.template kernel<T, 2>();
      case 4:
        return of.template kernel<T, 4>();
      case 8:
        return of.template kernel<T, 8>();
    }
    return nullptr;
  };
  if (dtype == DType::f32) return with_type(TypeTag<float>{});
  if (dtype == DType::bf16) return with_type(TypeTag<bf16>{});
  return nullptr;
}

inline cudaError_t launch(const void* kernel, const AllReduce& with, const void* in, void* out,
                          uint64_t bytes, cudaStream_t stream) {
  if (!kernel || bytes > with.capacity || with.threads > most_threads) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaSuccess;
  void* arguments[] = {const_cast<AllReduce*>(&with), &in, &out, &bytes};
  return cudaLaunchKernel(kernel, dim3(with.blocks), dim3(with.threads), arguments, 0, stream);
}

}  // namespace chorale::handwritten
