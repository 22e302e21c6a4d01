// These tests run block hooks of several threads with their own memory, which stands for a GPU's shared
// memory.

#include <array>

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

constexpr uint32_t width = 8;

/// Each thread writes its work, all synchronise, and each sees that all have done the same. It does not
/// synchronise again after that, because the library must delay the next call.
struct Cells {
  std::array<uint64_t, width>* cells;  ///< the block's cells
  int* wrong;

  template <class X>
  void meet(const Ctx<X>& ctx, const Group& group, uint64_t phase) const {
    const uint64_t call = (ctx.tile * 16 + ctx.shard) * 2 + phase;
    (*cells)[group.rank] = call;
    group.sync();
    for (const uint64_t cell : *cells) *wrong += cell != call;
  }
};

struct ProduceByBlock : Cells {
  using block_hook = void;
  template <class X>
  void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    meet(ctx, group, 0);
    const char* const in = static_cast<const char*>(ctx.in) + ctx.index * sizeof(float);
    if (group.leader()) std::memcpy(tile.data, in, tile.bytes);
  }
};

struct ConsumeByBlock : Cells {
  using block_hook = void;
  template <class X>
  void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    meet(ctx, group, 1);
    char* const out = static_cast<char*>(ctx.out) + ctx.index * sizeof(float);
    if (group.leader()) std::memcpy(out, tile.data, tile.bytes);
  }
};

TEST(Seeds, BlockHooksMayUseTheirMemoryFromCallToCall) {
  const uint64_t n = 40;  // three tiles
  int wrong = 0;          // all ranks are fibers of one thread
  for (uint64_t seed = 0; seed < 50; ++seed) {
    run_local(3,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, rings(1, 2, 64));
                const auto in = message_of<float>(uint64_t(world.rank()), 3 * n);
                std::vector<float> out(3 * n);
                std::array<uint64_t, width> cells{};
                const Cells shared{&cells, &wrong};
                launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
                  return all_to_all<float>(group, transport->table(), leg_of<float>(in.data(), out.data(), n),
                                           {4 * n, 4 * n}, ProduceByBlock{shared}, ConsumeByBlock{shared},
                                           deadline);
                }},
                       {1, width});
                for (uint64_t at = 0; at < 3 * n; ++at) {
                  ASSERT_EQ(out[at], value_at<float>(at / n, n * uint64_t(world.rank()) + at % n)) << at;
                }
              },
              {.seed = seed});
    ASSERT_EQ(wrong, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace chorale
