// These tests are about launches in a row, with the application between them.

#include "litmus.hpp"

namespace chorale::litmus {
namespace {

/// Sends a message by plain put and signal in every launch.
Program message(bool answered, bool double_scratch = false) {
  Program program = program_of(2, sent, double_scratch);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  if (answered) {
    back.signal(0, SyncType::none);
    there.wait(0, SyncType::none);
  }
  return program;
}

TEST(Litmus, answered_launches_are_apart) { expect_promised(message(true), 3); }
TEST(Litmus, the_next_launch_overtakes_readers) {
  expect_not_promised(message(false), Kind::wrong_result, 3);
}
/// Two banks only delay the error by one launch.
TEST(Litmus, two_banks_last_for_two_launches) {
  expect_promised(message(false, true), 2);
  expect_not_promised(message(false, true), Kind::wrong_result, 4);
}

/// Rank 1 reads the input of rank 0. If `answered` is set, rank 0 waits until that is done.
Program read(bool answered) {
  Program program = program_of(2, sent);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.get(output(program, 1), input(program, 0), 0);
  if (answered) {
    back.signal(0, SyncType::none);
    there.wait(0, SyncType::none);
  }
  return program;
}

TEST(Litmus, answered_reads_precede_the_end) { expect_promised(read(true), 3); }
TEST(Litmus, launch_ends_before_peers_have_read) { expect_not_promised(read(false), Kind::overwrite_seen); }

/// Rank 0 puts into the output of rank 1, which has or has not signalled that its launch has begun.
Program written(bool asked) {
  Program program = program_of(2, sent);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  if (asked) {
    back.signal(0, SyncType::none, true);
    there.wait(0, SyncType::none, true);
  }
  there.put(output(program, 1), input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  return program;
}

TEST(Litmus, asked_writes_follow_the_beginning) { expect_promised(written(true), 3); }
TEST(Litmus, peers_write_before_a_launch_begins) { expect_not_promised(written(false), Kind::wrong_result); }

/// Rank 1 does not wait for the data that is put into its output.
TEST(Litmus, launch_ends_before_peers_have_written) {
  Program program = program_of(2, sent);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  back.signal(0, SyncType::none, true);
  there.wait(0, SyncType::none, true);
  there.put(output(program, 1), input(program, 0), 0);
  expect_not_promised(program);
}

/// Data in scratch at the end of a launch are still there in the next launch: each launch outputs the input
/// of the previous one.
TEST(Litmus, a_launch_sees_those_before_it) {
  Program program({.name = "litmus",
                   .collective = TestCollective{.ranks = 1, .input = 1, .output = 1},
                   .fuse = false,
                   .auto_sync = false});
  const Buffer scratch(program, 0, 1);
  program.rank(0).copy(output(program, 0), scratch[0], 0);
  program.rank(0).barrier({0, 1});
  program.rank(0).copy(scratch[0], input(program, 0), 1);
  expect_promised(program, 4);
}

}  // namespace
}  // namespace chorale::litmus
