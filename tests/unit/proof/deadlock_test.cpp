// These tests check plans that deadlock, and plans that only look as if they did.

#include <utility>

#include "chorale/witness.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string stuck(const Plan& plan) { return found("deadlock", plan); }

TEST(Deadlock, BothRanksWaitFirst) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control(plan, Opcode::wait, 0, rank);
    control(plan, Opcode::signal, 0, rank);
  }
  EXPECT_EQ(stuck(plan),
            "this wait never ends: it is one of a cycle of 2 waits, and each comes before the operation that "
            "would answer the previous one at 0.0.0\n"
            "  this would answer it at 1.0.1\n"
            "  but comes after this wait at 1.0.0\n"
            "  this would answer it at 0.0.1\n"
            "  but comes after the first wait at 0.0.0\n");
}

TEST(Deadlock, SignalsThatCross) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control(plan, Opcode::signal, 0, rank);
    control(plan, Opcode::wait, 1, rank);
    control(plan, Opcode::signal, 1, rank);
    control(plan, Opcode::wait, 0, rank);
  }
  EXPECT_NE(stuck(plan), "");
}

TEST(Deadlock, SignalsBeforeWaits) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control(plan, Opcode::signal, 0, rank);
    control(plan, Opcode::wait, 0, rank);
  }
  EXPECT_EQ(stuck(plan), "");
}

TEST(Deadlock, PortSignalsNeedNobody) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put_with_signal_and_flush, {in(0)}, {at(1, 0)}, {0}, ChannelType::port);
    control(plan, Opcode::wait, 0, rank, 0, ChannelType::port);
  }
  EXPECT_EQ(stuck(plan), "");
}

TEST(Deadlock, BarrierBehindASemaphoreThatTheOtherSideOfItReleases) {
  Plan plan = two_ranks();
  control(plan, Opcode::sem_acquire, 0, 0, 0);
  for (uint32_t on = 0; on < 2; ++on) {
    control(plan, Opcode::barrier, 0, 0, on);
    block(plan, 0, on).ops.back().participants = 2;
  }
  control(plan, Opcode::sem_release, 0, 0, 1);
  EXPECT_EQ(stuck(plan),
            "this acquire never ends: it is one of a cycle of 2 waits, and each comes before the operation "
            "that would answer the previous one at 0.0.0\n"
            "  this would answer it at 0.1.1\n"
            "  but comes after this barrier at 0.1.0\n"
            "  this would answer it at 0.0.1\n"
            "  but comes after the first wait at 0.0.0\n");
  plan.gpus[0].semaphores[0] = 1;
  EXPECT_EQ(stuck(plan), "");
}

TEST(Deadlock, WhoComesToABarrierTwiceDoesNotAnswerItself) {
  Plan plan = two_ranks();
  control(plan, Opcode::sem_acquire, 0, 0, 1);
  sync(plan);
  control(plan, Opcode::sem_release, 0, 0, 0);
  sync(plan);
  EXPECT_EQ(stuck(plan),
            "this barrier never ends: it is one of a cycle of 2 waits, and each comes before the operation "
            "that would answer the previous one at 0.0.0\n"
            "  this would answer it at 0.1.1\n"
            "  but comes after this acquire at 0.1.0\n"
            "  this would answer it at 0.0.1\n"
            "  but comes after the first wait at 0.0.0\n");
}

TEST(Deadlock, PacketsThatWaitForEachOther) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::unpack_packets, {scratch(0, 2)}, {out(0, 2)});
    add(block(plan, rank), Opcode::put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
  }
  EXPECT_NE(stuck(plan), "");
  for (uint32_t rank = 0; rank < 2; ++rank) std::swap(block(plan, rank).ops[0], block(plan, rank).ops[1]);
  EXPECT_EQ(stuck(plan), "");
}

/// The compiler has joined two calls to one operation. A finding is at the line of the call that never ends,
/// and names the line of the call that would answer it.
TEST(Deadlock, LinesOfJoinedCalls) {
  const auto lines = [](const Plan& plan) {
    std::string text;
    for (const Finding& finding : prove_plan(plan, all_but("deadlock")).findings) {
      text += std::to_string(author_line(plan, finding.diagnostic.line, finding.diagnostic.at).line);
      for (const Note& note : finding.diagnostic.notes)
        text += " " + std::to_string(author_line(plan, note.line, note.at).line);
      for (const WitnessEvent& event : explain(plan, finding).events)
        text += " " + std::string(event.mark) + std::to_string(event.line.line);
      text += "\n";
    }
    return text;
  };
  const auto joined = [](std::vector<JoinedCall> waits, std::vector<JoinedCall> answers) {
    Plan plan = two_ranks();
    plan.source = {{"mine.cpp", 1}, {"mine.cpp", 2}, {"mine.cpp", 3}, {"mine.cpp", 4}};
    plan.joined = {std::move(waits), std::move(answers)};
    return plan;
  };
  Plan plan = joined({{1, 0, 0, 1}, {2, 0, 0, 1}}, {{3, 0, 0, 1}, {4, 0, 0, 1}});
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control(plan, Opcode::signal, 0, rank);
    add(block(plan, rank), Opcode::wait, {}, {}, {0, 1}, ChannelType::memory).at = joined_calls;
    add(block(plan, rank), Opcode::signal, {}, {}, {0, 1}, ChannelType::memory).at = joined_calls + 1;
  }
  EXPECT_EQ(lines(plan), "2 4 2 4 2 A2 4 B2 4\n");

  Plan alone = joined({{1, 0, 0, 1}, {2, 0, 0, 1}}, {});
  control(alone, Opcode::signal, 0, 1);
  add(block(alone), Opcode::wait, {}, {}, {0, 1}, ChannelType::memory).at = joined_calls;
  EXPECT_EQ(lines(alone), "2 A2\n");

  Plan packets = joined({{1, 2, 1, 0}, {2, 1, 0, 0}}, {{3, 1, 1, 0}, {4, 1, 1, 0}});
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(packets, rank), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    add(block(packets, rank), Opcode::reduce_packets, {in(0), scratch(0), scratch(1)}, {out(0)}).at =
        joined_calls;
    add(block(packets, rank), Opcode::put_packets, {in(0), in(1)}, {at(2, 2), at(2, 1)}, {},
        ChannelType::memory)
        .at = joined_calls + 1;
  }
  EXPECT_EQ(lines(packets), "2 4 2 4 2 A2 4 B2 4\n");
}

/// A consumer acquires what a producer released. The producer may be two turns ahead.
Plan pipeline(int64_t room) {
  Plan plan = two_ranks();
  plan.gpus[0].semaphores = {0, room, 0};
  for (uint32_t on = 0; on < 2; ++on) {
    Op& loop = append(block(plan, 0, on), Opcode::pipeline, {}, {});
    loop.unit_bytes = 16;
    loop.chunks = 1;
    loop.body = 2;
    control(plan, Opcode::sem_acquire, on == 0 ? 1 : 0, 0, on);
    control(plan, Opcode::sem_release, on == 0 ? 0 : 1, 0, on);
  }
  return plan;
}

TEST(Deadlock, PipelinesHandOver) {
  EXPECT_EQ(stuck(pipeline(2)), "");
  EXPECT_NE(stuck(pipeline(0)), "");
}

TEST(Deadlock, OnlySomeTurnsFit) {
  // Nothing is given back, so there is space for two turns only.
  Plan plan = pipeline(2);
  plan.gpus[0].threadblocks[1].ops.pop_back();
  plan.gpus[0].threadblocks[1].ops[0].body = 1;
  EXPECT_EQ(stuck(plan), "this acquire never ends: no remaining operation would answer it at 0.0.1\n");
}

TEST(Deadlock, OneOrderOfCompetitors) {
  // The block that gets the lock second waits for a signal that the first block sends only after its own
  // second lock.
  Plan plan = two_ranks();
  plan.gpus[0].semaphores = {1, 0, 0};
  control(plan, Opcode::sem_acquire, 0, 0, 0);
  control(plan, Opcode::sem_release, 0, 0, 0);
  control(plan, Opcode::sem_release, 1, 0, 0);
  control(plan, Opcode::sem_acquire, 0, 0, 1);
  control(plan, Opcode::sem_acquire, 1, 0, 1);
  control(plan, Opcode::sem_release, 0, 0, 1);
  EXPECT_NE(stuck(plan), "");
}

}  // namespace
}  // namespace chorale
