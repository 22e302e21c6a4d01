#include "chorale/one_sided_window.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "chorale/window.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "in_device_memory.hpp"

namespace chorale {

struct OneSidedWindow::State {
  /// Gives access to memory in either space, with one piece per rank.
  struct Piece {
    std::function<std::byte*(int)> at;
    std::function<uint64_t(int)> bytes;
    std::function<void()> clear;  ///< zeroes all of it; collective, and no kernel may run
    bool whole_lines;             ///< as OneSidedWindow::whole_lines()
  };
  static Piece piece(World& world, uint64_t bytes, Space space) {
    if (space == Space::device) {
      const std::shared_ptr<transport::DeviceWindow> window = transport::device_window(world, bytes);
      return {[window](int rank) { return reinterpret_cast<std::byte*>(window->at(rank)); },
              [window](int rank) { return window->bytes(rank); },
              [window, &world] {
                world::collective_try(world, [&] { window->finish(); });
                world::collective_try(world, [&] { window->clear(0, window->bytes(world.rank())); });
              },
              window->whole_lines()};
    }
    const auto window = std::make_shared<Window>(Window::create(world, bytes));
    return {[window](int rank) { return window->at(rank); },
            [window](int rank) { return window->bytes(rank); },
            [window, &world] {
              world.barrier();
              std::memset(window->at(world.rank()), 0, window->bytes(world.rank()));
              world.barrier();
            },
            true};
  }

  /// Returns the address at which kernels of `space` read the array.
  template <class T>
  const T* where_read(const std::vector<T>& array, Space space) {
    if (space == Space::host) return array.data();
    copies.push_back(transport::device_copy(array.data(), std::span(array).size_bytes()));
    return static_cast<const T*>(copies.back().get());
  }

  int rank = -1;
  Piece data, words;
  std::vector<char*> bases;
  std::vector<uint64_t> bytes;
  std::vector<Signal*> signals;
  std::vector<Barrier*> barriers;
  std::vector<std::shared_ptr<const void>> copies;
  WindowView view;
};

OneSidedWindow OneSidedWindow::create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers,
                                      Space space) {
  world.group().require_one_host("OneSidedWindow::create");
  using Counts = std::array<uint32_t, 3>;
  const Counts mine{signals, barriers, uint32_t(space)};
  const auto all = world.allgather(world::bytes_of(mine));
  for (int rank = 1; rank < world.ranks(); ++rank) {
    const auto first = world::read_as<Counts>(all[0]), other = world::read_as<Counts>(all[size_t(rank)]);
    if (first != other) {
      const auto text = [](const Counts& of) {
        return fmt::format("{} signals and {} barriers{}", of[0], of[1],
                           Space(of[2]) == Space::device ? " in device memory" : "");
      };
      throw RunError(RunError::Reason::mismatch,
                     fmt::format("the ranks make different windows: {} at rank 0, {} at rank {}", text(first),
                                 text(other), rank));
    }
  }
  const int ranks = world.ranks();
  const uint64_t signal_bytes = uint64_t(ranks) * signals * sizeof(Signal);
  auto state = std::make_unique<State>();
  state->rank = world.rank();
  state->data = State::piece(world, bytes, space);
  state->words = State::piece(world, signal_bytes + barriers * sizeof(Barrier), space);
  for (int rank = 0; rank < ranks; ++rank) {
    state->bases.push_back(reinterpret_cast<char*>(state->data.at(rank)));
    state->bytes.push_back(state->data.bytes(rank));
    std::byte* const at = state->words.at(rank);
    state->signals.push_back(reinterpret_cast<Signal*>(at));
    state->barriers.push_back(at ? reinterpret_cast<Barrier*>(at + signal_bytes) : nullptr);
  }
  WindowView& view = state->view;
  world::collective_try(world, [&] {
    view.base = state->where_read(state->bases, space);
    view.bytes = state->where_read(state->bytes, space);
    view.signals = state->where_read(state->signals, space);
    view.barriers = state->where_read(state->barriers, space);
  });
  view.self = world.rank();
  view.ranks = ranks;
  view.signal_count = signals;
  view.barrier_count = barriers;
  return OneSidedWindow(std::move(state));
}

OneSidedWindow::OneSidedWindow(std::unique_ptr<State> state) : state_(std::move(state)) {}
OneSidedWindow::OneSidedWindow(OneSidedWindow&&) noexcept = default;
OneSidedWindow& OneSidedWindow::operator=(OneSidedWindow&&) noexcept = default;
OneSidedWindow::~OneSidedWindow() = default;

std::byte* OneSidedWindow::local() const { return state_->data.at(state_->rank); }
uint64_t OneSidedWindow::bytes(int rank) const { return state_->data.bytes(rank); }
WindowView OneSidedWindow::view() const { return state_->view; }
bool OneSidedWindow::whole_lines() const { return state_->data.whole_lines; }
void OneSidedWindow::reset() { state_->words.clear(); }
void OneSidedWindow::clear() {
  state_->data.clear();
  reset();
}

}  // namespace chorale
