// This file instantiates the sends, receives, hooks and collectives of the device library in kernels. Like
// device_headers.cu, it is only compiled. cuda_tiles runs similar kernels.

#include <chorale/device.hpp>

#include "tests/fused/expert_exchange.hpp"

using namespace chorale;

/// Uses every form of group.
extern "C" __global__ void groups_of_clusters(uint64_t* out) {
  const Group cluster = cluster_group();
  cluster.sync();
  const uint64_t seen = cluster.broadcast(out[cluster.rank]) + uint64_t(cluster.all(out[0] != 0));
  out[cluster.id * cluster.size + cluster.rank] = seen + uint64_t(cluster.agree(Stop(out[1] % 3)));
}

template <class Kernel>
CHORALE_FN void run(const Kernel& kernel, const Deadline& deadline, Stop* out) {
  out[threadIdx.x] = kernel(block_group(), deadline);
}

extern "C" __global__ void send_copy(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  const Group block = block_group();
  out[threadIdx.x] = send_tiles<float>(block, table.at(1, block.id), share_of(leg, block.id, block.count),
                                       CopyProduce{}, deadline);
}
extern "C" __global__ void recv_copy(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  const Group block = block_group();
  out[threadIdx.x] = recv_tiles<float>(block, table.at(0, block.id), share_of(leg, block.id, block.count),
                                       CopyConsume{}, deadline);
}
extern "C" __global__ void send_scaled(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  run(SendKernel<bf16, ScaleProduce<bf16>>{table, leg, 1, {2.0f}}, deadline, out);
}
extern "C" __global__ void recv_added(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  run(RecvKernel<bf16, AddConsume<bf16>>{table, leg, 1, {1.0f}}, deadline, out);
}
extern "C" __global__ void both_ways(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  run(SendRecvKernel<f16, CopyProduce, AccumulateConsume<ReduceOp::sum, f16>>{table, leg, leg, 1, 0, {}, {}},
      deadline, out);
}
extern "C" __global__ void hooks(EndpointTable table, Leg leg, const int32_t* index, const float* scale,
                                 Deadline deadline, Stop* out) {
  run(SendKernel<float, TransposeProduce<float>>{table, leg, 1, {}}, deadline, out);
  run(SendKernel<f16, GatherProduce<f16, int32_t>>{table, leg, 1, {index}}, deadline, out);
  run(SendKernel<fp8_e4m3, QuantizeFp8<bf16>>{table, leg, 1, {scale}}, deadline, out);
  run(RecvKernel<fp8_e4m3, DequantizeFp8<bf16>>{table, leg, 1, {scale}}, deadline, out);
  leg.elem = sizeof(Fp8Block<>);
  run(SendKernel<Fp8Block<>, QuantizeFp8Blocks<bf16>>{table, leg, 1, {leg.bytes}}, deadline, out);
  run(RecvKernel<Fp8Block<>, DequantizeFp8Blocks<bf16>>{table, leg, 1, {leg.bytes}}, deadline, out);
}
extern "C" __global__ void forwards(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  const Group warp = warp_group();
  const Endpoint &from = table.at(0, warp.id), &to = table.at(2, warp.id);
  const Leg share = share_of(leg, warp.id, warp.count);
  Stop stop = forward_tiles<float>(warp, from, to, share, CopyConsume{}, deadline);
  if (stop == Stop::none) stop = forward_tiles<float>(warp, from, to, share, DropConsume{}, deadline);
  if (stop == Stop::none) {
    stop = forward_tiles<float, Direct, Port>(warp, from, to, share,
                                              AccumulateForward<ReduceOp::sum, float>{}, deadline);
  }
  out[threadIdx.x] = stop;
}

/// Runs the collectives over links of all kinds.
extern "C" __global__ void collectives(EndpointTable table, Leg leg, Shards shards, const float* scale,
                                       Deadline deadline, Stop* out) {
  const Group block = block_group();
  Stop stop =
      all_to_all<float>(block, table, leg, shards, TransposeProduce<float>{}, CopyConsume{}, deadline);
  if (stop == Stop::none) {
    stop = all_gather<fp8_e4m3>(block, table, leg, shards, QuantizeFp8<bf16>{scale},
                                DequantizeFp8<bf16>{scale}, deadline);
  }
  if (stop == Stop::none) {
    stop = reduce_scatter<ReduceOp::avg, bf16>(block, table, leg, shards, CopyProduce{}, CopyConsume{},
                                               deadline);
  }
  out[threadIdx.x] = stop;
}
extern "C" __global__ void sums(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  out[threadIdx.x] = all_reduce<ReduceOp::sum, bf16>(block_group(), table, leg, CopyProduce{},
                                                     AddConsume<bf16>{1.0f}, deadline);
}
extern "C" __global__ void counted(DispatchTokens<bf16> dispatch, CombineTokens<bf16> combine, Leg leg,
                                   Counts<int64_t> counts, Deadline deadline, Stop* out) {
  run(dispatch, deadline, out);
  run(combine, deadline, out);
  out[threadIdx.x] =
      all_to_all_v<float>(block_group(), dispatch.table, leg, counts, CopyProduce{}, CopyConsume{}, deadline);
}
extern "C" __global__ void messages(EndpointTable table, const char* in, char* out_data, uint64_t bytes,
                                    Deadline deadline, Stop* out, uint64_t* sent) {
  const Group block = block_group();
  const Endpoint& e = table.at(1, block.id);
  out[threadIdx.x] = with_link(e, [&](auto fabric) {
    const Stop stop = send_message<decltype(fabric)>(block, e, in, bytes, deadline);
    return stop != Stop::none
               ? stop
               : recv_message<decltype(fabric)>(block, e, out_data, bytes, deadline, sent[threadIdx.x]);
  });
}
extern "C" __global__ void packets(EndpointTable table, Leg leg, Deadline deadline, Stop* out) {
  const Group block = block_group();
  const Endpoint& e = table.at(1, block.id);
  Stop stop = send_packets<LL16, float>(block, e, leg, ScaleProduce<float>{2}, deadline);
  if (stop == Stop::none) stop = recv_packets<LL16, float>(block, e, leg, AddConsume<float>{1}, deadline);
  if (stop == Stop::none) stop = send_packets<LL128, float>(block, e, leg, CopyProduce{}, deadline);
  if (stop == Stop::none) stop = recv_packets<LL128, float>(block, e, leg, CopyConsume{}, deadline);
  if (stop == Stop::none) stop = send_packets<LL8, bf16>(block, e, leg, CopyProduce{}, deadline);
  if (stop == Stop::none) stop = recv_packets<LL8, bf16>(block, e, leg, CopyConsume{}, deadline);
  out[threadIdx.x] = stop;
}
extern "C" __global__ void windows(WindowView view, const char* from, Deadline deadline, Stop* out) {
  const Group block = block_group();
  put_signal(block, view, 1, 16, from, 4096, 0);
  signal_all(block, view, 1);
  Stop stop = wait_signal_from(block, view, 1, 0, Cmp::ge, 1, deadline);
  if (stop == Stop::none && read_signal(block, view, 1, 0) != 0) stop = barrier(block, view, 0, deadline);
  out[threadIdx.x] = stop;
}
