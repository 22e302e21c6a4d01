// These tests check critical paths, lines and totals of launches whose spans are made by hand, so that every
// time is known.

#include "tests/unit/profile/traced.hpp"

namespace chorale {
namespace {

std::string path_words(const ProfilePlace& place) {
  if (place.kind == ProfilePlace::Kind::rank_begins) return "rank begins";
  if (place.kind == ProfilePlace::Kind::block_begins) return "block begins";
  return std::string(place.name) + ":" + std::to_string(place.line.line);
}

/// Returns a line for each stretch: "rank.block operation:line from-to", in microseconds.
std::string path(const Profile& profile) {
  std::string text;
  for (const ProfileStretch& stretch : profile.path) {
    text += std::to_string(stretch.rank) + "." + std::to_string(stretch.block) + " " +
            path_words(stretch.place) + " " + std::to_string(stretch.from_ns / 1000) + "-" +
            std::to_string(stretch.to_ns / 1000);
    if (stretch.waited == ProfileStretch::Waited::unknown) text += " unknown";
    if (stretch.waited == ProfileStretch::Waited::before) text += " released";
    if (stretch.waited == ProfileStretch::Waited::for_peers) {
      text += " for";
      for (const uint32_t peer : stretch.peers) text += " " + std::to_string(peer);
      text += " at " + (stretch.peers_line ? std::to_string(stretch.peers_line->line) : "several");
    }
    text += "\n";
  }
  return text;
}

/// Returns "operation:line n total path longest@rank.block", in microseconds.
std::string line_text(const ProfileLine& line) {
  return path_words(line.place) + " " + std::to_string(line.spans) + " " +
         std::to_string(line.total_ns / 1000) + " " + std::to_string(line.path_ns / 1000) + " " +
         std::to_string(line.longest_ns / 1000) + "@" + std::to_string(line.rank) + "." +
         std::to_string(line.block);
}

std::string totals(const Profile& profile) {
  const ProfileTotals& of = profile.totals;
  return std::to_string(of.waiting_ns / 1000) + " " + std::to_string(of.moving_ns / 1000) + " " +
         std::to_string(of.waiting_or_moving_ns / 1000) + " " + std::to_string(of.earlier_turns_ns / 1000) +
         " " + std::to_string(of.other_ns / 1000);
}

TEST(Profile, ASlowRankIsTheTopLine) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {100, 110, 112, 207});
  ran(spans, plan, 1, 0, {103, 200, 202, 205});
  const Profile found = profile_of_spans(plan, spans);
  EXPECT_EQ(found.launch, traced_launch);
  EXPECT_EQ(found.launch_ns, 107000u);
  EXPECT_EQ(found.rank, 0u);
  EXPECT_EQ(path(found),
            "1.0 rank begins 0-3\n"
            "1.0 put:1 3-100\n"
            "1.0 signal:2 100-102\n"
            "0.0 wait:3 102-107 released\n");
  ASSERT_EQ(found.lines.size(), 4u);
  EXPECT_EQ(line_text(found.lines[0]), "put:1 2 107 97 97@1.0");
  EXPECT_EQ(line_text(found.lines[1]), "wait:3 2 98 5 95@0.0");
  EXPECT_EQ(line_text(found.lines[2]), "rank begins 0 0 3 3@1.0");
  EXPECT_EQ(line_text(found.lines[3]), "signal:2 2 4 2 2@0.0");
  EXPECT_EQ(totals(found), "98 107 0 0 4");
}

TEST(Profile, WhoDidNotWaitGoesOnInItsOwnBlock) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 50, 51, 52});
  ran(spans, plan, 1, 0, {0, 10, 11, 51});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "0.0 put:1 0-50\n"
            "0.0 signal:2 50-51\n"
            "0.0 wait:3 51-52\n");
}

TEST(Profile, ASignalThatIsStillUnderWayHasReleased) {
  // The span of the signal ends after the wait that it released, so the path continues at the wait's end.
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 1, 2, 40});
  ran(spans, plan, 1, 0, {0, 30, 60, 61});
  EXPECT_EQ(path(profile_of_spans(plan, {spans.begin(), spans.begin() + 5})),
            "1.0 put:1 0-30\n"
            "1.0 signal:2 30-60\n");
  spans[4].end_ns = 35000;
  EXPECT_EQ(path(profile_of_spans(plan, {spans.begin(), spans.begin() + 5})),
            "1.0 put:1 0-30\n"
            "1.0 signal:2 30-35\n"
            "0.0 wait:3 35-40 released\n");
}

TEST(Profile, TheLastToArriveAtABarrier) {
  Plan plan = two_ranks();
  for (const uint32_t on : {0u, 1u}) {
    add(block(plan, 0, on), Opcode::copy, {in(on)}, {out(on)});
    add(block(plan, 0, on), Opcode::barrier, {}, {}, {0}).participants = 2;
  }
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 5, 43});
  ran(spans, plan, 0, 1, {0, 40, 42});
  const Profile found = profile_of_spans(plan, spans);
  EXPECT_EQ(path(found),
            "0.1 copy:11 0-40\n"
            "0.0 barrier:2 40-43 released\n");
  EXPECT_EQ(totals(found), "40 45 0 0 0");
}

TEST(Profile, TheLastOfSeveralReleases) {
  Plan plan = two_ranks();
  add_blocks(plan, 3);
  for (const uint32_t on : {0u, 1u}) {
    add(block(plan, 0, on), Opcode::copy, {in(on)}, {out(on)});
    add(block(plan, 0, on), Opcode::sem_release, {}, {}, {on});
  }
  add(block(plan, 0, 2), Opcode::sem_acquire, {}, {}, {0, 1});
  number_lines(plan);
  for (const bool second : {false, true}) {
    std::vector<TraceSpan> spans;
    ran(spans, plan, 0, 0, {0, second ? 10u : 30u, second ? 11u : 31u});
    ran(spans, plan, 0, 1, {0, 20, 21});
    ran(spans, plan, 0, 2, {0, 35});
    EXPECT_EQ(path(profile_of_spans(plan, spans)), second ? "0.1 copy:11 0-20\n"
                                                            "0.1 sem_release:12 20-21\n"
                                                            "0.2 sem_acquire:21 21-35 released\n"
                                                          : "0.0 copy:1 0-30\n"
                                                            "0.0 sem_release:2 30-31\n"
                                                            "0.2 sem_acquire:21 31-35 released\n");
  }
}

TEST(Profile, WhoReleasesIsNotKnownWhereBlocksCompete) {
  Plan plan = two_ranks();
  add_blocks(plan, 3);
  for (const uint32_t on : {0u, 1u}) add(block(plan, 0, on), Opcode::sem_release, {}, {}, {0});
  for (int turn = 0; turn < 2; ++turn) add(block(plan, 0, 2), Opcode::sem_acquire, {}, {}, {0});
  number_lines(plan);
  block(plan, 0, 2).ops[1].at = block(plan, 0, 2).ops[0].at;
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {10, 11});
  ran(spans, plan, 0, 1, {20, 21});
  ran(spans, plan, 0, 2, {0, 30, 31});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "0.2 sem_acquire:21 0-30 unknown\n"
            "0.2 sem_acquire:21 30-31\n");
}

/// Rank 0 sends a packet, which rank 1 unpacks.
Plan packets() {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  number_lines(plan);
  return plan;
}

TEST(Profile, PacketsAreWaitedForAndThenMoved) {
  const Plan plan = packets();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {10, 30});
  ran(spans, plan, 1, 0, {0, 37});
  const Profile found = profile_of_spans(plan, spans);
  EXPECT_EQ(path(found),
            "0.0 rank begins 0-10\n"
            "0.0 put_packets:1 10-30\n"
            "1.0 unpack_packets:1 30-37 released\n");
  EXPECT_EQ(totals(found), "30 27 0 0 0");
}

TEST(Profile, NeighboursOfOneLineInOneBlockAreOneStretch) {
  Plan plan = two_ranks();
  for (uint32_t op = 0; op < 3; ++op) add(block(plan), Opcode::copy, {in(op)}, {out(op)});
  number_lines(plan);
  block(plan).ops[1].at = block(plan).ops[0].at;
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 10, 30, 60});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "0.0 copy:1 0-30\n"
            "0.0 copy:3 30-60\n");
}

TEST(Profile, NeighboursOfOneLineInOthersAreNot) {
  for (const bool of_one_rank : {false, true}) {
    Plan plan = two_ranks();
    add_blocks(plan, 3);
    const uint32_t next = of_one_rank ? 0 : 1, on = of_one_rank ? 2 : 1;
    if (of_one_rank) {
      add(block(plan), Opcode::copy_packets, {in(0)}, {scratch(0)});
      add(block(plan, 0, 1), Opcode::reduce_copy_packets, {in(0), scratch(0)}, {out(0), scratch(1)});
      add(block(plan, 0, 2), Opcode::reduce_copy_packets, {in(0), scratch(1)}, {out(1), scratch(2)});
    } else {
      add(block(plan, 1), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
      add(block(plan, 0, 1), Opcode::read_put_packets, {scratch(0)}, {at(2, 1)}, {}, ChannelType::memory);
      add(block(plan, 1, 1), Opcode::read_put_packets, {scratch(1)}, {at(2, 2)}, {}, ChannelType::memory);
    }
    number_lines(plan);
    block(plan, next, on).ops[0].at = block(plan, 0, 1).ops[0].at;
    std::vector<TraceSpan> spans;
    ran(spans, plan, of_one_rank ? 0 : 1, 0, {0, 10});
    ran(spans, plan, 0, 1, {0, 20});
    ran(spans, plan, next, on, {0, 30});
    EXPECT_EQ(path(profile_of_spans(plan, spans)), of_one_rank ? "0.0 copy_packets:1 0-10\n"
                                                                 "0.1 reduce_copy_packets:11 10-20 released\n"
                                                                 "0.2 reduce_copy_packets:11 20-30 released\n"
                                                               : "1.0 put_packets:1 0-10\n"
                                                                 "0.1 read_put_packets:11 10-20 released\n"
                                                                 "1.1 read_put_packets:11 20-30 released\n");
  }
}

TEST(Profile, ABlockThatBeginsLate) {
  Plan plan = two_ranks();
  for (const uint32_t on : {0u, 1u}) add(block(plan, 1, on), Opcode::copy, {in(on)}, {out(on)});
  add(block(plan, 0), Opcode::copy, {in(0)}, {out(0)});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {5, 6});
  ran(spans, plan, 1, 0, {12, 13});
  ran(spans, plan, 1, 1, {15, 20});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "1.0 rank begins 0-7\n"
            "1.1 block begins 7-10\n"
            "1.1 copy:11 10-15\n");
}

TEST(Profile, ClocksOfGpusAreNotCompared) {
  // Rank 1's clock is far behind, and rank 0 took longest.
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {1000, 1010, 1012, 1107});
  ran(spans, plan, 1, 0, {3, 90, 92, 95});
  const Profile found = profile_of_spans(plan, spans, Clocks::per_rank);
  EXPECT_EQ(found.rank, 0u);
  EXPECT_EQ(found.launch_ns, 107000u);
  EXPECT_EQ(path(found),
            "0.0 put:1 0-10\n"
            "0.0 signal:2 10-12\n"
            "0.0 wait:3 12-107 for 1 at 2\n");
  EXPECT_EQ(totals(found), "98 97 0 0 4");
}

TEST(Profile, OfTheRankThatTookLongestWhichNeedNotBeTheFirst) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 1, 0, {3, 90, 92, 95});
  ran(spans, plan, 0, 0, {1000, 1010, 1012, 1017});
  EXPECT_EQ(profile_of_spans(plan, spans, Clocks::per_rank).rank, 1u);
  // Some ranks have no operations, and some operations take no time.
  spans.clear();
  ran(spans, plan, 1, 0, {5, 5, 5, 5});
  const Profile found = profile_of_spans(plan, spans, Clocks::per_rank);
  EXPECT_EQ(found.rank, 1u);
  EXPECT_EQ(found.launch_ns, 0u);
  EXPECT_EQ(path(found), "");
}

TEST(Profile, OfPacketsFromAPeersClockWaitingIsNotToldFromMoving) {
  const Plan plan = packets();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 20});
  ran(spans, plan, 1, 0, {7000, 7037});
  const Profile found = profile_of_spans(plan, spans, Clocks::per_rank);
  EXPECT_EQ(path(found), "1.0 unpack_packets:1 0-37 for 0 at 1\n");
  EXPECT_EQ(totals(found), "0 20 37 0 0");
}

TEST(Profile, BlocksOfOneGpuAreFollowed) {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan, 0), Opcode::sem_release, {}, {}, {0});
  add(block(plan, 0, 1), Opcode::sem_acquire, {}, {}, {0});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {50, 80, 81});
  ran(spans, plan, 0, 1, {50, 90});
  EXPECT_EQ(path(profile_of_spans(plan, spans, Clocks::per_rank)),
            "0.0 copy:1 0-30\n"
            "0.0 sem_release:2 30-31\n"
            "0.1 sem_acquire:11 31-40 released\n");
}

TEST(Profile, WaitsThatAGpuHasJoined) {
  // There is one span for two waits, whose signals are at two lines. The second signal is the late one.
  Plan plan = two_ranks();
  for (const uint32_t on : {0u, 1u}) {
    add(block(plan, 0, on), Opcode::copy, {in(on)}, {out(on)});
    add(block(plan, 0, on), Opcode::sem_release, {}, {}, {on});
  }
  add_blocks(plan, 3);
  block(plan, 0, 2).ops.clear();
  for (const uint32_t id : {0u, 1u}) add(block(plan, 0, 2), Opcode::sem_acquire, {}, {}, {id});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 10, 11});
  ran(spans, plan, 0, 1, {0, 30, 31});
  ran(spans, plan, 0, 2, {0, 35, 35});
  spans.pop_back();
  EXPECT_EQ(path(profile_of_spans(plan, spans, Clocks::per_rank)),
            "0.1 copy:11 0-30\n"
            "0.1 sem_release:12 30-31\n"
            "0.2 sem_acquire:21 31-35 released\n");
}

TEST(Profile, EarlierTurnsOfAPipelineAreOneSpan) {
  Plan plan = two_ranks();
  Op& pipeline = add(block(plan, 0), Opcode::pipeline);
  pipeline.body = 1;
  pipeline.unit_bytes = 64;
  pipeline.chunks = 1;
  add(block(plan, 0), Opcode::copy, {in(0)}, {out(0)});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 90, 100});
  const Profile found = profile_of_spans(plan, spans);
  EXPECT_EQ(path(found),
            "0.0 pipeline:1 0-90\n"
            "0.0 copy:2 90-100\n");
  EXPECT_EQ(totals(found), "0 10 0 90 0");
}

TEST(Profile, OfTheLastLaunchOfTheMessage) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 10, 20, 30}, 7);
  ran(spans, plan, 0, 0, {100, 101, 102, 103}, 8);
  ran(spans, plan, 1, 0, {100, 101, 102, 103}, 8);
  ran(spans, plan, 0, 0, {200, 210, 220, 230}, 9);
  for (size_t at = spans.size() - 3; at < spans.size(); ++at) spans[at].bytes = 64;
  const Profile found = profile_of_spans(plan, spans);
  EXPECT_EQ(found.launch, 8u);
  EXPECT_EQ(found.launch_ns, 3000u);
  EXPECT_EQ(profile_of_spans(plan, {}).launch, 0u);
  EXPECT_EQ(profile_of_spans(plan, {}).lines.size(), 0u);
}

TEST(Profile, ClocksThatContradictThePlanAreNotBelieved) {
  // The signal begins after the wait for it has ended.
  Plan plan = exchange();
  add(block(plan, 0), Opcode::copy, {in(1)}, {out(1)});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {0, 10, 12, 40, 100});
  ran(spans, plan, 1, 0, {0, 50, 52, 60});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "0.0 put:1 0-10\n"
            "0.0 signal:2 10-12\n"
            "0.0 wait:3 12-40 unknown\n"
            "0.0 copy:4 40-100\n");
}

TEST(Profile, OfALaunchThatStopped) {
  // The operation that rank 1 waits for has no span.
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 1, 0, {0, 10, 12, 500});
  EXPECT_EQ(path(profile_of_spans(plan, spans)),
            "1.0 put:1 0-10\n"
            "1.0 signal:2 10-12\n"
            "1.0 wait:3 12-500 unknown\n");
}

}  // namespace
}  // namespace chorale
