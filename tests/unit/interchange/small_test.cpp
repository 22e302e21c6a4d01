// These tests show the graphs of small plans: a line is the node of a rank, what it is, and the nodes that it
// waits for.

#include <gtest/gtest.h>

#include "chorale/interchange.hpp"
#include "chorale/usage_error.hpp"
#include "tests/unit/message_of_error.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

using test::message_of_error;

std::string shown(const MessageGraph& graph) {
  std::string text;
  for (size_t rank = 0; rank < graph.ranks.size(); ++rank) {
    for (size_t id = 0; id < graph.ranks[rank].size(); ++id) {
      const GraphNode& node = graph.ranks[rank][id];
      text += std::to_string(rank) + "." + std::to_string(id) + " block " + std::to_string(node.block) + " ";
      if (node.kind == GraphNode::Kind::work) {
        text += node.name;
      } else {
        text += (node.kind == GraphNode::Kind::send ? "send to " : "receive from ") +
                std::to_string(node.peer) + " tag " + std::to_string(node.tag) + ": " +
                (node.signal ? "signal of " + node.name : std::to_string(node.bytes) + " by " + node.name);
      }
      for (size_t k = 0; k < node.after.size(); ++k)
        text += (k ? " " : " after ") + std::to_string(node.after[k]);
      text += "\n";
    }
  }
  return text;
}

MessageGraph graph_of(const Plan& plan, const Machine* machine = nullptr) {
  return message_graph(plan, {.bytes = made_up_bytes, .dtype = DType::u8, .packet = PacketForm::ll16},
                       machine);
}

TEST(MessageGraph, OfAPutAndItsSignalIsOneMessage) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add_hop(plan, 0);
  add(block(plan, 1), Opcode::copy, {in(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put\n"
            "1.0 block 0 receive from 0 tag 0: 8000 by put\n"
            "1.1 block 0 copy after 0\n");
}

TEST(MessageGraph, OfASignalAfterOtherWorkHasAMessageForIt) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add_hop(plan, 0);
  add(block(plan, 1), Opcode::copy, {in(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put\n"
            "0.1 block 0 copy after 0\n"
            "0.2 block 0 send to 1 tag 1: signal of signal after 1\n"
            "1.0 block 0 receive from 0 tag 0: 8000 by put\n"
            "1.1 block 0 receive from 0 tag 1: signal of signal\n"
            "1.2 block 0 copy after 0 1\n");
}

TEST(MessageGraph, OfARelaxedSignalOrdersNoPut) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add_hop(plan, 0, Opcode::relaxed_signal, Opcode::relaxed_wait);
  add(block(plan, 1), Opcode::copy, {in(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put\n"
            "0.1 block 0 send to 1 tag 1: signal of relaxed_signal after 0\n"
            "1.0 block 0 receive from 0 tag 0: 8000 by put\n"
            "1.1 block 0 receive from 0 tag 1: signal of relaxed_signal\n"
            "1.2 block 0 copy after 1\n");
}

TEST(MessageGraph, OrdersPutsThatAnotherBlockSignals) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add(block(plan, 0, 0), Opcode::sem_release, {}, {}, {0});
  add(block(plan, 0, 1), Opcode::sem_acquire, {}, {}, {0});
  add(block(plan, 0, 1), Opcode::signal, {}, {}, {1}, ChannelType::memory);
  add(block(plan, 1, 1), Opcode::wait, {}, {}, {1}, ChannelType::memory);
  add(block(plan, 1, 1), Opcode::copy, {in(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put\n"
            "0.1 block 1 send to 1 tag 1: signal of signal after 0\n"
            "1.0 block 1 receive from 0 tag 0: 8000 by put\n"
            "1.1 block 1 receive from 0 tag 1: signal of signal\n"
            "1.2 block 1 copy after 0 1\n");
}

TEST(MessageGraph, OfBlocksThatMeetAtABarrier) {
  Plan plan = two_ranks();
  for (uint32_t id = 0; id < 2; ++id) {
    add(block(plan, 0, id), Opcode::copy, {in(id)}, {out(id)});
    add(block(plan, 0, id), Opcode::barrier, {}, {}, {0}).participants = 2;
    add(block(plan, 0, id), Opcode::copy, {out(1 - id)}, {scratch(id)});
  }
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 copy\n"
            "0.1 block 1 copy\n"
            "0.2 block 1 copy after 0 1\n"
            "0.3 block 0 copy after 0 1\n");
}

TEST(MessageGraph, OfOnePutOfTwoChunksHasTwoSendsAtOnce) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::put, {in(0), in(2)}, {at(1, 0), at(1, 2)}, {}, ChannelType::memory);
  add(block(plan), Opcode::copy, {in(4)}, {out(4)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put\n"
            "0.1 block 0 send to 1 tag 1: 8000 by put\n"
            "0.2 block 0 copy after 0 1\n"
            "1.0 block 0 receive from 0 tag 0: 8000 by put\n"
            "1.1 block 0 receive from 0 tag 1: 8000 by put\n");
}

TEST(MessageGraph, OrdersPutsOfAllBlocksThatWereAtABarrier) {
  Plan plan = two_ranks();
  for (uint32_t id = 0; id < 2; ++id) {
    add_put(plan, 0, id, id);
    add(block(plan, 0, id), Opcode::barrier, {}, {}, {0}).participants = 2;
    add(block(plan, 0, id), Opcode::signal, {}, {}, {id}, ChannelType::memory);
    add(block(plan, 1, id), Opcode::wait, {}, {}, {id}, ChannelType::memory);
    add(block(plan, 1, id), Opcode::copy, {in(0, 2)}, {out(2 * id, 2)});
  }
  const MessageGraph graph = graph_of(plan);
  ASSERT_EQ(graph.ranks[1].size(), 6u);
  for (const GraphNode& node : graph.ranks[1]) {
    if (node.kind != GraphNode::Kind::work) continue;
    // Both puts, and a signal.
    ASSERT_EQ(node.after.size(), 3u);
    EXPECT_EQ(node.after[0], 0u);
    EXPECT_EQ(node.after[1], 1u);
  }
}

TEST(MessageGraph, OfAGetAsksForTheData) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::get, {at(0, 3)}, {out(0)}, {0}, ChannelType::memory);
  add(block(plan), Opcode::copy, {out(0)}, {out(1)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: signal of get\n"
            "0.1 block 0 receive from 1 tag 0: 8000 by get after 0\n"
            "0.2 block 0 get after 1\n"
            "0.3 block 0 copy after 2\n"
            "1.0 block 0 receive from 0 tag 0: signal of get\n"
            "1.1 block 0 send to 0 tag 0: 8000 by get after 0\n");
}

TEST(MessageGraph, OfAProxyDoesNotHoldTheBlockBeforeTheFlush) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::put_with_signal, {in(0)}, {at(1, 0)}, {0}, ChannelType::port);
  add(block(plan), Opcode::put_with_signal, {in(1)}, {at(1, 1)}, {0}, ChannelType::port);
  add(block(plan), Opcode::copy, {in(2)}, {out(2)});
  add(block(plan), Opcode::flush, {}, {}, {0}, ChannelType::port);
  add(block(plan), Opcode::copy, {in(3)}, {out(3)});
  for (uint32_t k = 0; k < 2; ++k) add(block(plan, 1), Opcode::wait, {}, {}, {0}, ChannelType::port);
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 8000 by put_with_signal\n"
            "0.1 block 0 send to 1 tag 1: 8000 by put_with_signal after 0\n"
            "0.2 block 0 copy\n"
            "0.3 block 0 copy after 1 2\n"
            "1.0 block 0 receive from 0 tag 0: 8000 by put_with_signal\n"
            "1.1 block 0 receive from 0 tag 1: 8000 by put_with_signal\n");
}

TEST(MessageGraph, OfPacketsHasTheirSizeOnTheWire) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 16000 by put_packets\n"
            "1.0 block 0 receive from 0 tag 0: 16000 by put_packets\n"
            "1.1 block 0 unpack_packets after 0\n");
}

TEST(MessageGraph, OfPacketsThatAProxySendsIsWaitedFor) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::put_packets, {scratch(0)}, {at(2, 0)}, {0}, ChannelType::port);
  add(block(plan), Opcode::flush, {}, {}, {0}, ChannelType::port);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 1 tag 0: 16000 by put_packets\n"
            "0.1 block 0 copy after 0\n"
            "1.0 block 0 receive from 0 tag 0: 16000 by put_packets\n"
            "1.1 block 0 unpack_packets after 0\n");
}

/// A put of rank 0 to rank 2, about which rank 2 learns from rank 1.
TEST(MessageGraph, OrdersPutsThatAnotherRankTellsAbout) {
  Plan plan;
  plan.name = "three";
  plan.collective = "test";
  plan.gpus.resize(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Gpu& gpu = plan.gpus[rank];
    gpu.id = rank;
    for (uint64_t& chunks : gpu.chunks) chunks = 8;
    ChannelRecord& record = gpu.channels.emplace_back();
    record.connected_to = {rank == 1 ? 0u : 1u};
    if (rank == 1) record.connected_to.push_back(2);
    gpu.threadblocks.resize(1);
    gpu.threadblocks[0].channels.push_back({ChannelType::memory, {0, 1}});
  }
  plan.gpus[0].remote_buffers.push_back({2, BufferKind::output, {ChannelType::memory}});
  block(plan).remote_buffers.push_back({ChannelType::memory, {0}});
  add(block(plan), Opcode::put, {in(0)}, {at(0, 0)}, {}, ChannelType::memory);
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::signal, {}, {}, {1}, ChannelType::memory);
  add(block(plan, 2), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 2), Opcode::copy, {out(0)}, {out(1)});
  EXPECT_EQ(shown(graph_of(plan)),
            "0.0 block 0 send to 2 tag 0: 8000 by put\n"
            "0.1 block 0 send to 1 tag 0: signal of signal after 0\n"
            "1.0 block 0 receive from 0 tag 0: signal of signal\n"
            "1.1 block 0 send to 2 tag 0: signal of signal after 0\n"
            "2.0 block 0 receive from 0 tag 0: 8000 by put\n"
            "2.1 block 0 receive from 1 tag 0: signal of signal\n"
            "2.2 block 0 copy after 0 1\n");
}

TEST(MessageGraph, HasTimesOfWorkFromAMachine) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)});
  add_put(plan, 0, 0, 0);
  Machine machine = nothing_takes_time();
  machine.read_ns = 400;
  machine.block_read_gb_s = 16;
  machine.block_reduce_gb_s = 8;
  machine.block_write_gb_s = 20;
  machine.block_put_gb_s = 1;  // the network's simulator adds the time of transfers
  const MessageGraph graph = graph_of(plan, &machine);
  ASSERT_EQ(graph.ranks[0].size(), 3u);
  EXPECT_EQ(graph.ranks[0][0].ns, 400u + 500 + 1000 + 400);  // operands are loaded at once
  EXPECT_EQ(graph.ranks[0][0].bytes, 3 * chunk_bytes);
  EXPECT_EQ(graph.ranks[0][0].operations, chunk_bytes);
  EXPECT_EQ(graph.ranks[0][1].name, "put");
  EXPECT_EQ(graph.ranks[0][1].ns, 400u + 500);
  EXPECT_EQ(graph.ranks[0][2].after, std::vector<uint32_t>{1});
  EXPECT_EQ(graph_of(plan).ranks[0][0].ns, 0u);
}

TEST(Goal, NamesTheLineThatIsWrong) {
  const auto wrong = [](const std::string& text) {
    return message_of_error<UsageError>([&] { read_goal(text); });
  };
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl1: send 8b to 0 tag 1 cpu 0\n// said\n}\n"), "");
  EXPECT_EQ(wrong("num_ranks 1\nrank 1 {\n}\n"),
            "GOAL, line 2: expected a rank below num_ranks, but it is '{'");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl1: sent 8b to 0\n}\n"),
            "GOAL, line 3: expected 'send', 'recv' or 'calc', but it is 'sent 8b to 0'");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl1: recv 8 from 0\n}\n"),
            "GOAL, line 3: expected 'b', but it is 'from 0'");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl2: calc 1\nl2 requires l1\n}\n"),
            "GOAL, line 4: expected a label that was defined before 'l1', but the line ends");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl2: calc 1\nl2: calc 1\n}\n"),
            "GOAL, line 4: expected a label that is not in use, but it is 'calc 1'");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nl2: calc 1 2\n}\n"),
            "GOAL, line 3: expected the end of the line, but it is '2'");
  EXPECT_EQ(wrong("num_ranks 4000000000\n"),
            "GOAL, line 1: expected at most 65536 ranks before this, but the line ends");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\nsend 8b to 1\n}\n"),
            "GOAL, line 3: expected a rank below num_ranks before this, but the line ends");
  EXPECT_EQ(wrong("num_ranks 1\nrank 0 {\n"), "GOAL, line 2: expected '}', but the line ends");
}

TEST(Goal, NumbersAtMost256ThreadBlocks) {
  MessageGraph graph;
  graph.ranks.resize(1);
  graph.ranks[0].resize(1);
  graph.ranks[0][0].block = 255;
  EXPECT_EQ(read_goal(write_goal(graph)), graph);
  graph.ranks[0][0].block = 256;
  EXPECT_EQ(message_of_error<UsageError>([&] { write_goal(graph); }),
            "rank 0 has more than 256 thread blocks, and GOAL numbers 256 cpus");
}

/// Fields and types as in schema/protobuf/et_def.proto of Chakra. tests/interchange.py reads traces with that
/// schema.
TEST(Chakra, HasTheBytesOfTheSchema) {
  MessageGraph graph;
  graph.plan = "p";
  graph.ranks.resize(2);
  graph.ranks[1].resize(2);
  graph.ranks[1][0].bytes = 200;
  graph.ranks[1][0].operations = 5;
  graph.ranks[1][0].ns = 2600;
  graph.ranks[1][1] = {.kind = GraphNode::Kind::send,
                       .name = "put",
                       .block = 2,
                       .peer = 0,
                       .tag = 3,
                       .bytes = 300,
                       .after = {0}};
  const std::string trace = write_chakra(graph, 1);
  const auto has = [&](const std::string& bytes) { return trace.find(bytes) != trace.npos; };
  EXPECT_TRUE(has(std::string("\x0a\x04") + "plan" + "\xea\x01\x01p"));              // string_val
  EXPECT_TRUE(has(std::string("\x08\x01\x12\x03") + "put" + "\x18\x05"));            // id, name, type
  EXPECT_TRUE(has(std::string("\x18\x05\x2a\x01\x00", 5)));                          // type, data_deps
  EXPECT_TRUE(has(std::string("\x52\x0e\x0a\x09") + "comm_size" + "\x48\xac\x02"));  // int64_val
  EXPECT_TRUE(has(std::string("\x0a\x08") + "comm_src" + "\x38\x01"));               // int32_val
  EXPECT_TRUE(has(std::string("\x0a\x08") + "comm_dst" + std::string("\x38\x00", 2)));
  EXPECT_TRUE(has(std::string("\x0a\x08") + "comm_tag" + "\x38\x03"));
  EXPECT_TRUE(has(std::string("\x0a\x09") + "is_cpu_op" + std::string("\xd8\x01\x00", 3)));  // bool_val
  EXPECT_TRUE(has(std::string("\x0a\x0b") + "tensor_size" + "\x68\xc8\x01"));                // uint64_val
  EXPECT_TRUE(has(std::string("\x0a\x07") + "num_ops" + "\x48\x05"));
  EXPECT_TRUE(has("\x18\x04\x38\x03"));  // type, duration_micros
  EXPECT_EQ(read_chakra({write_chakra(graph, 0), trace}), graph);
}

TEST(Chakra, NamesTheByteThatIsWrong) {
  const auto wrong = [](const std::string& trace) {
    return message_of_error<UsageError>([&] { read_chakra({trace}); });
  };
  const std::string metadata("\x02\x0a\x00", 3);
  EXPECT_EQ(wrong(metadata), "");
  EXPECT_EQ(wrong(""), "the trace of rank 0 is wrong at byte 0: it has no metadata");
  EXPECT_EQ(wrong("\x05\x0a"), "the trace of rank 0 is wrong at byte 1: the trace ends within a message");
  EXPECT_EQ(wrong("\x80"), "the trace of rank 0 is wrong at byte 1: the trace ends within a number");
  EXPECT_EQ(wrong(metadata + "\x02\x18\x01"),
            "the trace of rank 0 is wrong at byte 6: a node has the type 1");
  EXPECT_EQ(wrong(metadata + "\x02\x18\x05"),
            "the trace of rank 0 is wrong at byte 6: the node has no attribute 'comm_size'");
  EXPECT_EQ(wrong(metadata + "\x02\x08\x07"),
            "the trace of rank 0 is wrong at byte 6: node 7 is at the place of node 0");
  EXPECT_EQ(wrong(metadata + "\x05\x18\x04\x2a\x01\x01"),
            "the trace of rank 0 is wrong at byte 9: node 0 waits for node 1, and there are 1");
  MessageGraph graph;
  graph.ranks.resize(1);
  graph.ranks[0].resize(1);
  graph.ranks[0][0].kind = GraphNode::Kind::send;
  graph.ranks[0][0].peer = 3;
  EXPECT_NE(wrong(write_chakra(graph, 0)).find("node 0 has a message of rank 3, and there are 1"),
            std::string::npos);
  EXPECT_EQ(wrong(metadata + "\x01\x0b"),
            "the trace of rank 0 is wrong at byte 5: a field has the wire type 3");
}

}  // namespace
}  // namespace chorale
