/// \file
/// These functions run the steps of a program that encode and decode. They are in a separate kernel, so that
/// the other kernels need no registers for them.
#pragma once

#include <cstdint>

#include "chorale/device/codec.hpp"
#include "chorale/device/threads.hpp"
#include "interpreter.cuh"

namespace chorale::cuda {

/// Works on one block of elements of type T, which are encoded as E. A warp holds the block: lane l has
/// elements 4 l to 4 l + 3 of every 128, which Rounds counts.
template <class T, class E, uint32_t Rounds>
class CodedBlock {
 public:
  static constexpr uint32_t per_lane = 4, per_warp = per_lane * detail::warp_threads, rounds = Rounds;
  using Values = float[rounds][per_lane];

  /// \param at  the first byte of the plain block, from the start of the step
  /// \param n  the elements of the block that the step moves
  /// \param whole  all plain places are aligned, and their elements exist
  CHORALE_FN CodedBlock(const Group& group, uint32_t block, uint64_t at, uint32_t n, bool whole)
      : lane_(group.rank % detail::warp_threads), block_(block), at_(at), n_(n), whole_(whole) {}

  /// Calls each(value, element) for the lane's elements of a source.
  template <class Each>
  CHORALE_FN void read(const Mem& from, Values& values, const Each& each) const {
    const bool encoded = from.valid == ProgramPlace::encoded;
    const float scale = encoded ? *reinterpret_cast<const float*>(from.data + at_ + block_) : 0.0f;
#pragma unroll
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t item = round * per_warp + lane_ * per_lane;
      if (item >= n_) continue;
      float element[per_lane];
      if (encoded) {
        const Pack<E, per_lane> held = *reinterpret_cast<const Pack<E, per_lane>*>(from.data + at_ + item);
#pragma unroll
        for (uint32_t k = 0; k < per_lane; ++k) element[k] = decoded(held.item[k], scale);
      } else {
        const Pack<T, per_lane> held = load(from, item);
#pragma unroll
        for (uint32_t k = 0; k < per_lane; ++k) element[k] = widen(held.item[k]);
      }
#pragma unroll
      for (uint32_t k = 0; k < per_lane; ++k) each(values[round][k], element[k]);
    }
  }

  /// Rounds the elements to T, and returns the largest magnitude of the block in all lanes.
  CHORALE_FN float round(Values& values) const {
    float largest = 0;
#pragma unroll
    for (uint32_t round = 0; round < rounds; ++round) {
      if (round * per_warp + lane_ * per_lane >= n_) continue;
#pragma unroll
      for (uint32_t k = 0; k < per_lane; ++k) {
        values[round][k] = widen(narrow<T>(values[round][k]));
        if (round * per_warp + lane_ * per_lane + k < n_)
          largest = larger_magnitude(largest, values[round][k]);
      }
    }
    return detail::over_lanes(largest, detail::warp_threads,
                              [](float a, float b) { return combine<ReduceOp::max>(a, b); });
  }

  CHORALE_FN void write(const Mem& to, const Values& values, float scale) const {
    const bool encodes = to.valid == ProgramPlace::encoded;
#pragma unroll
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t item = round * per_warp + lane_ * per_lane;
      if (item >= n_) continue;
      if (encodes) {
        Pack<E, per_lane> held;
#pragma unroll
        for (uint32_t k = 0; k < per_lane; ++k) held.item[k] = encoded<E>(values[round][k], scale);
        *reinterpret_cast<Pack<E, per_lane>*>(to.data + at_ + item) = held;
      } else {
        Pack<T, per_lane> held;
#pragma unroll
        for (uint32_t k = 0; k < per_lane; ++k) held.item[k] = narrow<T>(values[round][k]);
        store(to, item, held);
      }
    }
    if (encodes && lane_ == 0) *reinterpret_cast<float*>(to.data + at_ + block_) = scale;
  }

  /// Copies an encoded block as it is.
  CHORALE_FN void copy(const Mem& from, const Mem& to) const {
    for (uint32_t item = lane_ * per_lane; item < n_; item += per_warp)
      *reinterpret_cast<uint32_t*>(to.data + at_ + item) =
          *reinterpret_cast<const uint32_t*>(from.data + at_ + item);
    if (lane_ == 0)
      *reinterpret_cast<uint32_t*>(to.data + at_ + block_) =
          *reinterpret_cast<const uint32_t*>(from.data + at_ + block_);
  }

 private:
  /// Returns whether the lane's elements from `item` on are whole and aligned.
  CHORALE_FN bool fast(uint32_t item) const { return whole_ && item + per_lane <= n_; }

  CHORALE_FN Pack<T, per_lane> load(const Mem& from, uint32_t item) const {
    const uint64_t at = at_ + item * sizeof(T);
    if (fast(item)) return *reinterpret_cast<const Pack<T, per_lane>*>(from.data + at);
    Pack<T, per_lane> held{};
    for (uint32_t k = 0; k < per_lane; ++k) {
      if (item + k < n_ && from.data && at + (k + 1) * sizeof(T) <= from.valid)
        held.item[k] = reinterpret_cast<const T*>(from.data + at)[k];
    }
    return held;
  }
  CHORALE_FN void store(const Mem& to, uint32_t item, const Pack<T, per_lane>& held) const {
    const uint64_t at = at_ + item * sizeof(T);
    if (fast(item)) {
      *reinterpret_cast<Pack<T, per_lane>*>(to.data + at) = held;
      return;
    }
    for (uint32_t k = 0; k < per_lane; ++k) {
      if (item + k < n_ && to.data && at + (k + 1) * sizeof(T) <= to.valid)
        reinterpret_cast<T*>(to.data + at)[k] = held.item[k];
    }
  }

  const uint32_t lane_, block_;
  const uint64_t at_;
  const uint32_t n_;
  const bool whole_;
};

/// Runs a step. The rarer operators are chosen for each element, because code for each of them takes long to
/// compile.
template <bool Sum, class T, class E, uint32_t Rounds>
__device__ __noinline__ void run_coded(const ProgramStep& step, const Mem* places, uint32_t block,
                                       bool whole) {
  using Block = CodedBlock<T, E, Rounds>;
  const Group group = block_group();
  const uint64_t block_bytes = block * sizeof(T);
  const Mem* const sinks = places + step.n;
  const ReduceOp op = ReduceOp(step.reduce_op);
  for (uint64_t at = group.rank / detail::warp_threads * block_bytes; at < step.bytes;
       at += group.size / detail::warp_threads * block_bytes) {
    const uint64_t left = (step.bytes - at) / sizeof(T);
    const Block of(group, block, at, left < block ? uint32_t(left) : block, whole);
    typename Block::Values values{};
    of.read(places[0], values, [](float& to, float element) { to = element; });
    for (uint32_t source = 1; source < step.n; ++source) {
      of.read(places[source], values, [op](float& to, float element) {
        if constexpr (Sum) {
          to = combine<ReduceOp::sum>(to, element);
        } else {
          with_reduce_op(op, [&](auto tag) { to = combine<decltype(tag)::value>(to, element); });
        }
      });
    }
    // The lanes have read what others may overwrite: the shuffles wait for all of them.
    const float scale = scale_of<E>(of.round(values));
    __syncwarp();
    for (uint32_t sink = 0; sink < step.plain_sinks; ++sink) {
      if (step.n == 1 && places[0].valid == ProgramPlace::encoded &&
          sinks[sink].valid == ProgramPlace::encoded) {
        of.copy(places[0], sinks[sink]);
      } else {
        of.write(sinks[sink], values, scale);
      }
    }
  }
}

/// Extends the interpreter by the steps that encode and decode.
struct CodedSteps {
  static CHORALE_FN constexpr bool has(ProgramStepKind kind) { return kind == ProgramStepKind::coded; }

  template <class T, class P>
  static CHORALE_FN Stop run(const ProgramStep& step, const Page<P>& page, uint32_t misaligned) {
    const Mem* const places = page.plain + step.first_plain;
    const bool whole = step.whole && (step.passed & misaligned) == 0;
    if (step.n == 1 && step.plain_sinks == 1 && places[0].data == places[1].data &&
        places[0].valid == places[1].valid)
      return Stop::none;  // as copies_onto_itself()
    const Codec codec = unpacked(step.own);
    switch (codec.format) {
#define CHORALE_CODEC(name, element, most, steps) \
  case CodecFormat::name: \
    run_by<T, element>(step, places, codec.block, whole); \
    break;
#include "chorale/codecs.def"
    }
    return Stop::none;
  }

 private:
  template <class T, class E>
  static CHORALE_FN void run_by(const ProgramStep& step, const Mem* places, uint32_t block, bool whole) {
    constexpr uint32_t short_block = CodedBlock<T, E, 1>::per_warp, most = Codec::most_block / short_block;
    const bool sum = ReduceOp(step.reduce_op) == ReduceOp::sum || ReduceOp(step.reduce_op) == ReduceOp::avg;
    if (block <= short_block) {
      sum ? run_coded<true, T, E, 1>(step, places, block, whole)
          : run_coded<false, T, E, 1>(step, places, block, whole);
    } else {
      sum ? run_coded<true, T, E, most>(step, places, block, whole)
          : run_coded<false, T, E, most>(step, places, block, whole);
    }
  }
};

}  // namespace chorale::cuda
