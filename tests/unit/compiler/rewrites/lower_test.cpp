// These tests replace operations that MSCCL++ lacks or cannot represent by operations that it has.

#include <algorithm>
#include <utility>

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;
const CompileOptions theirs{.target = Target::mscclpp};

TEST(Lower, CombinesPacketsInTheirOrder) {
  Plan plan = two_ranks();
  loop(plan, 2);
  Op& op = add(block(plan), combine_packets, {scratch(0), scratch(1), scratch(2)}, {out(0)});
  op.group_index = 1;
  op.group_size = 2;
  add(block(plan), combine_packets, {scratch(3)}, {out(1)});
  add(block(plan), copy, {in(0)}, {out(2)});
  Plan ours = plan;
  EXPECT_EQ(after(pass::lower, ours), "pipeline(chorale_combine_packets chorale_combine_packets) copy");
  EXPECT_EQ(after(pass::lower, plan, theirs), "pipeline(upkt repkt upkt) copy");
  EXPECT_EQ(text(plan, 1),
            R"({"name":"upkt","src_buff":[{"type":"s","index":0,"size":1}],)"
            R"("dst_buff":[{"type":"o","index":0,"size":1}],"tbg_info":{"tb_id":1,"tbg_size":2}})");
  EXPECT_EQ(text(plan, 2),
            R"({"name":"repkt","src_buff":[{"type":"o","index":0,"size":1},{"type":"s","index":1,"size":1},)"
            R"({"type":"s","index":2,"size":1}],"dst_buff":[{"type":"o","index":0,"size":1}],)"
            R"("tbg_info":{"tb_id":1,"tbg_size":2},"reduce_op":"sum"})");
  EXPECT_EQ(after(pass::dependency_sync, plan, theirs), "pipeline(upkt nop repkt upkt) copy");
}

TEST(Lower, SplitsWhatAnOperationDoesNotHold) {
  Plan plan = two_ranks();
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = gpu.chunks[1] = 32;
  std::vector<Operand> local, remote{in(0)};
  for (uint64_t k = 0; k < 10; ++k) local.push_back(in(k));
  for (uint64_t k = 0; k < 19; ++k) remote.push_back(at(0, k));
  add(block(plan), Opcode::reduce, local, {out(0)});
  add(block(plan), read_reduce, remote, {out(1)}, {}, memory);
  EXPECT_EQ(after(pass::lower, plan, theirs), "re rre rre rre");
  const ThreadBlock& parts = std::as_const(block(plan));
  std::vector<size_t> sizes;
  std::vector<Operand> others;
  for (size_t k = 1; k < 4; ++k) {
    const std::span<const Operand> sources = parts.sources(parts.ops[k]);
    EXPECT_EQ(sources[0], k == 1 ? in(0) : out(1));
    EXPECT_EQ(parts.dests(parts.ops[k])[0], out(1));
    EXPECT_EQ(parts.ops[k].via, memory);
    sizes.push_back(sources.size());
    others.insert(others.end(), sources.begin() + 1, sources.end());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{10, 10, 2}));
  EXPECT_TRUE(std::equal(others.begin(), others.end(), remote.begin() + 1, remote.end()));
}

TEST(Lower, LeavesWhatReadsItsOwnResult) {
  Plan plan = two_ranks();
  add(block(plan), combine_packets, {scratch(0), scratch(1)}, {scratch(1)});
  std::vector<Operand> sources{out(0)};
  for (uint64_t k = 0; k < 10; ++k) sources.push_back(in(k % 8));
  sources.push_back(out(1));
  add(block(plan), Opcode::reduce, sources, {out(1)});
  EXPECT_EQ(after(pass::lower, plan, theirs), "chorale_combine_packets re");
}

}  // namespace
}  // namespace chorale
