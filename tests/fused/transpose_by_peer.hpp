#pragma once
#include <chorale/device.hpp>
#include <cstdint>

/// Does the work of TransposeAllToAll with separate blocks for each peer, so that no peer waits for another.
template <class T>
struct TransposeByPeer {
  chorale::EndpointTable table;
  const T* in;
  T* out;
  uint32_t rows, cols;

  /// Describes a group's part in the exchange with one peer. Groups are split evenly among the `ranks` peers.
  struct Work {
    int32_t peer;
    chorale::Group group;
    chorale::Leg leg;
  };
  CHORALE_FN Work work_of(const chorale::Group& group) const {
    const chorale::Split part = group.split(uint32_t(table.ranks));
    const int32_t peer = (table.self + int32_t(part.part)) % table.ranks;
    chorale::Leg leg;
    leg.bytes = uint64_t(rows) * cols * sizeof(T);
    leg.in = in + uint64_t(peer) * cols;
    leg.out = out + uint64_t(peer) * rows * cols;
    leg.elem = sizeof(T);
    leg.shard = uint32_t(peer);
    leg.rows = rows;
    leg.cols = cols;
    leg.in_strides = {uint64_t(cols) * uint32_t(table.ranks), 1};
    return {peer, part.group, leg};
  }
};

/// Sends long messages: half of a peer's blocks send, the other half receive. It needs a multiple of 2 *
/// ranks blocks.
template <class T>
struct TransposeTilesByPeer : TransposeByPeer<T> {
  uint32_t tile_cols;  ///< columns of `in` in a tile, which fit in a slot

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    typename TransposeByPeer<T>::Work work = this->work_of(group);
    work.leg.tile_bytes = uint64_t(tile_cols) * this->rows * sizeof(T);
    const chorale::Split role = work.group.split_interleaved(2);
    const chorale::Leg share = share_of(work.leg, role.group.id, role.group.count);
    const chorale::Endpoint& e = this->table.at(work.peer, role.group.id);
    return chorale::with_link(e, [&](auto fabric) {
      if (role.part != 0) {
        return chorale::recv_tiles<T, decltype(fabric)>(role.group, e, share, chorale::CopyConsume{},
                                                        deadline);
      }
      const chorale::Stop stop = chorale::send_tiles<T, decltype(fabric)>(
          role.group, e, share, chorale::TransposeTiles<T>{}, deadline);
      return stop != chorale::Stop::none ? stop : decltype(fabric)::drain(role.group, e, deadline);
    });
  }
};

/// Sends short messages, as packets. It needs a multiple of `ranks` blocks.
template <class T, class P = chorale::LL16>
struct TransposePackets : TransposeByPeer<T> {
  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    const typename TransposeByPeer<T>::Work work = this->work_of(group);
    const chorale::Leg share = share_of(work.leg, work.group.id, work.group.count);
    const chorale::Endpoint& e = this->table.at(work.peer, work.group.id);
    const chorale::Stop stop =
        chorale::send_packets<P, T>(work.group, e, share, chorale::TransposeProduce<T>{}, deadline);
    if (stop != chorale::Stop::none) return stop;
    return chorale::recv_packets<P, T>(work.group, e, share, chorale::CopyConsume{}, deadline);
  }
};
