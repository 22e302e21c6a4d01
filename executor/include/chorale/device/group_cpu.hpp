#pragma once
// This file defines groups on the CPU. group.hpp includes it.

#include <cassert>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>

#include "chorale/device/group_interface.hpp"

namespace chorale {

CHORALE_FN void Group::sync() const {
  if (size == 1) return;
  assert(host && "a CPU group of several threads needs its HostBlock");
  host->sync();
}

CHORALE_FN void Group::pause(uint32_t) const { std::this_thread::yield(); }

template <class Ready>
CHORALE_FN void Group::park(const Ready& ready, uint32_t spin) const {
  if (!host) return pause(spin);
  host->park([](const void* state) -> bool { return (*static_cast<const Ready*>(state))(); }, &ready);
}

CHORALE_FN void Group::step() const {
  if (host) host->step();
}

CHORALE_FN Stop Group::stopped() const { return host ? host->stopped() : Stop::none; }

template <class T>
CHORALE_FN T Group::broadcast(T value) const {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(HostBlock::own_cell));
  if (size == 1) return value;
  sync();  // no thread still reads the cell for an earlier call
  if (leader()) std::memcpy(host->cell, &value, sizeof value);
  sync();
  std::memcpy(&value, host->cell, sizeof value);
  return value;
}

CHORALE_FN bool Group::all(bool yes) const {
  if (size == 1) return yes;
  sync();  // no thread still reads the cell for an earlier call
  if (leader()) store_relaxed(&host->cell[0], uint64_t{1});
  sync();
  if (!yes) store_relaxed(&host->cell[0], uint64_t{0});
  sync();
  return load_relaxed(&host->cell[0]) != 0;
}

CHORALE_FN Group Group::warps() const {
  Group warp = *this;
  warp.scope = Scope::warp;
  warp.rank = 0;
  warp.size = 1;
  warp.id = id * size + rank;
  warp.count = count * size;
  return warp;
}

/// Returns a group of one CPU thread, which is all of block `block` of `blocks`.
CHORALE_FN Group block_group(uint32_t block = 0, uint32_t blocks = 1, HostBlock* host = nullptr) {
  Group group;
  group.id = group.block = block;
  group.count = blocks;
  group.scope = Scope::block;
  group.host = host;
  return group;
}

CHORALE_FN Group cluster_group(const Group& block) {
  detail::check_cluster(block);
  Group group = block;
  group.scope = Scope::cluster;
  return group;
}

CHORALE_FN Group multiwarp_group(const Group& block, uint32_t threads) {
  if (block.scope != Scope::block || threads == 0 || block.size % threads != 0) {
    refuse("the size of a group does not divide its block");
  }
  const uint32_t groups = block.size / threads;
  Group group = block;
  group.scope = Scope::multiwarp;
  group.rank = block.rank % threads;
  group.size = threads;
  group.id = block.id * groups + block.rank / threads;
  group.count = block.count * groups;
  if (threads > 1) {
    group.host = block.host->part(threads);
    assert(group.host && "this HostBlock has no parts");
  }
  return group;
}

}  // namespace chorale
