#pragma once
/// \file
/// Makes random programs, and random changes of one. A signal is awaited, a removed operation takes its other
/// end with it, and packets that are sent are usually read. The proofs say whether a program is right.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "executor/adversary/turns.hpp"
#include "program.hpp"

namespace chorale::random {

/// Says how a program begins.
enum class Start : uint8_t {
  nothing,
  pipelines,  ///< one in each block; posts between blocks, inside and outside a turn, let them run
              ///< ahead
  rivals,     ///< blocks of one rank whose pipelines compete for semaphores; they compute a sum
};

class Changes {
 public:
  Changes(uint64_t seed, Start);

  const Program& program() const { return program_; }
  void restore(Program before) { program_ = std::move(before); }

  /// Makes some changes at once, usually one.
  void make();
  /// Removes operations, or makes the program less special.
  void simplify();

 private:
  struct Place {
    uint32_t rank = 0, block = 0;
    size_t position = 0;
  };

  uint32_t below(size_t n) { return draw_.below(uint32_t(n)); }
  bool one_in(uint32_t n) { return draw_.one_in(n); }
  uint32_t another(uint32_t rank) { return (rank + 1 + below(program_.ranks - 1)) % program_.ranks; }
  Block& at(uint32_t rank, uint32_t block) { return program_.of[rank][block]; }
  Block& block_at(const Place& place) { return at(place.rank, place.block); }
  size_t somewhere(const Block& block) { return below(block.size() + 1); }
  Place any_block() { return {below(program_.ranks), below(program_.blocks)}; }
  bool pick(Place&);

  void begin_with_rivals();
  void begin_with_pipelines();

  Item control(Opcode, ChannelType, uint32_t id, uint32_t participants = 0) const;
  Item pipeline(size_t body) const;
  /// Return the operation by which block `from` posts to block `to`, and the one by which `to` waits for it.
  Item give(const Place& from, const Place& to);
  Item take(const Place& from, const Place& to);
  Operand part(BufferKind, uint32_t ref, uint64_t chunks);
  Item data(Opcode, uint32_t rank, uint32_t block, uint64_t chunks);
  Item sum_into_output();
  Opcode any_data();
  uint64_t any_size() { return 1 + one_in(3); }

  void change();
  void add_data();
  void add_signal();
  void add_semaphore();
  void add_barrier();
  void add_packets();
  void add_answered_packets();
  void add_wait_for_rival();
  void wrap();
  void move();
  void change_operand();
  void change_code();
  void remove();
  template <class Match>
  void remove_one(Block&, Match&&);

  adversary::Draw draw_;
  Start start_;
  Program program_;
  uint32_t unit_ = 0, loop_chunks_ = 1;  ///< the values of most pipelines
};

}  // namespace chorale::random
