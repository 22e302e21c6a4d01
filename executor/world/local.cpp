// World::local() and run_local() make worlds whose ranks live in one process.

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "chorale/world.hpp"
#include "executor/system/deadline.hpp"
#include "executor/system/thread.hpp"
#include "executor/system/thrown.hpp"
#include "group.hpp"

namespace chorale {
namespace {

void check_ranks(int ranks) {
  if (ranks < 1) throw UsageError(fmt::format("a world of {} ranks: it needs at least 1", ranks));
  if (ranks > World::most_ranks)
    throw UsageError(fmt::format("a world of {} ranks: it can have at most {}", ranks, World::most_ranks));
}

std::shared_ptr<world::Group> make_group(int ranks, const LocalOptions& options) {
  system::check_timeout(options.timeout, "LocalOptions::timeout");
  return std::make_shared<world::Group>(
      ranks, world::Group::Options{options.workers, options.seed, options.timeout});
}

/// Returns whether an error only reports that another rank stopped the world.
bool is_echo(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RunError& known) {
    return known.reason == RunError::Reason::aborted || known.reason == RunError::Reason::peer_lost;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::vector<World> World::local(int ranks, LocalOptions options) {
  check_ranks(ranks);
  if (options.seed) {
    throw UsageError(
        "World::local() does not take a seed: only run_local() can run the ranks in the order of a seed");
  }
  const std::shared_ptr<world::Group> group = make_group(ranks, options);
  std::vector<World> worlds;
  for (int rank = 0; rank < ranks; ++rank) worlds.push_back(World(group, rank));
  return worlds;
}

void run_local(int ranks, const std::function<void(World&)>& body, LocalOptions options) {
  check_ranks(ranks);
  if (!body) throw UsageError("run_local(): the body is an empty function");
  const std::shared_ptr<world::Group> group = make_group(ranks, options);
  std::vector<std::exception_ptr> errors(ranks);
  const auto run_rank = [&](World world) {
    try {
      body(world);
    } catch (...) {
      errors[world.rank()] = std::current_exception();
      world.abort(system::thrown_text());
    }
  };
  // We make all handles before the first body runs, so that a rank that ends early has left and is not
  // missing.
  std::vector<World> worlds;
  for (int rank = 0; rank < ranks; ++rank) worlds.push_back(World(group, rank));
  if (options.seed) {
    std::vector<std::function<void()>> bodies;
    for (World& world : worlds) bodies.push_back([&run_rank, &world] { run_rank(std::move(world)); });
    group->scheduler().run_seeded(std::move(bodies));
  } else {
    std::vector<std::thread> threads;
    threads.reserve(worlds.size());
    try {
      for (World& world : worlds)
        threads.push_back(
            system::start_thread("a rank", [&run_rank, &world] { run_rank(std::move(world)); }));
    } catch (const RunError& failed) {
      // Otherwise the ranks that already run would wait for this one.
      const size_t rank = threads.size();
      errors[rank] = std::current_exception();
      worlds[rank].abort(failed.what());
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error && !is_echo(error)) std::rethrow_exception(error);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace chorale
