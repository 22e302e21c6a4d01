#pragma once
#include <chorale/device.hpp>
#include <cstdint>

/// Gathers `elements` elements of every rank, which are sent as 8-bit floats with a scale for each 128. They
/// take a little more than a fourth of the bytes of float.
template <class T>
struct QuantisedAllGather {
  using Block = chorale::Fp8Block<>;
  chorale::EndpointTable table;
  const T* in;
  T* out;
  uint64_t elements;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    chorale::Leg leg;
    leg.in = in;
    leg.out = out;
    leg.bytes = (elements + Block::elements - 1) / Block::elements * sizeof(Block);
    leg.elem = sizeof(Block);
    return chorale::all_gather<Block>(group, table, leg, {0, elements * sizeof(T)},
                                      chorale::QuantizeFp8Blocks<T>{elements},
                                      chorale::DequantizeFp8Blocks<T>{elements}, deadline);
  }
};
