/// \file
/// Computes the results of the shipped algorithms, bit for bit. It makes the same additions in the same
/// order, and rounds when the algorithm rounds. It shares no code with the executor: its element types are
/// implemented separately, by arithmetic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "chorale/combine.hpp"
#include "chorale/types.hpp"

namespace oracle {

using chorale::DType;
using chorale::ReduceOp;
using Bytes = std::vector<std::byte>;

// -- Element types

/// Represents a float with Exponent and Mantissa bits in Storage, combined as float. An overflow becomes
/// infinity, or NaN if the type has no infinity.
template <class Storage, int Exponent, int Mantissa>
struct Narrow {
  using Word = Storage;
  using Accumulator = float;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  /// e4m3 uses the top exponent for numbers, and keeps only its last mantissa for NaN.
  static constexpr bool top_is_finite = Exponent == 4;
  static constexpr uint32_t nan = (1u << (Exponent + Mantissa)) - 1;

  static float decode(Word word) {
    const uint32_t mantissa = word & ((1u << Mantissa) - 1),
                   exponent = (word >> Mantissa) & ((1u << Exponent) - 1);
    const bool top = exponent == (1u << Exponent) - 1;
    double value = exponent ? std::ldexp(1.0 + std::ldexp(mantissa, -Mantissa), int(exponent) - bias)
                            : std::ldexp(mantissa, 1 - bias - Mantissa);
    if (top && !top_is_finite) value = mantissa ? std::nan("") : std::numeric_limits<double>::infinity();
    if (top_is_finite && (word & nan) == nan) value = std::nan("");
    return float(word >> (Exponent + Mantissa) ? -value : value);
  }

  static Word encode(float value) {
    if (std::isnan(value)) return Word(nan);
    const Word sign = Word(uint32_t(std::signbit(value)) << (Exponent + Mantissa));
    const double magnitude = std::fabs(double(value)), most = largest();
    const Word overflow = top_is_finite ? Word(nan) : Word(sign | Word(top() << Mantissa));
    if (std::isinf(value)) return overflow;
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    const double unit = std::ldexp(1.0, exponent - Mantissa);
    const double rounded = std::nearbyint(magnitude / unit) * unit;  // to nearest, ties to even
    if (rounded > most) return overflow;
    return Word(sign | encode_exact(rounded));
  }

 private:
  static constexpr uint32_t top() { return (1u << Exponent) - 1; }
  static double largest() {
    const int exponent = int(top()) - bias - (top_is_finite ? 0 : 1);
    return std::ldexp(2.0 - std::ldexp(top_is_finite ? 2.0 : 1.0, -Mantissa), exponent);
  }
  static Word encode_exact(double value) {
    if (value < std::ldexp(1.0, 1 - bias)) return Word(std::ldexp(value, Mantissa + bias - 1));
    const int exponent = std::ilogb(value);
    return Word(uint32_t(exponent + bias) << Mantissa |
                uint32_t(std::ldexp(value, Mantissa - exponent) - (1 << Mantissa)));
  }
};

template <class T>
struct Wide {
  using Word = T;
  using Accumulator = T;
  static T decode(T word) { return word; }
  static T encode(T value) { return value; }
};

/// Calls f with the element type that `type` names.
template <class F>
decltype(auto) with_type(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(Wide<float>{});
    case DType::f64:
      return f(Wide<double>{});
    case DType::i32:
      return f(Wide<int32_t>{});
    case DType::u32:
      return f(Wide<uint32_t>{});
    case DType::i64:
      return f(Wide<int64_t>{});
    case DType::u64:
      return f(Wide<uint64_t>{});
    case DType::u8:
      return f(Wide<uint8_t>{});
    case DType::i8:
      return f(Wide<int8_t>{});
    case DType::f16:
      return f(Narrow<uint16_t, 5, 10>{});
    case DType::bf16:
      return f(Narrow<uint16_t, 8, 7>{});
    case DType::fp8_e4m3:
      return f(Narrow<uint8_t, 4, 3>{});
    case DType::fp8_e5m2:
      break;
  }
  return f(Narrow<uint8_t, 5, 2>{});
}

/// Loads an element in the type of its sums. Decoding by arithmetic is slow, so narrow words are looked up.
template <class Type>
typename Type::Accumulator load(const std::byte* from) {
  using Word = typename Type::Word;
  Word word;
  std::memcpy(&word, from, sizeof word);
  if constexpr (std::is_same_v<typename Type::Accumulator, Word>) {
    return word;
  } else {
    static const std::vector<float> values = [] {
      std::vector<float> all(size_t(1) << (8 * sizeof(Word)));
      for (size_t at = 0; at < all.size(); ++at) all[at] = Type::decode(Word(at));
      return all;
    }();
    return values[word];
  }
}

template <class Type>
void store(std::byte* to, typename Type::Accumulator value) {
  const typename Type::Word word = Type::encode(value);
  std::memcpy(to, &word, sizeof word);
}

// -- Reductions

using chorale::reference::combine;

/// Describes the order in which one chunk is summed: the ranks of each group in turn, then the groups in
/// turn. Every group's sum and the result are rounded. With `every_hop` each partial sum is rounded as well.
struct Order {
  std::vector<std::vector<int>> groups;
  bool every_hop = false;
};

/// Returns the chunk of an all-reduce (one for each rank) to which share `share` belongs. Instances share
/// chunks.
inline int chunk_of(const std::string& algorithm, int ranks, int instances, int share) {
  // For this algorithm each instance has its own share of the message, with a chunk for each rank.
  if (algorithm == "allreduce_two_shot") return share % ranks;
  return share / instances;
}

/// Returns the order in which `algorithm` sums chunk `chunk` of `ranks` (of an all-reduce or a reduce), or
/// rank `chunk`'s part (of a reduce-scatter). For a reduce by one rank, `chunk` is that rank.
inline Order order_of(const std::string& algorithm, int ranks, int gpus_per_node, int chunk) {
  const auto rotated = [](int first, int count, int start) {
    std::vector<int> list;
    for (int i = 0; i < count; ++i) list.push_back(first + (start + i) % count);
    return list;
  };
  if (algorithm == "allreduce_ring") return {{rotated(0, ranks, chunk)}, true};
  if (algorithm == "allreduce_two_shot" || algorithm == "allreduce_all_pairs" ||
      algorithm == "reducescatter_direct" || algorithm == "reducescatter_packets" ||
      algorithm == "reduce_direct" || algorithm == "reduce_packets") {
    return {{rotated(0, ranks, chunk)}};
  }
  if (algorithm == "allreduce_two_level") {
    Order order;
    const int nodes = ranks / gpus_per_node, gpu = chunk / nodes;
    for (int node = 0; node < nodes; ++node)
      order.groups.push_back(rotated(node * gpus_per_node, gpus_per_node, gpu));
    return order;
  }
  return {{rotated(0, ranks, 0)}};
}

/// Combines elements [first, first + count) of all inputs.
template <class Type>
Bytes fold(const Order& order, ReduceOp op, const std::vector<Bytes>& inputs, size_t first, size_t count) {
  using A = typename Type::Accumulator;
  constexpr size_t width = sizeof(typename Type::Word);
  const auto round = [](A value) {
    std::byte bytes[width];
    store<Type>(bytes, value);
    return load<Type>(bytes);
  };
  std::vector<A> total(count), sum(count);
  for (size_t group = 0; group < order.groups.size(); ++group) {
    for (size_t turn = 0; turn < order.groups[group].size(); ++turn) {
      const std::byte* from = inputs[size_t(order.groups[group][turn])].data() + first * width;
      for (size_t at = 0; at < count; ++at) {
        const A next = load<Type>(from + at * width);
        sum[at] = turn ? combine<A>(op, sum[at], next) : next;
        if (order.every_hop && turn) sum[at] = round(sum[at]);
      }
    }
    for (size_t at = 0; at < count; ++at) {
      const A rounded = round(sum[at]);
      total[at] = group ? combine<A>(op, total[at], rounded) : rounded;
    }
  }
  Bytes result(count * width);
  for (size_t at = 0; at < count; ++at) {
    A value = round(total[at]);
    if (op == ReduceOp::avg) {  // the whole sum exists, rounded; then it is divided
      int ranks = 0;
      for (const auto& group : order.groups) ranks += int(group.size());
      if constexpr (std::is_unsigned_v<A>) {
        value = A(value / uint64_t(ranks));
      } else if constexpr (std::is_integral_v<A>) {
        value = A(int64_t(value) / ranks);
      } else {
        value = value / A(ranks);
      }
    }
    store<Type>(result.data() + at * width, value);
  }
  return result;
}

// -- Data

struct Random {
  uint64_t state;
  uint64_t operator()() {  // splitmix64
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

/// Returns elements for which the order of additions matters. Floats have very different magnitudes and both
/// signs, with zeros, subnormals and, rarely, numbers near the largest, infinities and NaNs. Integers use all
/// bits.
inline Bytes random_elements(DType type, size_t bytes, uint64_t seed) {
  Random random{seed};
  Bytes data(bytes);
  const auto fill = [&](auto tag, int mantissa, int exponent_bits, int spread) {
    using Word = decltype(tag);
    const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 2;
    for (size_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
      const uint64_t bits = random(), kind = random() % 64;
      int exponent = bias - spread + int((bits >> 1) % uint64_t(2 * spread + 1));
      if (kind < 4) exponent = 0;
      if (kind == 4) exponent = top;
      exponent = std::min(std::max(exponent, 0), top);
      uint64_t fraction = random() & ((uint64_t(1) << mantissa) - 1);
      if (kind < 2) fraction = 0;            // a zero of either sign
      if (kind == 5 && random() % 4 == 0) {  // infinity, or NaN
        exponent = top + 1;
        fraction = random() % 2 ? (uint64_t(1) << mantissa) - 1 : 0;
      }
      const Word word =
          Word((bits & 1) << (mantissa + exponent_bits) | uint64_t(exponent) << mantissa | fraction);
      std::memcpy(data.data() + at, &word, sizeof word);
    }
  };
  switch (type) {
    case DType::f32:
      fill(uint32_t{}, 23, 8, 15);
      break;
    case DType::f64:
      fill(uint64_t{}, 52, 11, 30);
      break;
    case DType::f16:
      fill(uint16_t{}, 10, 5, 8);
      break;
    case DType::bf16:
      fill(uint16_t{}, 7, 8, 6);
      break;
    case DType::fp8_e4m3:
      fill(uint8_t{}, 3, 4, 5);
      break;
    case DType::fp8_e5m2:
      fill(uint8_t{}, 2, 5, 8);
      break;
    default:
      for (size_t at = 0; at < bytes; at += 8) {
        const uint64_t bits = random();
        std::memcpy(data.data() + at, &bits, std::min<size_t>(8, bytes - at));
      }
  }
  return data;
}

// -- Collectives

/// Holds the settings that decide which rank adds what, and in which order.
struct Setting {
  std::string algorithm, collective;
  int ranks = 1, gpus_per_node = 1, root = 0, instances = 1;
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;
  size_t unit = 16;  ///< chunks begin at multiples of this many bytes
};

/// Returns every rank's output for the inputs of all ranks; nothing for a rank of which nothing is promised.
inline std::vector<Bytes> expected(const Setting& of, const std::vector<Bytes>& inputs) {
  const size_t ranks = size_t(of.ranks), bytes = inputs[0].size();
  std::vector<Bytes> outputs(ranks);
  if (of.collective == "broadcast") {
    outputs.assign(ranks, inputs[size_t(of.root)]);
  } else if (of.collective == "allgather") {
    Bytes all;
    for (const Bytes& input : inputs) all.insert(all.end(), input.begin(), input.end());
    outputs.assign(ranks, all);
  } else if (of.collective == "alltoall") {
    const std::ptrdiff_t part = std::ptrdiff_t(bytes / ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (const Bytes& input : inputs) {
        const auto from = input.begin() + std::ptrdiff_t(rank) * part;
        outputs[rank].insert(outputs[rank].end(), from, from + part);
      }
    }
  } else {
    with_type(of.type, [&](auto type) {
      using Type = decltype(type);
      const size_t width = sizeof(typename Type::Word), elements = bytes / width;
      const bool scatter = of.collective == "reducescatter";
      // All shares have the same size, which is a whole number of units.
      const size_t units = (bytes + of.unit - 1) / of.unit,
                   shares = scatter ? ranks : ranks * size_t(of.instances);
      const size_t share = scatter ? elements / ranks : (units + shares - 1) / shares * of.unit / width;
      for (size_t at = 0; at < shares; ++at) {
        const int chunk = scatter ? int(at)
                          : of.algorithm == "reduce_packets"
                              ? of.root
                              : chunk_of(of.algorithm, of.ranks, of.instances, int(at));
        const size_t first = std::min(at * share, elements), count = std::min(share, elements - first);
        const Bytes part = fold<Type>(order_of(of.algorithm, of.ranks, of.gpus_per_node, chunk), of.op,
                                      inputs, first, count);
        Bytes& output = outputs[scatter ? at : 0];
        output.insert(output.end(), part.begin(), part.end());
      }
      if (!scatter) outputs.assign(ranks, Bytes(outputs[0]));
    });
    for (int rank = 0; of.collective == "reduce" && rank < of.ranks; ++rank) {
      if (rank != of.root) outputs[size_t(rank)].clear();
    }
  }
  return outputs;
}

/// Returns where two byte strings differ; empty: nowhere. Two NaNs of a wide float are equal whatever their
/// payload.
inline std::string difference(const std::byte* seen, const Bytes& wanted, DType type) {
  if (wanted.empty() || std::memcmp(seen, wanted.data(), wanted.size()) == 0) return "";
  const size_t width = chorale::dtype_size(type);
  for (size_t at = 0; at < wanted.size(); at += width) {
    if (std::memcmp(seen + at, wanted.data() + at, width) == 0) continue;
    const auto is_nan = [type](const std::byte* element) {
      if (type == DType::f32) return bool(std::isnan(load<Wide<float>>(element)));
      return type == DType::f64 && bool(std::isnan(load<Wide<double>>(element)));
    };
    if (is_nan(seen + at) && is_nan(wanted.data() + at)) continue;
    std::ostringstream text;
    text << "element " << at / width << " of " << wanted.size() / width << " is";
    for (size_t byte = 0; byte < width; ++byte) text << ' ' << std::hex << int(seen[at + byte]);
    text << ", not";
    for (size_t byte = 0; byte < width; ++byte) text << ' ' << std::hex << int(wanted[at + byte]);
    return text.str();
  }
  return "";
}

}  // namespace oracle
