/// \file
/// The interpreter kernel.
#pragma once

#include "machine.cuh"

namespace chorale::cuda {

constexpr uint32_t most_threads = 512;

/// Dynamic shared memory: the block's state, its image if there is room for it, its lists.
template <class T, class P>
__global__ void __launch_bounds__(most_threads, 1) interpret(const __grid_constant__ Launch launch) {
  extern __shared__ uint4 room[];
  __shared__ Shared shared;

  // State and image come in one go: neither needs to know the other.
  const uint4* const image_from =
      reinterpret_cast<const uint4*>(launch.images) + launch.image_at[blockIdx.x];
  uint4* const state_from = reinterpret_cast<uint4*>(launch.states + uint64_t(blockIdx.x) * launch.state_bytes);
  const uint32_t state_units = launch.state_bytes / 16;
  const uint32_t image_units = launch.image_at[blockIdx.x + 1] - launch.image_at[blockIdx.x];
  const bool fits = image_units * 16 <= launch.image_room;
  uint4* const image_to = room + state_units;
  for (uint32_t unit = threadIdx.x; unit < state_units + (fits ? image_units : 0); unit += blockDim.x) {
    room[unit] = unit < state_units ? state_from[unit] : image_from[unit - state_units];
  }
  __syncthreads();

  BlockState& state = *reinterpret_cast<BlockState*>(room);
  const char* const blob = reinterpret_cast<const char*>(fits ? image_to : image_from);
  const BlockHeader& header = *reinterpret_cast<const BlockHeader*>(blob);
  if (state.stopped != 0) return;
  if (threadIdx.x == 0) {
    shared.block = {0, header.n_records};
    image::Image image;
    image.records = reinterpret_cast<const image::Record*>(blob + header.records);
    image.places = reinterpret_cast<const image::Place*>(blob + header.places);
    image.ids = reinterpret_cast<const uint32_t*>(blob + header.ids);
    image.blocks = &shared.block;
    image.buffers = reinterpret_cast<const image::Buffer*>(blob + header.buffers);
    image.switches = reinterpret_cast<const image::Switch*>(blob + header.switches);
    image.members = reinterpret_cast<const uint32_t*>(blob + header.members);
    image.n_blocks = 1;
    image.n_channels = header.n_channels;
    image.widest = header.widest;
    image.alignment = header.alignment;
    shared.image = image;
    shared.channels = reinterpret_cast<const ChannelEnd*>(blob + header.channels);
    shared.counts = state.counts();
    shared.deadline = {launch.abort, launch.timeout_ns, 0};
    shared.stop = StopRecord{};
  }
  __syncthreads();

  char* const lists = reinterpret_cast<char*>(room) + launch.state_bytes + launch.image_room;
  Machine<T, P> machine(launch, shared, lists, state.epoch + 1, block_group());
  const Stop stop = run_block(machine, 0);
  machine.leave(stop);

  // Everybody has read the state, and nobody waits any more.
  __syncthreads();
  if (threadIdx.x == 0) {
    state.epoch += stop == Stop::none;
    state.stopped = stop != Stop::none;
  }
  __syncthreads();
  for (uint32_t unit = threadIdx.x; unit < state_units; unit += blockDim.x) state_from[unit] = room[unit];
}

}  // namespace chorale::cuda
