/// \file
/// An all-reduce and an all-gather whose data travel as codes of 8 bits (codes.hpp), with a scale for each
/// block of elements.
///
///     fused::QuantisedAllReduce reduce(world, 64 << 20, 128, {.space = Space::device});
///     reduce.run<bf16, fp8_e4m3>(in, out, elements, {stream});
///
/// The all-reduce decodes what comes, adds it in f32 in rank order, and rounds once to T. All ranks get the
/// same bits, and `out` may be `in`. In the form `packets` (one shot) every rank gets every rank's codes and
/// adds them up. In the form `window` (two shots) one rank adds up each block, and sends the codes of the
/// sum.
///
/// A result differs little from x, the exact sum of all ranks' elements. Let A be the sum over all ranks of
/// block_magnitude() of the rank's block that has the element. If A * 1.01 is a finite float,
///
///     |out - x| <= shots * A * code_error<Q> * (1 + 2^-10) + ranks * A * 2^-22
///
/// plus the rounding of out to T, at most half of the distance of two values of T at out. The first term is
/// the rounding to codes: each rank's element once, and in the form `window` the sum once more, whose block
/// has no magnitude above A. The second is the rounding of scales, products and sums to f32.
/// quantised_error() computes both. For an all-gather, A is of the one block that has the element, and ranks
/// = shots = 1.
///
/// A NaN gives a NaN in the place of the element, and an infinity a NaN, or in fp8_e5m2 an infinity. Other
/// elements keep the bound. A sum beyond f32 is an infinity before it is encoded.
#pragma once

#include <cstdint>
#include <cstring>

#include "chorale/device.hpp"
#include "chorale/fused/buffers.hpp"
#include "chorale/fused/code_blocks.hpp"
#include "chorale/fused/codes.hpp"

namespace chorale::fused {

/// Bounds the error of an all-reduce before its rounding to T, see above.
/// \param magnitudes  A, the sum of block_magnitude() of the ranks' blocks
/// \param shots       1 for the form `packets`, 2 for `window`
template <class Q>
constexpr double quantised_error(double magnitudes, int ranks, int shots) {
  return magnitudes * (shots * code_error<Q> * (1 + 1.0 / 1024) + ranks / double(1 << 22));
}

/// Describes a message that is sent as codes of type Q.
template <class T>
struct QuantisedMessage {
  const T* in;
  T* out;
  uint64_t elements;
  uint32_t shift;  ///< a block has 16 << shift elements, so 1 << shift units of codes; at most 5

  CHORALE_HD uint64_t blocks() const {
    const uint64_t block = uint64_t(detail::per_code_unit) << shift;
    return (elements >> (shift + 4)) + ((elements & (block - 1)) != 0 ? 1 : 0);
  }
  /// Returns the group's share of all blocks.
  CHORALE_FN detail::Blocks share(const Group& group) const {
    const chorale::detail::EvenParts parts(blocks(), group.count);
    return {parts.first(group.id), parts.size(group.id)};
  }
};

namespace detail {
/// Encodes the group's share of `in`, sends it to all ranks, and calls take(unit, rank, codes, scale) for
/// each unit and all ranks in order, then done(unit). A message has its codes first, and then a unit for each
/// scale.
template <class T, class Q, class P, class Take, class Done>
CHORALE_FN Stop exchange_codes(const Group& group, const EndpointTable& table, const Deadline& deadline,
                               const QuantisedMessage<T>& message, const Take& take, const Done& done) {
  const Blocks mine = message.share(group);
  if (mine.n == 0) return Stop::none;
  const uint64_t units = mine.n << message.shift, base = mine.first << message.shift;
  PacketExchange<P> exchange(group, table, deadline);
  Stop stop = exchange.begin(packet_bytes<P>((units + mine.n) * unit_bytes));
  if (stop != Stop::none) return stop;
  stop =
      encode_blocks<Q, 1>(group, message.shift, mine.first, mine.n, Elements<T>{message.in, message.elements},
                          [&](uint64_t unit, const Unit& codes, float scale, bool begins) {
                            Unit own[2] = {codes, {}};
                            std::memcpy(&own[1], &scale, sizeof scale);
                            const uint64_t at = unit - base, scale_at = units + (at >> message.shift);
                            exchange.send(0, at, codes);
                            if (begins) exchange.send(0, scale_at, own[1]);
                            const Stop came = exchange.template each_rank<2>(
                                0, at, scale_at - at, own, [&](int32_t rank, const Unit(&theirs)[2]) {
                                  float its_scale;
                                  std::memcpy(&its_scale, &theirs[1], sizeof its_scale);
                                  take(unit, rank, theirs[0], its_scale);
                                });
                            if (came == Stop::none) done(unit);
                            return came;
                          });
  stop = group.agree(stop);
  if (stop == Stop::none) exchange.end();
  return stop;
}
}  // namespace detail

/// Does an all-reduce in one shot, with packets. Every rank adds up all elements.
template <class T, class Q, class P = LL16>
struct QuantisedReducePackets {
  EndpointTable table;
  QuantisedMessage<T> message;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    float sums[detail::per_code_unit];
    return detail::exchange_codes<T, Q, P>(
        group, table, deadline, message,
        [&](uint64_t, int32_t rank, const Unit& codes, float scale) {
          detail::decode<Q>(codes, scale, rank != 0, sums);
        },
        [&](uint64_t unit) { detail::Elements<T>::store(message.out, message.elements, unit, sums); });
  }
};

/// Does an all-reduce in two shots, with windows. It uses barriers 2 * group and 2 * group + 1.
template <class T, class Q>
struct QuantisedReduceWindow {
  WindowView window;
  detail::CodeLayout inputs, sums;
  QuantisedMessage<T> message;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t sent = 2 * group.id, added = sent + 1;
    // Nobody reads this rank's window any more: in the last launch each group has waited until all ranks had
    // read what the group had written.
    for (int32_t step = 1; step <= window.ranks; ++step) {
      const detail::Blocks part = part_of(group, (window.self + step) % window.ranks);
      detail::encode_blocks<Q, 2>(group, message.shift, part.first, part.n,
                                  detail::Elements<T>{message.in, message.elements},
                                  [&](uint64_t unit, const Unit& codes, float scale, bool begins) {
                                    detail::store_codes(window, inputs, window.self, 1, unit, codes,
                                                        unit >> message.shift, scale, begins);
                                    return Stop::none;
                                  });
    }
    Stop stop = barrier(group, window, sent, deadline);
    if (stop != Stop::none) return stop;
    // The others have arrived here, so they have ended the last launch and read no sums of it.
    const detail::Blocks mine = part_of(group, window.self);
    detail::encode_blocks<Q, 2>(group, message.shift, mine.first, mine.n,
                                detail::SumOfCodes<Q>{window, inputs, message.shift},
                                [&](uint64_t unit, const Unit& codes, float scale, bool begins) {
                                  detail::store_codes(window, sums, window.self + 1, window.ranks, unit,
                                                      codes, unit >> message.shift, scale, begins);
                                  return Stop::none;
                                });
    arrive_all(group, window, added);
    for (int32_t step = 0; step < window.ranks; ++step) {
      if (step == 1) stop = wait_all(group, window, added, deadline);  // its own sums are already here
      if (stop != Stop::none) return stop;
      const detail::Blocks part = part_of(group, (window.self + step) % window.ranks);
      detail::decode_blocks<T, Q>(group, window.base[window.self], sums, message.shift, part.first, part.n,
                                  message.out, message.elements);
    }
    return stop;
  }

 private:
  /// Returns the blocks that the group adds up at a rank. Each rank's begin with a different group.
  CHORALE_FN detail::Blocks part_of(const Group& group, int32_t rank) const {
    using chorale::detail::EvenParts;
    const uint32_t ranks = uint32_t(window.ranks),
                   at = (group.id + uint32_t(rank) * (group.count / ranks)) % group.count;
    const EvenParts shards(message.blocks(), ranks);
    const EvenParts parts(shards.size(uint32_t(rank)), group.count);
    return {shards.first(uint32_t(rank)) + parts.first(at), parts.size(at)};
  }
};

/// Does an all-gather with packets.
template <class T, class Q, class P = LL16>
struct QuantisedGatherPackets {
  EndpointTable table;
  QuantisedMessage<T> message;  ///< `elements` of this rank; `out` has those of all ranks

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    return detail::exchange_codes<T, Q, P>(
        group, table, deadline, message,
        [&](uint64_t unit, int32_t rank, const Unit& codes, float scale) {
          float values[detail::per_code_unit];
          detail::decode<Q>(codes, scale, false, values);
          detail::Elements<T>::store(message.out + uint64_t(rank) * message.elements, message.elements, unit,
                                     values);
        },
        [](uint64_t) {});
  }
};

/// Does an all-gather with windows. Every rank encodes into its own window, and reads those of the others. It
/// uses barriers 2 * group and 2 * group + 1.
template <class T, class Q>
struct QuantisedGatherWindow {
  WindowView window;
  detail::CodeLayout inputs;
  QuantisedMessage<T> message;  ///< as in QuantisedGatherPackets

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t sent = 2 * group.id, read = sent + 1;
    const detail::Blocks mine = message.share(group);
    detail::encode_blocks<Q, 2>(group, message.shift, mine.first, mine.n,
                                detail::Elements<T>{message.in, message.elements},
                                [&](uint64_t unit, const Unit& codes, float scale, bool begins) {
                                  detail::store_codes(window, inputs, window.self, 1, unit, codes,
                                                      unit >> message.shift, scale, begins);
                                  return Stop::none;
                                });
    Stop stop = barrier(group, window, sent, deadline);
    if (stop != Stop::none) return stop;
    // The last to be read is this rank's own window, after the others are told that theirs are free.
    for (int32_t step = 1; step <= window.ranks; ++step) {
      const int32_t rank = (window.self + step) % window.ranks;
      if (step == window.ranks) arrive_all(group, window, read);
      detail::decode_blocks<T, Q>(group, window.base[rank], inputs, message.shift, mine.first, mine.n,
                                  message.out + uint64_t(rank) * message.elements, message.elements);
    }
    return wait_all(group, window, read, deadline);
  }
};

/// Has the links and windows for quantised collectives of a stated size, and checks their calls.
class Quantised : public Buffers {
 public:
  uint32_t block() const { return block_; }

  /// Returns the form of a call. Every rank gets the same.
  Form form(uint64_t elements) const;

 protected:
  Quantised(const char* name, World& world, uint64_t max_elements, uint32_t block, const Setup& setup,
            bool sums);

  void check(uint64_t elements, bool pointers) const;
  uint32_t shift() const { return shift_; }
  /// Returns where codes of the inputs are in a window, or those of the sums after them.
  detail::CodeLayout layout(bool sums) const;
  LaunchConfig shape(Form form, uint64_t elements) const;

  /// Makes a call by the kernel of its form.
  /// \param layouts  what the kernel for windows takes besides the window and the message
  template <class Packets, class Window, class T, class... Layouts, class = chorale::detail::Side>
  void run_as(const char* name, const T* in, T* out, uint64_t elements, LaunchStream on,
              const Layouts&... layouts) {
    check(elements, in && out);
    if (elements == 0) return;
    const QuantisedMessage<T> message{in, out, elements, shift()};
    const Form chosen = form(elements);
    const LaunchConfig launched = shape(chosen, elements);
    if (chosen == Form::packets) {
      launch(transport(), Packets{transport().table(), message}, launched, on, {name});
    } else {
      launch(transport(), Window{window(), layouts..., message}, launched, on, {name});
    }
  }

 private:
  uint32_t block_, shift_;
};

/// Adds up messages of all ranks.
class QuantisedAllReduce : public Quantised {
 public:
  /// Makes it; collective. It takes two bytes of memory for each element, and their scales. With packets it
  /// takes up to ten times the bytes that go as packets, for each rank.
  /// \param block  the elements that share a scale: 16, 32, 64, 128, 256 or 512
  /// \throws as Buffers
  explicit QuantisedAllReduce(World& world, uint64_t max_elements, uint32_t block = 128,
                              const Setup& setup = {});

  /// Makes a call, as launch() does. All ranks pass equal `elements`. `out` may be `in`. Any alignment works;
  /// multiples of 16 are fast.
  /// \throws UsageError if the call is too long or a pointer is null; otherwise as launch()
  template <class T, class Q, class = chorale::detail::Side>
  void run(const T* in, T* out, uint64_t elements, LaunchStream on = {}) {
    static_assert(is_code<Q>);
    run_as<QuantisedReducePackets<T, Q>, QuantisedReduceWindow<T, Q>>("QuantisedAllReduce", in, out, elements,
                                                                      on, layout(false), layout(true));
  }
};

/// Gathers a message of each rank. Every rank, also the sender, gets the decoded codes.
class QuantisedAllGather : public Quantised {
 public:
  /// Makes it; collective. It takes a byte of memory for each element of a rank, and their scales; with
  /// packets as QuantisedAllReduce.
  /// \throws as QuantisedAllReduce
  explicit QuantisedAllGather(World& world, uint64_t max_elements, uint32_t block = 128,
                              const Setup& setup = {});

  /// Makes a call, as launch() does. All ranks pass equal `elements`. `out` gets those of rank r from
  /// r * elements on. `in` may be this rank's part of `out`.
  /// \throws as QuantisedAllReduce::run()
  template <class T, class Q, class = chorale::detail::Side>
  void run(const T* in, T* out, uint64_t elements, LaunchStream on = {}) {
    static_assert(is_code<Q>);
    run_as<QuantisedGatherPackets<T, Q>, QuantisedGatherWindow<T, Q>>("QuantisedAllGather", in, out, elements,
                                                                      on, layout(false));
  }
};

}  // namespace chorale::fused
