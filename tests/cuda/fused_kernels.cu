// This file instantiates the kernels of chorale/fused. It is only compiled; fused_ptx.py looks at the result.
// cuda_tiles runs them.

#include <chorale/fused/gather_permute.hpp>
#include <chorale/fused/quantised.hpp>
#include <chorale/fused/rms_norm.hpp>
#include <chorale/fused/transpose.hpp>

using namespace chorale;
using namespace chorale::fused;

#define KERNEL(name, ...) \
  extern "C" __global__ void name(__VA_ARGS__ kernel, Deadline deadline, Stop* out) { \
    out[threadIdx.x] = kernel(block_group(), deadline); \
  }

KERNEL(norm_packets, RmsNormPackets<bf16, StoreRow<bf16>>)
KERNEL(norm_packets_f32, RmsNormPackets<float, StoreRow<float>>)
KERNEL(norm_packets_e4m3, RmsNormPackets<bf16, QuantiseRow<fp8_e4m3>>)
KERNEL(norm_packets_int8, RmsNormPackets<f16, QuantiseRow<int8_t>>)
KERNEL(norm_packets_twice, RmsNormPacketsTwice<bf16, StoreRow<bf16>>)
KERNEL(norm_packets_twice_f32, RmsNormPacketsTwice<float, StoreRow<float>, LL8>)
KERNEL(norm_packets_twice_e4m3, RmsNormPacketsTwice<bf16, QuantiseRow<fp8_e4m3>>)
KERNEL(norm_packets_twice_e5m2, RmsNormPacketsTwice<f16, QuantiseRow<fp8_e5m2>>)
KERNEL(norm_window, RmsNormWindow<bf16, StoreRow<bf16>>)
KERNEL(norm_window_f32, RmsNormWindow<float, StoreRow<float>>)
KERNEL(norm_window_e4m3, RmsNormWindow<bf16, QuantiseRow<fp8_e4m3>>)
KERNEL(norm_window_e5m2, RmsNormWindow<f16, QuantiseRow<fp8_e5m2>>)
KERNEL(norm_window_int8, RmsNormWindow<bf16, QuantiseRow<int8_t>>)
KERNEL(reduce_packets_e4m3, QuantisedReducePackets<bf16, fp8_e4m3>)
KERNEL(reduce_packets_e5m2, QuantisedReducePackets<f16, fp8_e5m2>)
KERNEL(reduce_packets_int8, QuantisedReducePackets<float, int8_t>)
KERNEL(reduce_window_e4m3, QuantisedReduceWindow<bf16, fp8_e4m3>)
KERNEL(reduce_window_e5m2, QuantisedReduceWindow<f16, fp8_e5m2>)
KERNEL(reduce_window_int8, QuantisedReduceWindow<float, int8_t>)
KERNEL(gather_packets_e4m3, QuantisedGatherPackets<bf16, fp8_e4m3>)
KERNEL(gather_packets_int8, QuantisedGatherPackets<float, int8_t>)
KERNEL(gather_window_e4m3, QuantisedGatherWindow<bf16, fp8_e4m3>)
KERNEL(gather_window_e5m2, QuantisedGatherWindow<f16, fp8_e5m2>)
KERNEL(gather_window_int8, QuantisedGatherWindow<float, int8_t>)
KERNEL(transpose_packets, TransposePackets<float>)
KERNEL(transpose_tiles, TransposeTilesByPeer<bf16>)
KERNEL(transpose_window, TransposeIntoWindow<float>)
KERNEL(transpose_window_bf16, TransposeIntoWindow<bf16>)
KERNEL(permute_packets, GatherPermutePackets<bf16, int32_t>)
KERNEL(permute_window, GatherPermuteWindow<bf16, int32_t>)
KERNEL(permute_window_f32, GatherPermuteWindow<float, int64_t>)
