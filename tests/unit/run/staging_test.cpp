// These tests check how calls go through staging, with a backend that only has memory.

#include "executor/run/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chorale/collective.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale {
namespace {

/// Has memory, and counts the copies.
class Memory final : public Backend {
 public:
  std::unique_ptr<Binding> bind(const Plan&, const std::vector<ScratchUse>&, const Call&,
                                const Arguments&) override {
    return nullptr;
  }
  bool binds_to_addresses() const override { return true; }
  bool has_whole_lines() const override { return true; }
  bool can_publish(const Plan&, bool) const override { return publishes; }
  void* allocate(uint64_t bytes) override {
    return memory_.emplace_back(std::make_unique<char[]>(bytes)).get();
  }
  void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, void*) override {
    ++copies;
    for (uint64_t row = 0; row < rows; ++row)
      std::memcpy(to.at + row * to.distance, from.at + row * from.distance, bytes);
  }
  void scale(void*, const void*, uint64_t, DType, const Factor&, void*) override {}
  void check() override {}
  void synchronize(void*) override {}

  int copies = 0;
  bool publishes = false;

 private:
  std::vector<std::unique_ptr<char[]>> memory_;
};

/// Returns a plan without operations.
Plan idle(const std::string& collective, uint32_t ranks = 2) {
  Plan plan;
  plan.name = "idle";
  plan.collective = collective;
  const CollectiveInfo& info = collective_info(collective);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Gpu gpu;
    gpu.id = rank;
    gpu.chunks[size_t(BufferKind::input)] = info.input == CollectiveInfo::Cut::whole ? 1 : ranks;
    gpu.chunks[size_t(BufferKind::output)] = ranks;
    plan.gpus.push_back(gpu);
  }
  return plan;
}

/// Returns such a plan in which rank 0 may access the output of rank 1.
Plan reaching(const std::string& collective) {
  Plan plan = idle(collective);
  RemoteBuffer remote{};
  remote.rank = 1;
  remote.buffer = BufferKind::output;
  plan.gpus[0].remote_buffers.push_back(remote);
  return plan;
}

TEST(Staging, IsNeededWherePeersAccessOtherMemory) {
  Memory memory;
  Staging staging(memory);
  const Plan plan = reaching("allreduce");
  std::vector<char> in(1024), out(1024);
  const Arguments call{.in = in.data(), .out = out.data(), .bytes = 1024};
  EXPECT_EQ(staging.how(plan, call), Staging::How::staged);
  EXPECT_EQ(staging.how(idle("allreduce"), call), Staging::How::as_passed);
  staging.add_allocated(out.data() + 512, 512);
  EXPECT_EQ(staging.how(plan, call), Staging::How::staged) << "half of the output is other memory";
  staging.add_allocated(out.data(), 1024);
  EXPECT_EQ(staging.how(plan, call), Staging::How::as_passed) << "peers do not access the input";
  EXPECT_EQ(staging.how(plan, {.in = in.data(), .out = in.data(), .bytes = 0}), Staging::How::as_passed);
}

TEST(Staging, RanksPublishBuffersIfTheyCan) {
  constexpr uint64_t most = Executor::most_direct;
  Memory memory;
  memory.publishes = true;
  Staging staging(memory);
  char byte = 0;
  const auto how = [&](const std::string& collective, uint64_t bytes) {
    return staging.how(reaching(collective), {.in = &byte, .out = &byte, .bytes = bytes});
  };
  EXPECT_EQ(how("allreduce", 4), Staging::How::published);
  EXPECT_EQ(how("allreduce", 5 * most), Staging::How::published);
  EXPECT_EQ(how("allgather", most), Staging::How::published);
  EXPECT_EQ(how("allgather", 2 * most), Staging::How::published);
  EXPECT_EQ(how("allgather", 2 * most + 8), Staging::How::staged) << "pieces of the parts are not aligned";
  EXPECT_EQ(staging.how(idle("allreduce"), {.in = &byte, .out = &byte, .bytes = 4}), Staging::How::as_passed);
}

/// Ranks publish only addresses of whole 16 bytes. In place, a part is where the lengths of the others say.
TEST(Staging, PartsOfAPlanInPlaceArePublishedIfTheyAreAligned) {
  Memory memory;
  memory.publishes = true;
  Staging staging(memory);
  char byte = 0;
  const auto how = [&](const std::string& collective, uint64_t bytes) {
    Plan plan = reaching(collective);
    plan.inplace = true;
    return staging.how(plan, {.in = &byte, .out = &byte, .bytes = bytes});
  };
  EXPECT_EQ(how("allgather", 64), Staging::How::published);
  EXPECT_EQ(how("allgather", 56), Staging::How::staged);
  EXPECT_EQ(how("allreduce", 28), Staging::How::published);
}

TEST(Staging, PiecesOfPublishedBuffersCoverTheMessage) {
  constexpr uint64_t most = Executor::most_direct;
  char* const in = reinterpret_cast<char*>(uintptr_t(1) << 40);
  char* const out = reinterpret_cast<char*>(uintptr_t(1) << 41);
  for (const uint64_t bytes : {uint64_t(4), most, most + 4, 2 * most, 2 * most + 4, 7 * most - 8}) {
    SCOPED_TRACE(bytes);
    uint64_t begin = 0, shortest = bytes;
    const auto visit = [&](const Arguments& piece, const Publishing& publishing) {
      EXPECT_TRUE(publishing.on);
      EXPECT_EQ(publishing.part_distance, 0u);
      EXPECT_EQ(piece.in, in + begin);
      EXPECT_EQ(piece.out, out + begin);
      EXPECT_LE(piece.bytes, most);
      shortest = std::min(shortest, piece.bytes);
      begin += piece.bytes;
    };
    Staging::for_each_published(idle("allreduce"), {.in = in, .out = out, .bytes = bytes}, visit);
    EXPECT_EQ(begin, bytes);
    EXPECT_TRUE(bytes <= most || shortest >= most / 3) << shortest;
  }
}

TEST(Staging, PiecesOfPublishedPartsCoverEachPart) {
  constexpr uint64_t most = Executor::most_direct;
  char* const in = reinterpret_cast<char*>(uintptr_t(1) << 40);
  char* const out = reinterpret_cast<char*>(uintptr_t(1) << 41);
  for (const char* const collective : {"allgather", "reducescatter", "alltoall"}) {
    for (const uint64_t parts : {2, 3, 7, 8}) {
      for (const uint64_t about : {most, most + 32 * parts, 2 * most, 7 * most - 32 * parts}) {
        const uint64_t part = about / parts / 16 * 16, bytes = part * parts;
        SCOPED_TRACE(bytes);
        uint64_t begin = 0;
        const auto visit = [&](const Arguments& piece, const Publishing& publishing) {
          EXPECT_EQ(publishing.part_distance, bytes <= most ? 0 : part);
          EXPECT_EQ(piece.in, in + begin);
          EXPECT_EQ(piece.out, out + begin);
          EXPECT_LE(piece.bytes, most);
          EXPECT_EQ(piece.bytes % (16 * parts), 0u);
          begin += piece.bytes / parts;
        };
        const Plan plan = idle(collective, uint32_t(parts));
        Staging::for_each_published(plan, {.in = in, .out = out, .bytes = bytes}, visit);
        EXPECT_EQ(begin, part);
      }
    }
  }
}

/// Runs a call through staging of at most `most` bytes. A fake execution copies the input to each part of the
/// output, and adds the number of the part.
void run(const std::string& collective, uint64_t in_parts, uint64_t out_parts, uint64_t part, uint64_t most,
         int pieces) {
  SCOPED_TRACE(collective);
  Memory memory;
  Staging staging(memory, most);
  const Plan plan = reaching(collective);
  std::vector<char> in(in_parts * part), out(out_parts * part), expected(out.size());
  for (uint64_t at = 0; at < in.size(); ++at) in[at] = char(at * 7 % 101);
  for (uint64_t at = 0; at < out.size(); ++at)
    expected[at] =
        char(in[in_parts == 1 ? at % part : at % in.size()] + (in_parts == 1 ? int(at / part) : 0));
  const uint64_t bytes = std::max(in.size(), out.size());
  int ran = 0;
  const Arguments call{.in = in.data(), .out = out.data(), .bytes = bytes, .dtype = DType::u8};
  EXPECT_FALSE(staging.is_allocated());
  staging.run(plan, call, nullptr, [&](const Arguments& piece) {
    ++ran;
    EXPECT_NE(piece.in, call.in);
    EXPECT_NE(piece.out, call.out);
    const uint64_t width = piece.bytes / std::max(in_parts, out_parts);
    EXPECT_LE(piece.bytes, most);
    for (uint64_t at = 0; at < width * out_parts; ++at) {
      const uint64_t from = in_parts == 1 ? at % width : at;
      static_cast<char*>(piece.out)[at] =
          char(static_cast<const char*>(piece.in)[from] + (in_parts == 1 ? int(at / width) : 0));
    }
  });
  EXPECT_EQ(ran, pieces);
  EXPECT_EQ(out, expected);
  int seen = 0;
  EXPECT_TRUE(staging.is_allocated());
  staging.for_each_call(plan, call, [&](const Arguments&) { ++seen; });
  EXPECT_EQ(seen, pieces);
}

TEST(Staging, TakesTheSameRangeOfEveryPart) {
  run("allreduce", 1, 1, 1000, 1024, 1);
  run("allreduce", 1, 1, 5000, 1024, 5);
  run("allgather", 1, 2, 1300, 1024, 3);
  run("alltoall", 2, 2, 1300, 1024, 3);
}

TEST(Staging, RefusesLongMessagesOfOtherCollectives) {
  Memory memory;
  Staging staging(memory, 1024);
  Plan plan = reaching("test");
  std::vector<char> in(4096), out(4096);
  EXPECT_NE(test::thrown([&] {
              staging.run(plan, {.in = in.data(), .out = out.data(), .bytes = 4096}, nullptr,
                          [](const Arguments&) {});
            }).find("take memory of Executor::allocate() for more than 1024 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace chorale
