#include "coded.hpp"

#include <algorithm>
#include <cstring>

#include "chorale/device/codec.hpp"

namespace chorale::cpu {

using lowering::ProgramPlace;
using lowering::ProgramStep;

namespace {

/// Works on one block of elements of type T, which are encoded as E.
template <class T, class E>
class Block {
 public:
  /// \param block  the elements of a block
  /// \param at  the first byte of the plain block, from the start of the step
  /// \param n  the elements of the block that the step moves
  Block(uint32_t block, uint64_t at, uint32_t n) : block_(block), at_(at), n_(n) {}

  /// Calls each(item, value) for every element.
  template <class Each>
  void read(const Mem& from, bool is_encoded, const Each& each) const {
    const float scale = is_encoded ? load<float>(from, at_ + block_) : 0;
    for (uint32_t item = 0; item < n_; ++item) {
      each(item, is_encoded ? decoded(load<E>(from, at_ + item), scale)
                            : float(widen(load<T>(from, at_ + item * sizeof(T)))));
    }
  }

  void round(float* values) const {
    for (uint32_t item = 0; item < n_; ++item) values[item] = float(widen(narrow<T>(values[item])));
  }

  /// Writes elements that are rounded to T. Past the end of the message an encoded block is zero.
  void write(const Mem& to, bool is_encoded, const float* values) const {
    if (!is_encoded) {
      for (uint32_t item = 0; item < n_; ++item) store(to, at_ + item * sizeof(T), narrow<T>(values[item]));
      return;
    }
    float largest = 0;
    for (uint32_t item = 0; item < n_; ++item) largest = larger_magnitude(largest, values[item]);
    const float scale = scale_of<E>(largest);
    for (uint32_t item = 0; item < n_; ++item) store(to, at_ + item, encoded<E>(values[item], scale));
    store(to, at_ + block_, scale);
  }

  /// Copies an encoded block as it is.
  void copy(const Mem& from, const Mem& to) const {
    for (uint32_t item = 0; item < n_; ++item) store(to, at_ + item, load<E>(from, at_ + item));
    store(to, at_ + block_, load<float>(from, at_ + block_));
  }

 private:
  template <class V>
  static V load(const Mem& from, uint64_t at) {
    V value{};
    if (from.data && at + sizeof(V) <= from.valid) std::memcpy(&value, from.data + at, sizeof value);
    return value;
  }
  template <class V>
  static void store(const Mem& to, uint64_t at, V value) {
    if (to.data && at + sizeof(V) <= to.valid) std::memcpy(to.data + at, &value, sizeof value);
  }

  const uint32_t block_;
  const uint64_t at_;
  const uint32_t n_;
};

template <class T, class E, ReduceOp Op>
void run_as(const Group& group, const ProgramStep& step, uint32_t block, const Mem* memory) {
  const auto is_encoded = [&](uint32_t place) { return memory[place].valid == ProgramPlace::encoded; };
  const uint64_t block_bytes = block * sizeof(T);
  float values[Codec::most_block];
  for (uint64_t at = group.rank * block_bytes; at < step.bytes; at += group.size * block_bytes) {
    const Block<T, E> of(block, at, uint32_t(std::min(step.bytes - at, block_bytes) / sizeof(T)));
    of.read(memory[0], is_encoded(0), [&](uint32_t item, float value) { values[item] = value; });
    for (uint32_t source = 1; source < step.n; ++source) {
      of.read(memory[source], is_encoded(source),
              [&](uint32_t item, float value) { values[item] = combine<Op>(values[item], value); });
    }
    // A result is rounded as it would be in a plain sink, so that all sinks have the same elements.
    of.round(values);
    group.step();
    for (uint32_t sink = step.n; sink < step.n + uint32_t(step.plain_sinks); ++sink) {
      if (step.n == 1 && is_encoded(0) && is_encoded(sink)) {
        of.copy(memory[0], memory[sink]);
      } else {
        of.write(memory[sink], is_encoded(sink), values);
      }
    }
  }
}

}  // namespace

void run_coded(const Group& group, const ProgramStep& step, DType type, const Mem* memory) {
  const Codec codec = unpacked(step.own);
  const auto run = [&](auto element) {
    using T = typename decltype(element)::type;
    with_codec_format(codec.format, [&](auto format) {
      using E = typename decltype(format)::type;
      with_reduce_op(ReduceOp(step.reduce_op),
                     [&](auto op) { run_as<T, E, decltype(op)::value>(group, step, codec.block, memory); });
    });
  };
  // layout_of() refuses other types.
  if (type == DType::f16) return run(TypeTag<f16>{});
  if (type == DType::bf16) return run(TypeTag<bf16>{});
  return run(TypeTag<float>{});
}

}  // namespace chorale::cpu
