// These tests check that MSCCL++'s executor orders these operations only if a nop or a barrier is between
// them.

#include "target_found.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

std::string name_of_code(Opcode code) { return "'" + std::string(info(code).name) + "'"; }

std::string early_access(const char* access, const char* wait, const char* threads) {
  return "[mscclpp_fences] '" + std::string(access) + "' comes after " + wait +
         ", with no nop or barrier between them, but in MSCCL++ only " + threads + " there\n";
}

std::string early_post(const char* post, const char* access) {
  return "[mscclpp_fences] " + std::string(post) + " comes after '" + access +
         "', with no nop or barrier between them, but in MSCCL++ it waits for no other thread\n";
}

TEST(Target, FencesBehindWaits) {
  for (const Opcode code : {wait, relaxed_wait, sem_acquire}) {
    for (const bool fenced : {true, false}) {
      Plan plan = two_ranks();
      const bool semaphore = code == sem_acquire;
      add(block(plan), code, {}, {}, {0}, semaphore ? ChannelType::none : memory);
      if (fenced) add(block(plan), nop);
      add(block(plan), copy, {in(0)}, {out(0)});
      add(block(plan), copy, {in(1)}, {out(1)});
      const std::string what = name_of_code(code) + (semaphore ? " of 1 semaphore" : " of 1 channel");
      EXPECT_EQ(found(plan), fenced ? "" : early_access("copy", what.c_str(), "1 thread waits"));
    }
  }
}

TEST(Target, FencesBeforeSignals) {
  for (const Opcode code : {signal, sem_release}) {
    for (const bool fenced : {true, false}) {
      Plan plan = two_ranks();
      const bool semaphore = code == sem_release;
      add(block(plan), copy, {in(0)}, {out(0)});
      if (fenced) add(block(plan), nop);
      add(block(plan), code, {}, {}, {0}, semaphore ? ChannelType::none : memory);
      // The signal does not order an operation after it, which needs no fence.
      add(block(plan), copy, {in(1)}, {out(1)});
      const std::string what = name_of_code(code) + (semaphore ? " of 1 semaphore" : " of 1 channel");
      EXPECT_EQ(found(plan), fenced ? "" : early_post(what.c_str(), "copy"));
    }
  }
  // A relaxed signal orders no data anyway.
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), relaxed_signal, {}, {}, {0}, memory);
  EXPECT_EQ(found(plan), "");
}

// The thread that waits also hands over the transfer.
TEST(Target, FencesOfPortChannels) {
  Plan plan = two_ranks();
  add(block(plan), wait, {}, {}, {0}, port);
  add(block(plan), put, {in(0)}, {at(1, 0)}, {0}, port);
  add(block(plan), signal, {}, {}, {0}, port);
  EXPECT_EQ(found(plan), "");
  add(block(plan), wait, {}, {}, {0, 1}, port);
  add(block(plan), put_with_signal, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(found(plan), early_access("put_with_signal", "'wait' of 2 channels", "2 threads wait"));
}

// The first operations of a pipeline's body follow its last ones, in the next turn.
TEST(Target, FencesOfPipelines) {
  for (const bool fenced : {true, false}) {
    Plan plan = two_ranks();
    plan.max_message_size = 1 << 20;
    pipeline_of(plan, 4);
    add(block(plan), sem_release, {}, {}, {0});
    add(block(plan), sem_acquire, {}, {}, {1});
    add(block(plan), nop);
    add(block(plan), copy, {in(0)}, {out(0)});
    EXPECT_EQ(found(plan), early_post("'sem_release' of 1 semaphore", "copy"));
    if (fenced) {
      block(plan).ops[0].body = 5;
      add(block(plan), nop);
      EXPECT_EQ(found(plan), "");
    }
    // The operations after the pipeline follow its last ones, too.
    add(block(plan), signal, {}, {}, {0}, memory);
    EXPECT_EQ(found(plan), fenced ? ""
                                  : early_post("'sem_release' of 1 semaphore", "copy") +
                                        early_post("'signal' of 1 channel", "copy"));
  }
}

}  // namespace
}  // namespace chorale
