// These tests check what fuse joins, and what it must not join. D2 to D12 are faults of MSCCL++'s compiler
// that it must not have.

#include <functional>
#include <utility>

#include "chorale/rewrites.hpp"
#include "compiler/plan/lines.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

TEST(Fuse, JoinsControlOperations) {
  Plan plan = two_ranks();
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), signal, {}, {}, {1}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {1}, memory).sync = SyncType::both;
  EXPECT_EQ(after(pass::fuse, plan), "signal wait");
  EXPECT_EQ(text(plan, 0), R"({"name":"signal","channel_ids":[0,1],"channel_type":"memory"})");
  EXPECT_EQ(block(plan).ops[0].sync, SyncType::both);
}

TEST(Fuse, KeepsTheLinesOfJoinedCalls) {
  Plan plan = two_ranks();
  plan.source = {{"mine.cpp", 10}, {"mine.cpp", 11}, {"mine.cpp", 12}, {"mine.cpp", 13}};
  add(block(plan), reduce, {in(0), scratch(0)}, {in(0)}, {}, none).at = 1;
  add(block(plan), reduce, {in(0), scratch(1)}, {in(0)}, {}, none).at = 1;
  add(block(plan), reduce, {in(0), scratch(2)}, {in(0)}, {}, none).at = 2;
  add(block(plan), reduce, {in(0), scratch(3)}, {in(0)}, {}, none).at = 3;
  add(block(plan), put, {in(0)}, {at(0, 3)}, {}, memory).at = 4;
  add(block(plan), signal, {}, {}, {0}, memory).at = 2;
  add(block(plan), signal, {}, {}, {1}, memory).at = 3;
  EXPECT_EQ(after(pass::fuse, plan), "res signal");
  const auto lines = [&](const Op& op, OpList list, size_t count) {
    std::string text;
    for (size_t at = 0; at < count; ++at)
      text += std::to_string(line_of_entry(plan, op, list, at).line) + " ";
    return text;
  };
  const Op &joined = block(plan).ops[0], &signals = block(plan).ops[1];
  EXPECT_EQ(lines(joined, OpList::sources, joined.sources), "10 10 10 11 12 ");
  EXPECT_EQ(lines(joined, OpList::destinations, joined.destinations), "10 13 ");
  EXPECT_EQ(lines(signals, OpList::ids, signals.ids), "11 12 ");
  EXPECT_EQ(plan.line_of(joined).line, 10u);
  EXPECT_EQ(last_line_of(plan, joined).line, 13u);
  // The plan file has the first line only, as files did before.
  EXPECT_NE(write(plan).find(R"("reduce_op":"sum","at":0})"), std::string::npos) << write(plan);
  EXPECT_NE(write(plan).find(R"("channel_type":"memory","at":1})"), std::string::npos) << write(plan);
}

TEST(Fuse, KeepsOneChannelTwice) {
  Plan plan = two_ranks();
  for (int turn = 0; turn < 2; ++turn) add(block(plan), signal, {}, {}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "signal signal");
}

TEST(Fuse, KeepsIdsWithTheirThreadOrFencesThem) {
  using Ids = std::vector<uint32_t>;
  struct Step {
    Opcode code;
    Ids ids;
  };
  // Each id is an operation; none needs a fence.
  const auto fused = [](const std::vector<Step>& steps, bool turns = false) {
    Plan plan = two_ranks();
    uint32_t body = 0;
    for (const Step& step : steps) body += uint32_t(step.ids.size());
    if (turns) loop(plan, body);
    for (const Step& step : steps) {
      for (const uint32_t id : step.ids) {
        if (step.code == put) {
          add(block(plan), put, {in(id)}, {at(1, id)}, {id}, port);
        } else {
          add(block(plan), step.code, {}, {}, {id}, port);
        }
      }
    }
    after(pass::fuse, plan);
    return after(pass::data_sync, plan);
  };
  EXPECT_EQ(fused({{put, {0, 1}}, {signal, {0, 1}}}), "put signal");      // thread k does both of channel k
  EXPECT_EQ(fused({{put, {0, 1}}, {signal, {1, 0}}}), "put nop signal");  // a signal could pass its data
  EXPECT_EQ(fused({{signal, {0, 1}}, {wait, {0, 1}}}), "signal wait");    // no wait before its signal
  EXPECT_EQ(fused({{wait, {0, 1}}, {signal, {0}}}), "wait nop signal");   // signals that both have come
  EXPECT_EQ(fused({{wait, {0}}, {signal, {0, 1}}}), "wait nop signal");
  EXPECT_EQ(fused({{wait, {0}}, {signal, {0}}, {put, {0}}}), "wait signal put");  // all by one thread
  EXPECT_EQ(fused({{wait, {0, 1}}, {put, {0, 1}}}), "wait nop put");
  EXPECT_EQ(fused({{signal, {0, 1}}, {wait, {0, 1}}}, true), "pipeline(nop signal wait)");
}

/// Returns how many ids, or sources, each operation of rank 0's first block has.
std::vector<int> sizes(Plan& plan, bool of_sources = false) {
  std::vector<int> all;
  for (const Op& op : block(plan).ops) all.push_back(of_sources ? op.sources : op.ids);
  return all;
}

TEST(Fuse, JoinsNoMoreThanMscclppHolds) {
  using Sizes = std::vector<int>;
  for (const Target target : {Target::chorale, Target::mscclpp}) {
    Plan channels = two_ranks();
    std::vector<uint32_t>& ids = block(channels).channels[1].ids;
    for (uint32_t id = 2; id < 9; ++id) {
      channels.gpus[0].channels[1].connected_to.push_back(1);
      ids.push_back(id);
    }
    for (uint32_t id = 0; id < 9; ++id) add(block(channels), signal, {}, {}, {id}, port);
    EXPECT_EQ(after(pass::fuse, channels, {.target = target}), "signal signal");
    EXPECT_EQ(sizes(channels), Sizes({8, 1}));

    Plan semaphores = two_ranks();
    semaphores.gpus[0].semaphores.assign(17, 0);
    for (uint32_t id = 0; id < 17; ++id) add(block(semaphores), sem_release, {}, {}, {id});
    EXPECT_EQ(after(pass::fuse, semaphores, {.target = target}), "sem_release sem_release");
    EXPECT_EQ(sizes(semaphores), Sizes({16, 1}));

    Plan sums = two_ranks();
    for (uint64_t& chunks : sums.gpus[0].chunks) chunks = 16;
    for (uint64_t k = 1; k < 12; ++k) add(block(sums), reduce, {out(0), in(k)}, {out(0)});
    EXPECT_EQ(after(pass::fuse, sums, {.target = target}), "re re");
    EXPECT_EQ(sizes(sums, true), Sizes({10, 3}));
  }
}

TEST(Fuse, OneChannelTwice) {
  Plan plan = two_ranks();
  for (const uint64_t k : {0, 1}) add(block(plan), put, {in(k)}, {at(1, k)}, {0}, port);
  for (const uint64_t k : {2, 3}) add(block(plan), put_with_signal, {in(k)}, {at(1, k)}, {0}, port);
  for (int k = 0; k < 2; ++k) add(block(plan), sem_release, {}, {}, {2});
  // The peer may mistake the first signal for the one of the first transfer.
  EXPECT_EQ(after(pass::fuse, plan), "put pws pws sem_release");
}

TEST(Fuse, WaitsOfTwoBlocksOnOneChannelStayApart) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0, 1}) add(block(plan), sem_acquire, {}, {}, {id});
  Plan shared = plan;
  for (const uint32_t id : {0, 1}) add(block(shared, 0, 1), sem_acquire, {}, {}, {id});
  EXPECT_EQ(after(pass::fuse, plan), "sem_acquire");
  // Two blocks that take two locks in one order must not take them in another order.
  EXPECT_EQ(after(pass::fuse, shared), "sem_acquire sem_acquire");
}

TEST(Fuse, JoinsTransfersOfOneSize) {
  Plan plan = two_ranks();
  add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan), put, {out(1)}, {at(1, 1)}, {}, memory);  // D11: another source buffer is another operand
  add(block(plan), put, {in(2, 2)}, {at(1, 2, 2)}, {}, memory);
  add(block(plan), get, {at(0, 0)}, {scratch(0)}, {0}, memory);
  add(block(plan), get, {at(0, 1)}, {scratch(1)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "put put get");
  EXPECT_EQ(std::as_const(block(plan)).sources(block(plan).ops[0])[1], out(1));
}

TEST(Fuse, KeepsTheOrderOfWritesToOneChunk) {
  Plan plan = two_ranks();
  add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan), put, {in(1)}, {at(1, 0)}, {}, memory);
  add(block(plan), get, {at(0, 0, 2)}, {scratch(0, 2)}, {0}, memory);
  add(block(plan), get, {at(0, 1, 2)}, {scratch(1, 2)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "put put get get");
}

TEST(Fuse, D2ChainsOnlyWhatItAccumulates) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)});
  add(block(plan), Opcode::reduce, {in(0), in(2)}, {in(0)});
  EXPECT_EQ(after(pass::fuse, plan), "re");
  EXPECT_EQ(block(plan).ops[0].sources, 3u);

  Plan other = two_ranks();
  add(block(other), Opcode::reduce, {in(0), in(1)}, {out(0)});  // o = x + a; o = x + b
  add(block(other), Opcode::reduce, {in(0), in(2)}, {out(0)});
  EXPECT_EQ(after(pass::fuse, other), "re re");

  Plan moved = two_ranks();
  add(block(moved), Opcode::reduce, {in(0), in(1)}, {out(0)});  // o = x + a; o = o + b
  add(block(moved), Opcode::reduce, {out(0), in(2)}, {out(0)});
  Plan theirs = moved;
  EXPECT_EQ(after(pass::fuse, moved), "re");
  EXPECT_EQ(after(pass::fuse, theirs, {.target = Target::mscclpp}), "re re");

  Plan twice = two_ranks();
  add(block(twice), Opcode::reduce, {in(0), in(1)}, {in(0)});  // x += a; x += x
  add(block(twice), Opcode::reduce, {in(0), in(0)}, {in(0)});
  EXPECT_EQ(after(pass::fuse, twice), "re re");
}

TEST(Fuse, SendsWhatItReduces) {
  Plan plan = two_ranks();
  add(block(plan), read_reduce, {in(0), at(0, 0)}, {in(0)}, {}, memory);
  add(block(plan), put, {in(0)}, {at(0, 0)}, {}, memory);
  add(block(plan), put, {in(0)}, {at(1, 5)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "rres");
  EXPECT_EQ(block(plan).ops[0].destinations, 3u);

  Plan elsewhere = two_ranks();  // the peer's chunks that are read are not those that are written
  add(block(elsewhere), read_reduce, {in(0, 2), at(0, 0, 2)}, {in(0, 2)}, {}, memory);
  add(block(elsewhere), put, {in(0, 2)}, {at(0, 1, 2)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, elsewhere), "rre put");

  Plan over_port = two_ranks();
  add(block(over_port), Opcode::reduce, {in(0), in(1)}, {in(0)});
  add(block(over_port), put, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(after(pass::fuse, over_port), "re put");
}

/// Returns the words of a block with these two operations in a plan with two codecs.
std::string joined(const std::function<void(ThreadBlock&)>& ops) {
  Plan plan = two_ranks();
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}, {CodecFormat::int8, 64}};
  ops(block(plan));
  return after(pass::fuse, plan);
}

TEST(Fuse, SendsWhatItEncodes) {
  // The joined operation sends the same elements as the two did, wherever the first encoded its result.
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, reduce, {in(0), coded(scratch(0))}, {coded(scratch(1))});
              add(block, put, {coded(scratch(1))}, {coded(at(2, 0))}, {}, memory);
            }),
            "res");
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, reduce, {in(0), scratch(0)}, {scratch(1)});
              add(block, put, {scratch(1)}, {coded(at(2, 0))}, {}, memory);
            }),
            "res");
  // A plain sink would get what is not yet encoded.
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, reduce, {in(0), coded(scratch(0))}, {coded(scratch(1))});
              add(block, put, {coded(scratch(1))}, {at(2, 0)}, {}, memory);
            }),
            "re put");
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, reduce, {in(0), scratch(0)}, {coded(scratch(1))});
              add(block, reduce, {coded(scratch(1)), scratch(2)}, {coded(scratch(1))});
            }),
            "re re");
  // An operation has one codec.
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, put, {in(0)}, {coded(at(2, 0))}, {}, memory);
              add(block, put, {in(1)}, {coded(at(2, 1), 1)}, {}, memory);
            }),
            "put put");
  EXPECT_EQ(joined([](ThreadBlock& block) {
              add(block, put, {in(0)}, {coded(at(2, 0))}, {}, memory);
              add(block, put, {in(1)}, {coded(at(2, 1))}, {}, memory);
            }),
            "put");
}

TEST(Fuse, KeepsAndForwardsPackets) {
  Plan plan = two_ranks();
  add(block(plan), reduce_packets, {in(0), scratch(0)}, {out(0)});
  add(block(plan), copy_packets, {out(0)}, {scratch(4)});
  add(block(plan), read_put_packets, {scratch(4)}, {at(2, 4)}, {}, memory);
  add(block(plan), put_packets, {out(0)}, {at(2, 5)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "recspkt");
  EXPECT_EQ(
      text(plan, 0),
      R"({"name":"recspkt","src_buff":[{"type":"i","index":0,"size":1},{"type":"s","index":0,"size":1}],)"
      R"("dst_buff":[{"type":"o","index":0,"size":1},{"type":"s","index":4,"size":1},)"
      R"({"buffer_id":2,"index":4,"size":1},{"buffer_id":2,"index":5,"size":1}],)"
      R"("channel_type":"memory","reduce_op":"sum"})");
}

TEST(Fuse, D6AndD7SwitchReductions) {
  Plan plan = two_ranks();
  add(block(plan), switch_reduce, {at(0, 0)}, {in(0)}, {}, switched);
  add(block(plan), switch_broadcast, {in(0)}, {at(0, 3)}, {}, switched);
  Plan used = plan;
  EXPECT_EQ(after(pass::fuse, plan), "glres");
  EXPECT_EQ(text(plan, 0),
            R"({"name":"glres","src_buff":[{"switch_channel_id":0,"index":0,"size":1}],)"
            R"("dst_buff":[{"switch_channel_id":0,"index":3,"size":1}],"channel_type":"switch",)"
            R"("reduce_op":"sum"})");
  // The chunk that the reduction wrote is read again, this time by the peer.
  add(block(used, 1), get, {at(0, 0)}, {out(5)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, used), "glre gstore");
  // A chunk of the output is a result, unless the broadcast stores it as well.
  for (const uint64_t broadcast : {3, 1}) {
    Plan result = two_ranks();
    add(block(result), switch_reduce, {at(0, 0)}, {out(1)}, {}, switched);
    add(block(result), switch_broadcast, {out(1)}, {at(0, broadcast)}, {}, switched);
    EXPECT_EQ(after(pass::fuse, result), broadcast == 1 ? "glres" : "glre gstore");
  }
}

TEST(Fuse, D12StopsAtWhatAnOperationHolds) {
  Plan plan = two_ranks();
  for (const uint32_t ref : {1, 2}) {
    for (uint64_t k = 0; k < 8; ++k) add(block(plan), put, {in(k)}, {at(ref, k)}, {}, memory);
  }
  EXPECT_EQ(after(pass::fuse, plan), "put put");
  EXPECT_EQ(block(plan).ops[0].sources, 10u);
}

TEST(Fuse, D11MscclppTakesTheBufferOfTheFirstSource) {
  Plan plan = two_ranks();
  add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan), put, {out(1)}, {at(1, 1)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan, {.target = Target::mscclpp}), "put put");
}

TEST(Fuse, FencesAndBodies) {
  Plan plan = two_ranks();
  add(block(plan), nop);
  add(block(plan), nop);
  loop(plan, 3);
  add(block(plan), nop);
  add(block(plan), nop);
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::fuse, plan), "pipeline(nop copy) nop");
}

TEST(Fuse, FencesOfTurnsCountOutside) {
  Plan plan = two_ranks();
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), nop);
  loop(plan, 3);
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), nop);
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  EXPECT_EQ(after(pass::fuse, plan), "wait pipeline(signal copy wait) signal");
  EXPECT_EQ(after(pass::data_sync, plan), "nop wait pipeline(nop signal nop copy nop wait nop) signal nop");
}

TEST(Fuse, D1AFenceAtTheEndOfATurnIsNoneInFrontOfIt) {
  for (const bool barriers : {false, true}) {
    Plan plan = two_ranks();
    add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::after;
    loop(plan, 2);
    add(block(plan), copy, {in(0)}, {out(0)});
    if (barriers) {
      add(block(plan), barrier, {}, {}, {0}).participants = 2;
      Op& other = add(block(plan, 0, 1), pipeline);
      other.body = 1;
      other.unit_bytes = 64;
      other.chunks = 1;
      add(block(plan, 0, 1), barrier, {}, {}, {0}).participants = 2;
    } else {
      add(block(plan), nop);
    }
    after(pass::fuse, plan);
    EXPECT_EQ(after(pass::data_sync, plan),
              barriers ? "wait nop pipeline(copy barrier)" : "wait nop pipeline(copy nop)");
  }
}

}  // namespace
}  // namespace chorale
