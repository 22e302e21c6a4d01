// These tests are about port channels, which hand transfers to the proxy. The proxy does them later.

#include "litmus.hpp"

namespace chorale::litmus {
namespace {

enum class Told { behind, by_memory, by_memory_when_flushed };

Program sent_by_proxy(Told told) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const PortChannel port(program, 1, 0), port_back(program, 0, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  port.put(scratch[0], input(program, 0), 0);
  if (told == Told::behind) {
    port.signal(0, SyncType::none);
    port_back.wait(0, SyncType::none);
  } else {
    if (told == Told::by_memory_when_flushed) port.flush(0, SyncType::none);
    there.signal(0, SyncType::none);
    back.wait(0, SyncType::none);
  }
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  return program;
}

TEST(Litmus, port_signal_is_behind_its_data) { expect_promised(sent_by_proxy(Told::behind)); }
TEST(Litmus, memory_signal_overtakes_port_data) { expect_not_promised(sent_by_proxy(Told::by_memory)); }
TEST(Litmus, flush_is_no_arrival) { expect_not_promised(sent_by_proxy(Told::by_memory_when_flushed)); }

/// The proxy sees everything that the block did before it handed the transfer over.
TEST(Litmus, proxy_sees_what_the_block_did) {
  Program program = program_of(2, sent);
  const Buffer source(program, 0, 1), scratch(program, 1, 1);
  const PortChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(source[0], input(program, 0), 0);
  there.put_with_signal(scratch[0], source[0], 0);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  expect_promised(program);
}

/// The source is overwritten after the put.
Program source_overwritten(bool flushed) {
  Program program = program_of(2, {{1, 0, 0, 0}, {0, 1, 0, 1}});
  const Buffer source(program, 0, 1), scratch(program, 1, 1);
  const PortChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(source[0], input(program, 0), 0);
  there.put_with_signal(scratch[0], source[0], 0);
  if (flushed) there.flush(0, SyncType::none);
  program.rank(0).copy(source[0], input(program, 0, 1), 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(output(program, 0, 1), source[0], 0);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  return program;
}

TEST(Litmus, flush_frees_the_source) { expect_promised(source_overwritten(true)); }
TEST(Litmus, put_reads_its_source_late) { expect_not_promised(source_overwritten(false)); }

/// Without a flush, the application overwrites its input after the launch has ended.
TEST(Litmus, launch_ends_when_the_proxy_has_read) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const PortChannel there(program, 1, 0), back(program, 0, 1);
  there.put_with_signal(scratch[0], input(program, 0), 0);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  expect_promised(program);
}

/// The proxy of rank 0 puts into the output of rank 1, which has or has not signalled that its launch has
/// begun.
Program put_into_the_output(bool asked) {
  Program program = program_of(2, sent);
  const PortChannel there(program, 1, 0), back(program, 0, 1);
  if (asked) {
    back.signal(0, SyncType::none);
    there.wait(0, SyncType::none);
  }
  there.put_with_signal(output(program, 1), input(program, 0), 0);
  back.wait(0, SyncType::none);
  return program;
}

TEST(Litmus, asked_port_transfers_follow_the_beginning) { expect_promised(put_into_the_output(true), 3); }
TEST(Litmus, port_transfers_precede_a_launch) { expect_not_promised(put_into_the_output(false)); }

}  // namespace
}  // namespace chorale::litmus
