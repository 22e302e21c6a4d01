// World::split() makes new worlds of the ranks of a world.

#include <algorithm>
#include <utility>

#include "chorale/world.hpp"
#include "collective_try.hpp"
#include "executor/system/shared_memory.hpp"
#include "group.hpp"
#include "steps.hpp"

namespace chorale {
namespace {

/// Holds the arguments of one rank.
struct Choice {
  int32_t has_color, color, key;
};

/// Returns the ranks that chose `color`, in the order of their numbers in the new world.
std::vector<int> members_of(const std::vector<std::vector<std::byte>>& choices, int color) {
  std::vector<std::pair<int, int>> members;  // keys and ranks
  for (size_t rank = 0; rank < choices.size(); ++rank) {
    const auto choice = world::read_as<Choice>(choices[rank]);
    if (choice.has_color && choice.color == color) members.push_back({choice.key, int(rank)});
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [key, rank] : members) ranks.push_back(rank);
  return ranks;
}

}  // namespace

// The first rank of each new world makes its memory, and the others open it. All ranks of the old world agree
// after each step. So a rank never waits for the memory of one that has failed or died.
std::optional<World> World::split(std::optional<int> color, int key) {
  using world::Collective;
  if (group_->several_hosts()) {
    throw UsageError(
        "split() is for worlds of one host, and this one has several: the ranks of each part can join a new "
        "world under another address");
  }
  const Choice mine{color.has_value(), color.value_or(0), key};
  const auto choices = group_->allgather(rank_, world::bytes_of(mine), Collective::split);
  const std::vector<int> members = color ? members_of(choices, *color) : std::vector<int>();
  const bool makes = color && members.front() == rank_;
  const int number = int(std::find(members.begin(), members.end(), rank_) - members.begin());
  std::optional<World> made;
  if (group_->local()) {
    std::shared_ptr<world::Group> next;
    world::collective_try(*this, [&] {
      world::at_step(world::CollectiveStep::split);
      if (makes) {
        next = std::make_shared<world::Group>(int(members.size()), group_->options(), group_.get(), members);
      }
    });
    group_->show(rank_, next);
    group_->barrier(rank_, Collective::split);
    if (color) {
      const auto shown = std::static_pointer_cast<const world::Group>(group_->shown(members.front()));
      made.emplace(World(std::const_pointer_cast<world::Group>(shown), number));
    }
    // This rank must show the group until all ranks have it.
    group_->barrier(rank_, Collective::split);
    group_->show(rank_, nullptr);
    return made;
  }
  system::Descriptor memory;
  system::SharedMemory offer;
  world::collective_try(*this, [&] {
    world::at_step(world::CollectiveStep::split);
    if (!makes) return;
    memory = group_->make_control(rank_, members);
    offer = system::offer_of(memory);
  });
  const auto offers = group_->allgather(rank_, world::bytes_of(offer), Collective::split);
  world::collective_try(*this, [&] {
    if (!color) return;
    const auto from = world::read_as<system::SharedMemory>(offers[size_t(members.front())]);
    if (!makes) memory = system::open_offered(from);
    made.emplace(
        World(std::make_shared<world::Group>(system::Mapping(memory, from.bytes), number, group_->options()),
              number));
  });
  return made;
}

}  // namespace chorale
