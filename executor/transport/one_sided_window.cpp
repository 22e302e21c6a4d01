#include "chorale/one_sided_window.hpp"

#include <fmt/format.h>

#include <array>

#include "../world/together.hpp"

namespace chorale {

OneSidedWindow OneSidedWindow::create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers) {
  using Counts = std::array<uint32_t, 2>;
  const Counts mine{signals, barriers};
  const auto all = world.allgather(world::bytes_of(mine));
  for (int rank = 1; rank < world.ranks(); ++rank) {
    const auto first = world::read_as<Counts>(all[0]), other = world::read_as<Counts>(all[size_t(rank)]);
    if (first != other) {
      throw RunError(
          RunError::Reason::mismatch,
          fmt::format("the ranks make different windows: {} signals and {} barriers at rank 0, {} and {} "
                      "at rank {}",
                      first[0], first[1], other[0], other[1], rank));
    }
  }
  Window data = Window::create(world, bytes);
  const uint64_t words = uint64_t(world.ranks()) * signals * sizeof(Signal) + barriers * sizeof(Barrier);
  return OneSidedWindow(world, std::move(data), Window::create(world, words), signals, barriers);
}

OneSidedWindow::OneSidedWindow(World& world, Window data, Window words, uint32_t signals, uint32_t barriers)
    : data_(std::move(data)),
      words_(std::move(words)),
      rank_(world.rank()),
      signals_(signals),
      barriers_(barriers) {
  for (int rank = 0; rank < world.ranks(); ++rank) {
    bases_.push_back(reinterpret_cast<char*>(data_.at(rank)));
    bytes_.push_back(data_.bytes(rank));
    std::byte* const at = words_.at(rank);
    signals_at_.push_back(reinterpret_cast<Signal*>(at));
    barriers_at_.push_back(
        at ? reinterpret_cast<Barrier*>(at + uint64_t(world.ranks()) * signals * sizeof(Signal)) : nullptr);
  }
}

WindowView OneSidedWindow::view() const {
  WindowView view;
  view.base = bases_.data();
  view.bytes = bytes_.data();
  view.signals = signals_at_.data();
  view.barriers = barriers_at_.data();
  view.self = rank_;
  view.ranks = int32_t(bases_.size());
  view.signal_count = signals_;
  view.barrier_count = barriers_;
  return view;
}

}  // namespace chorale
