// These tests are about packets.

#include "litmus.hpp"

namespace chorale::litmus {
namespace {

Program packet(bool answered) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put_packets(scratch[0], input(program, 0), 0);
  program.rank(1).unpack_packets(output(program, 1), scratch[0], 0);
  if (answered) {
    back.signal(0, SyncType::none);
    there.wait(0, SyncType::none);
  }
  return program;
}

TEST(Litmus, packets_carry_their_data) { expect_promised(packet(false)); }
TEST(Litmus, answered_packets_are_never_overrun) { expect_promised(packet(true), 4); }
/// With two banks the third launch writes where the first one reads.
TEST(Litmus, unanswered_packets_are_overrun) { expect_not_promised(packet(false), Kind::deadlock, 4); }

/// Each rank sends to the other. A rank that has received the packets of a launch knows that those of the
/// previous launch have been read.
TEST(Litmus, exchanged_packets_answer_each_other) {
  Program program = program_of(2, {{1, 0, 0, 0}, {0, 0, 1, 0}});
  for (int rank = 0; rank < 2; ++rank) {
    const Buffer scratch(program, rank, 1);
    const MemoryChannel there(program, rank, 1 - rank);
    there.put_packets(scratch[0], input(program, 1 - rank), 0);
    program.rank(rank).unpack_packets(output(program, rank), scratch[0], 0);
  }
  expect_promised(program, 4);
}

/// Rank 0 puts plain data, synchronises the block, and then sends a packet.
TEST(Litmus, packets_publish_nothing_else) {
  Program program = program_of(2, {{1, 0, 0, 0}, {1, 1, 0, 1}});
  const Buffer scratch(program, 1, 2);
  const MemoryChannel there(program, 1, 0);
  there.put(scratch[0], input(program, 0), 0);
  program.rank(0).barrier({0});
  there.put_packets(scratch[1], input(program, 0, 1), 0);
  program.rank(1).unpack_packets(output(program, 1, 1), scratch[1], 0);
  program.rank(1).barrier({0});
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  expect_not_promised(program);
}

/// Rank 1 answers with a packet when it has read; rank 0 then overwrites what was read.
TEST(Litmus, packets_end_reads) {
  Program program = program_of(2, {{1, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}});
  const Buffer scratch(program, 0, 2);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.get(output(program, 1), scratch[0], 0);
  program.rank(1).barrier({0});
  back.put_packets(scratch[1], input(program, 1, 1), 0);
  program.rank(0).unpack_packets(output(program, 0), scratch[1], 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(scratch[0], input(program, 0, 1), 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(output(program, 0, 1), scratch[0], 0);
  expect_promised(program);
}

/// Rank 1 sends the data that rank 0 has put there back as packets. Rank 0 then overwrites them: if `read` is
/// set, only after it has received the packets.
Program overwrite_source(bool read) {
  Program program = program_of(2, {{0, 0, 0, 0}, {1, 0, 0, 1}});
  const Buffer answer(program, 0, 1), kept(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  const auto take = [&] { program.rank(0).unpack_packets(output(program, 0), answer[0], 0); };
  there.put(kept[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.put_packets(answer[0], kept[0], 0);
  if (read) take();
  program.rank(0).barrier({0});
  there.put(kept[0], input(program, 0, 1), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), kept[0], 0);
  back.signal(0);
  there.wait(0);
  if (!read) take();
  return program;
}
TEST(Litmus, packets_end_reads_of_what_they_are_made_of) { expect_promised(overwrite_source(true)); }
TEST(Litmus, packets_that_nobody_has_got_end_no_reads) { expect_not_promised(overwrite_source(false)); }

/// Another block forwards the answer: its packet is made from the one that it has received.
TEST(Litmus, forwarded_packets_end_reads) {
  Program program = program_of(2, {{1, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}});
  const Buffer scratch(program, 0, 2), own(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.get(output(program, 1), scratch[0], 0);
  program.rank(1).barrier({0});
  program.rank(1).copy_packets(own[0], input(program, 1, 1), 0);
  back.read_put_packets(scratch[1], own[0], 1);
  program.rank(0).unpack_packets(output(program, 0), scratch[1], 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(scratch[0], input(program, 0, 1), 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(output(program, 0, 1), scratch[0], 0);
  expect_promised(program);
}

/// Rank 1 reads between two packets; the operation that receives both overwrites the data that was read.
Program read_between_packets(uint32_t chunk) {
  Program program = program_of(2, {{1, 1, 0, chunk}});
  const Buffer scratch(program, 0, 4);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(scratch[{0, 2}], program.rank(0).get_input_buffer()[{0, 2}], 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.put_packets(scratch[3], input(program, 1, 1), 0);
  back.get(output(program, 1, 1), scratch[chunk], 0);
  program.rank(1).barrier({0});
  back.put_packets(scratch[2], input(program, 1, 0), 0);
  program.rank(0).unpack_packets(scratch[{0, 2}], scratch[{2, 4}], 0);
  return program;
}
TEST(Litmus, packets_tell_threads_that_wait_for_them) { expect_promised(read_between_packets(0)); }
TEST(Litmus, packets_tell_no_other_threads) { expect_not_promised(read_between_packets(1)); }

}  // namespace
}  // namespace chorale::litmus
