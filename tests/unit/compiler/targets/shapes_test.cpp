// These tests have shapes that MSCCL++'s executor runs wrongly. Each shape has its own check, and a similar
// plan that passes.

#include <utility>

#include "target_found.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

/// Rank 0 sends packets that rank 1 unpacks. If `answered`, rank 1 then sends some back.
Plan packets(bool answered) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  add(block(plan, 1), unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan, 1), nop);
  if (!answered) return plan;
  add(block(plan, 1), put_packets, {out(0)}, {at(2, 1)}, {}, memory);
  add(block(plan), unpack_packets, {scratch(1)}, {out(0)});
  return plan;
}

TEST(Target, PacketBanks) {
  EXPECT_EQ(found(packets(true)), "");
  // Two packets to one place, a launch apart, are in two banks. Nothing says that the first one was read.
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
    add(block(plan, rank), unpack_packets, {scratch(0)}, {out(0)});
  }
  EXPECT_EQ(all_texts(prove(plan)), "");
  EXPECT_EQ(
      found(plan),
      "[mscclpp_packet_banks] a launch may come here before the packets of the previous launch are read, "
      "but MSCCL++ keeps only one bank of packets\n"
      "[mscclpp_packet_banks] a launch may come here before the packets of the previous launch are read, "
      "but MSCCL++ keeps only one bank of packets\n");
  plan.use_double_scratch_buffer = true;
  EXPECT_EQ(found(plan), "");
}

TEST(Target, PacketPlaces) {
  Plan plan = packets(true);
  // Packets of chunk 0 take the space of plain chunks 0 and 1, those of chunk 1 that of 2 and 3.
  add(block(plan, 1, 1), copy, {in(0)}, {scratch(2)});
  add(block(plan, 0, 1), copy, {in(0, 2)}, {scratch(0, 2)});
  add(block(plan, 0, 1), copy, {in(0)}, {scratch(4)});
  EXPECT_EQ(found(plan), "");
  add(block(plan, 1, 1), copy, {in(0)}, {scratch(1)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_packet_places] dst of 'put_packets' is packets of scratch[0:1] of rank 1, but MSCCL++ keeps "
      "them at scratch[0:2], and 'copy' has plain data at scratch[1:2]\n"
      "[mscclpp_packet_places] src of 'unpack_packets' is packets of scratch[0:1] of rank 1, but MSCCL++ "
      "keeps them at scratch[0:2], and 'copy' has plain data at scratch[1:2]\n");
}

TEST(Target, Transfers) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), get, {at(0, 2)}, {scratch(2)}, {0}, memory);
  add(block(plan), put, {in(0), in(1)}, {at(1, 0), at(1, 1)}, {}, memory);
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  add(block(plan), get, {at(0, 2)}, {scratch(3)}, {0}, memory);
  add(block(plan), put, {in(0), out(1)}, {at(1, 0), at(1, 1)}, {}, memory);
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {0}, port);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_get_offsets] 'get' reads from chunk 2 of the peer to chunk 3 here, but MSCCL++ takes each "
      "offset for the other\n"
      "[mscclpp_put_sources] 'put' reads from input and from output, but MSCCL++ takes all from input\n"
      "[mscclpp_port_packets] 'put_packets' reads 1 chunk of plain data, but over a port channel MSCCL++ "
      "takes them for packets\n");
}

TEST(Target, SwitchReductionsAndOperationsOfOurs) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), switch_reduce_broadcast, {at(0, 0)}, {at(0, 0)}, {}, switched);
  EXPECT_EQ(found(plan), "");
  add(block(plan), switch_reduce, {at(0, 0)}, {in(0)}, {}, switched);
  add(block(plan), combine_packets, {scratch(0), scratch(1)}, {out(0)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_switch_reduce] 'switch_reduce' of 1 chunk is not followed by a broadcast that makes its "
      "result superfluous, but MSCCL++ has no reduction without one\n"
      "[mscclpp_extensions] 'combine_packets' is an operation of ours, but MSCCL++ knows only its own\n");
}

TEST(Target, PacketsInSimple) {
  Plan plan = two_ranks();
  add(block(plan), copy_packets, {in(0)}, {scratch(0)});
  EXPECT_EQ(found(plan),
            "[mscclpp_packet_protocol] 'copy_packets' moves packets in the protocol Simple, but MSCCL++ then "
            "has room "
            "for half of the 8 chunks of scratch\n");
}

TEST(Target, DoubleScratch) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  plan.use_double_scratch_buffer = true;
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), put, {scratch(0)}, {at(1, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  const auto wrong = [](const char* what) {
    return std::string("[mscclpp_double_scratch] ") + what +
           " of a double scratch buffer, but MSCCL++ takes the first half of it in every call\n";
  };
  add(block(plan), put, {in(0)}, {at(2, 3)}, {}, memory);
  add(block(plan), put, {scratch(4)}, {at(1, 0)}, {0}, port);
  add(block(plan), switch_broadcast, {in(0)}, {at(1, 5)}, {}, switched);
  EXPECT_EQ(found(plan), wrong("dst of 'put' is chunk 3") + wrong("src of 'put' is chunk 4") +
                             wrong("dst of 'switch_broadcast' is chunk 5"));
}

TEST(Target, ReusedScratch) {
  Plan plan = two_ranks();
  plan.reuse_resources = true;
  add(block(plan), copy, {in(0)}, {scratch(0)});
  // There are eight chunks of input and of scratch: a chunk of the largest message has a share of scratch.
  plan.max_message_size = 64 << 20;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size += 8 * 16;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_reused_scratch] 'copy' is at scratch with chunks of up to 8388624 bytes, but MSCCL++ keeps "
      "67108864 bytes of reused scratch, 8388608 bytes for each of 8 chunks, and goes on in the next\n");
  EXPECT_EQ(check(plan, Target::mscclpp, {}).front().help,
            "set the plan's largest message to 67108864 bytes or less");
  plan.max_message_size = UINT64_MAX;
  EXPECT_NE(found(plan).find("chunks of up to 536870912 bytes"), std::string::npos);
  pipeline_of(plan, 1);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  EXPECT_NE(found(plan).find("and wraps around in them"), std::string::npos);
  // 36 chunks of 932068 bytes are aligned to 932080, and that is more than half of scratch.
  plan = two_ranks();
  plan.reuse_resources = plan.use_double_scratch_buffer = true;
  plan.gpus[0].chunks[0] = plan.gpus[0].chunks[2] = 36;
  add(block(plan), copy, {in(0)}, {scratch(0)});
  plan.max_message_size = 36 * 900000;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size = 36 * 932080;
  EXPECT_NE(found(plan).find("which are aligned beyond its end"), std::string::npos) << found(plan);
  // The last chunk has what the others leave of 32 MiB.
  const uint64_t fits = 36 * ((32 << 20) - 35 * 932080) / 16 * 16;
  EXPECT_EQ(check(plan, Target::mscclpp, {}).front().help,
            "set the plan's largest message to " + std::to_string(fits) + " bytes or less");
  plan.max_message_size = fits;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size = fits + 1;
  EXPECT_NE(found(plan), "");
}

TEST(Target, ReusedAddresses) {
  Plan plan = two_ranks();
  plan.reuse_resources = true;
  plan.max_message_size = 1 << 20;
  add(block(plan), put, {in(0)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  add(block(plan), put, {in(0)}, {at(1, 3)}, {}, memory);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_reused_addresses] dst of 'put' is chunk 3 of a peer's output with resources reused, but "
      "MSCCL++ then keeps the address of the first call\n");
}

TEST(Target, SharedSemaphores) {
  Plan plan = two_ranks();
  for (int turn = 0; turn < 2; ++turn) add(block(plan), sem_acquire, {}, {}, {0});
  add(block(plan, 0, 1), sem_release, {}, {}, {0});
  EXPECT_EQ(found(plan), "");
  add(block(plan, 0, 1), sem_acquire, {}, {}, {0});
  EXPECT_EQ(found(plan),
            "[mscclpp_shared_semaphores] semaphore 0 of rank 0 is acquired by thread block 1 and by thread "
            "block 0, "
            "but MSCCL++ loses releases with more than 1 acquirer\n");
}

TEST(Target, SemaphoreValues) {
  Plan plan = two_ranks();
  plan.gpus[1].semaphores[2] = INT32_MAX;
  EXPECT_EQ(found(plan), "");
  ++plan.gpus[1].semaphores[2];
  EXPECT_EQ(found(plan),
            "[mscclpp_semaphore_values] semaphore 2 of rank 1 begins with 2147483648, but MSCCL++ reads at "
            "most 2147483647\n");
  const Diagnostics findings = check(plan, Target::mscclpp);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].path, "/gpus/1/semaphores/2/init_value");
}

TEST(Target, PutWithSignalAndFlush) {
  Plan plan = two_ranks();
  add(block(plan), put_with_signal, {in(3)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(found(plan), "");
  add(block(plan), put_with_signal_and_flush, {in(3)}, {at(1, 1)}, {0}, port);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_put_with_signal_and_flush] 'put_with_signal_and_flush' reads from chunk 3 of input, but "
      "MSCCL++ takes the address of an array for its offset\n");
}

TEST(Target, InPlace) {
  const auto wrong = [](const char* what, const char* whose, const char* why) {
    return "[mscclpp_in_place] " + std::string(what) + " of " + whose + ", but MSCCL++ takes it from where " +
           why + "\n";
  };
  Plan plan = two_ranks();
  plan.inplace = true;
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = 4;
  const auto add_operations = [&](uint32_t remote) {
    add(block(plan), put, {scratch(0)}, {at(remote, 3)}, {}, memory);
    add(block(plan), put, {{1, 1, remote}}, {at(2, 0)}, {0}, port);
    add(block(plan), copy, {in(0)}, {scratch(0)});
    add(block(plan), copy, {scratch(0)}, {out(0)});
  };
  // Each rank names buffers that begin where its memory does, and its own.
  plan.collective = "allgather";
  add_operations(1);
  add(block(plan), switch_broadcast, {in(0)}, {at(0, 5)}, {}, switched);
  EXPECT_EQ(found(plan), "");
  for (const bool scattered : {false, true}) {
    plan = two_ranks();
    plan.gpus[0].chunks[scattered] = plan.gpus[1].chunks[scattered] = 4;
    plan.inplace = true;
    plan.collective = scattered ? "reducescatter" : "allgather";
    add_operations(scattered);
    const std::string nested = scattered ? " of the output" : " of the input";
    const char* const peer =
        scattered ? "rank 1, in place a part of its input" : "rank 1, in place a part of its output";
    const char* const own =
        scattered ? "rank 0, in place a part of its input" : "rank 0, in place a part of its output";
    const char* const whole = scattered ? "the input begins" : "the output begins";
    std::string expected =
        wrong(("dst of 'put' is chunk 3" + nested).c_str(), peer, "that of rank 0 begins") +
        wrong(("src of 'put' is chunk 1" + nested).c_str(), own, whole);
    if (scattered) {
      add(block(plan), switch_broadcast, {in(0)}, {at(0, 2)}, {}, switched);
      expected += wrong("dst of 'switch_broadcast' is chunk 2 of the output",
                        "each member, in place a part of its input", "that of rank 0 begins");
    }
    EXPECT_EQ(found(plan), expected);
    plan.inplace = false;
    EXPECT_EQ(found(plan), "");
  }
}

TEST(Target, SwitchOrder) {
  Plan plan = two_ranks();
  // A channel with ranks other than the peer may be anywhere, and a channel that the peer lacks only at the
  // end.
  plan.gpus[1].channels.insert(
      plan.gpus[1].channels.begin(),
      {.type = ChannelType::switched, .connected_to = {}, .buffer = BufferKind::input, .rank_groups = {{1}}});
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)), "");
  std::swap(plan.gpus[1].channels[3], plan.gpus[1].channels[4]);
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)),
            "[mscclpp_switch_order] switch channel 0 of rank 0 is output of ranks 0, 1, made by rank 0, and "
            "switch channel 1 of rank 1 is scratch of ranks 0, 1, made by rank 0, but MSCCL++ makes each "
            "together with its members, in the order of their lists\n");
  // The first member makes it, so both wait for the other.
  plan = two_ranks();
  plan.gpus[1].channels[3].rank_groups[0] = {1, 0};
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)),
            "[mscclpp_switch_order] switch channel 1 of rank 0 is scratch of ranks 0, 1, made by rank 0, and "
            "switch channel 1 of rank 1 is scratch of ranks 0, 1, made by rank 1, but MSCCL++ makes each "
            "together with its members, in the order of their lists\n");
}

}  // namespace
}  // namespace chorale
