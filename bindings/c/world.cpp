#include <fmt/format.h>

#include <algorithm>
#include <chorale/error.hpp>
#include <utility>

#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

using namespace chorale;
using namespace chorale::c;

namespace {

chorale_world* opened(World world) {
  return c::open<chorale_world>(std::make_shared<WorldObject>(std::move(world)));
}

/// Runs `call` on a world that no other thread is using.
template <class Call>
void alone(const chorale_world* world, const Call& call) {
  const std::shared_ptr<WorldObject> object = get(world);
  const Use use(object->in_use);
  call(object->world);
}

}  // namespace

chorale_status chorale_world_join(const char* address, int32_t rank, int32_t ranks, chorale_config* config,
                                  chorale_world** world) {
  return guarded(__func__, [&] {
    chorale_world*& out = result("world", world);
    out = opened(World::join(text("address", address), rank, ranks, config_of(config).join()));
  });
}

chorale_status chorale_world_from_environment(chorale_config* config, chorale_world** world) {
  return guarded(__func__, [&] {
    chorale_world*& out = result("world", world);
    out = opened(World::from_environment(config_of(config).join()));
  });
}

chorale_status chorale_world_local(int32_t ranks, chorale_config* config, chorale_world** worlds) {
  return guarded(__func__, [&] {
    required("worlds", worlds);
    std::vector<World> made = World::local(ranks, config_of(config).local());
    std::vector<chorale_world*> handles;
    for (World& world : made) handles.push_back(opened(std::move(world)));
    std::copy(handles.begin(), handles.end(), worlds);
  });
}

chorale_status chorale_world_rank(chorale_world* world, int32_t* rank) {
  return guarded(__func__, [&] {
    int32_t& out = result("rank", rank);
    out = get(world)->world.rank();
  });
}

chorale_status chorale_world_ranks(chorale_world* world, int32_t* ranks) {
  return guarded(__func__, [&] {
    int32_t& out = result("ranks", ranks);
    out = get(world)->world.ranks();
  });
}

chorale_status chorale_world_barrier(chorale_world* world) {
  return guarded(__func__, [&] { alone(world, [](World& of) { of.barrier(); }); });
}

chorale_status chorale_world_abort(chorale_world* world, const char* why) {
  return guarded(__func__, [&] { get(world)->world.abort(text("why", why)); });
}

chorale_status chorale_world_check(chorale_world* world) {
  return guarded(__func__, [&] { alone(world, [](const World& of) { of.check(); }); });
}

chorale_status chorale_world_reset(chorale_world* world) {
  return guarded(__func__, [&] { alone(world, [](World& of) { of.reset(); }); });
}

chorale_status chorale_world_survivors(chorale_world* world, chorale_world** survivors) {
  return guarded(__func__, [&] {
    chorale_world*& out = result("survivors", survivors);
    alone(world, [&](World& of) { out = opened(of.survivors()); });
  });
}

chorale_status chorale_world_former_ranks(chorale_world* world, int32_t* former, uint64_t room,
                                          uint64_t* count) {
  return guarded(__func__, [&] {
    uint64_t& out = result("count", count);
    alone(world, [&](const World& of) {
      const std::vector<int> ranks = of.former_ranks();
      out = ranks.size();
      if (room == 0) return;
      required("former", former);
      if (room < ranks.size())
        throw UsageError(
            fmt::format("the array has room for {} ranks, but there are {}", room, ranks.size()));
      std::copy(ranks.begin(), ranks.end(), former);
    });
  });
}

chorale_status chorale_world_close(chorale_world* world) {
  return guarded(__func__, [&] { take(world); });
}
