#include "registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <shared_mutex>
#include <span>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/system/thread.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "imported.hpp"

namespace chorale::cuda {
namespace {

/// Asks a rank to map an allocation. Each pair of ranks has one at a time.
struct Request {
  std::atomic<uint64_t> asked{0};  ///< the number of requests, written by the owner after the other fields
  uint64_t number = 0;
  uint64_t place = 0;
  uint64_t base = 0, bytes = 0;
  HandleBytes handle{};
  std::atomic<uint64_t> answered{0};  ///< the number of answers, written after `address`
  uint64_t address = 0;               ///< where the rank that was asked sees it; 0: it cannot map it
};

/// After this many refusals, not every call asks again.
constexpr int most_refusals = 8;
constexpr std::chrono::seconds between_looks{1};

/// A registry of this process locks this mutex to unmap memory, and shares it to map memory. Unmapping may
/// wait for a kernel that waits for a peer, so a thread that maps memory for peers does not wait for it.
std::shared_mutex unmapping;

/// Returns CUDA's number for the allocation at an address; 0 if there is none.
uint64_t buffer_id_of(uint64_t at) {
  unsigned long long id = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* to[] = {&id};
  return driver().cuPointerGetAttributes(1, what, to, at) == CUDA_SUCCESS ? id : 0;
}

}  // namespace

/// Each rank has one in its window, which all ranks map.
struct Registry::Board {
  std::atomic<uint32_t> bell{0};                    ///< rung when there is a request to this rank
  std::atomic<uint64_t> frees{0};                   ///< how many allocations of this rank peers should unmap
  std::atomic<uint64_t> alive[most_allocations]{};  ///< numbers of the allocations that peers may have open
  /// Follows this struct: by rank, its Request to this one.
  Request& from(int rank) { return reinterpret_cast<Request*>(this + 1)[rank]; }
};

Registry::Registry(World& world, Imports& imports, Pool& pool)
    : world_(world),
      imports_(imports),
      pool_(pool),
      rank_(world.rank()),
      device_(imports.devices()[size_t(world.rank())].ordinal),
      places_(most_allocations),
      in_request_(size_t(world.ranks())),
      seen_frees_(size_t(world.ranks())) {
  if (!world_.local()) {
    static_assert(alignof(Request) <= alignof(Board) && sizeof(Board) % alignof(Request) == 0);
    window_ = Window::create(world_, sizeof(Board) + size_t(world_.ranks()) * sizeof(Request));
    Board* const mine = new (window_->local()) Board;
    for (int peer = 0; peer < world_.ranks(); ++peer) new (&mine->from(peer)) Request;
  }
  world::collective_try(world_, [&] {
    if (window_) thread_ = system::start_thread("mapping memory of peers", [this] { serve(); });
  });
}

Registry::~Registry() {
  if (!thread_.joinable()) return;
  quit_ = true;
  board(rank_).bell.fetch_add(1, std::memory_order_release);
  world::wake_all(board(rank_).bell);
  thread_.join();
}

Registry::Board& Registry::board(int rank) const { return *reinterpret_cast<Board*>(window_->at(rank)); }

bool Registry::shares_process(int rank) const {
  const std::vector<RankDevice>& devices = imports_.devices();
  return devices[size_t(rank)].process == devices[size_t(rank_)].process;
}

size_t Registry::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_.size();
}

// -- This rank's memory

const SeenBy* Registry::fail(std::string why) {
  why_not_ = std::move(why);
  return nullptr;
}

/// Returns the allocation that contains an address, if peers may know it.
Registry::Known* Registry::known_at(uint64_t at) {
  auto next = known_.upper_bound(at);
  if (next == known_.begin()) return nullptr;
  Known& one = (--next)->second;
  return at - one.seen.base < one.seen.bytes ? &one : nullptr;
}

const SeenBy* Registry::find(const void* at, uint64_t bytes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(at);
  look_for_freed();
  Known* one = known_at(begin);
  if (one && buffer_id_of(begin) != one->segment.buffer_id) {
    drop_freed();
    one = known_at(begin);
  }
  if (!one) {
    one = add(at, bytes);
    if (!one) return nullptr;
  }
  if (!one->seen.contains(at, bytes)) return fail("it spans two allocations");
  if (!complete(*one)) return nullptr;
  return &one->seen;
}

namespace {

/// Finds the only allocation of a buffer. Returns the reason if peers cannot map it.
std::string find_allocation(const void* at, uint64_t bytes, Segment& segment) {
  const Located located = locate(at, bytes);
  if (located.segments.empty()) return located.why_not;
  segment = located.segments.front();
  return segment.sharing == Sharing::ipc ? "" : "it is no memory of cudaMalloc()";
}

}  // namespace

std::string Registry::why_not_mapped(const void* at, uint64_t bytes) {
  Segment segment;
  return find_allocation(at, bytes, segment);
}

/// Finds the allocation of a buffer. Returns null if it cannot be shared this way.
Registry::Known* Registry::add(const void* at, uint64_t bytes) {
  Segment segment;
  if (std::string why = find_allocation(at, bytes, segment); !why.empty()) {
    fail(std::move(why));
    return nullptr;
  }
  drop_freed();
  const auto free = std::find(places_.begin(), places_.end(), false);
  if (free == places_.end()) {
    fail(fmt::format("peers have {} other allocations open", most_allocations));
    return nullptr;
  }
  Known& one = known_[segment.base];
  one.seen = {segment.base, segment.bytes, std::vector<uint64_t>(size_t(world_.ranks()))};
  one.segment = segment;
  one.number = exports_.number_of(segment);
  one.place = size_t(free - places_.begin());
  *free = true;
  for (int peer = 0; peer < world_.ranks(); ++peer) {
    if (shares_process(peer)) one.seen.at[size_t(peer)] = segment.base;
  }
  if (window_) board(rank_).alive[one.place].store(one.number, std::memory_order_release);
  return &one;
}

/// Looks now and then for memory that the program has freed.
void Registry::look_for_freed() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + between_looks;
  drop_freed();
}

/// Forgets the allocations that no longer exist.
void Registry::drop_freed() {
  const std::vector<uint64_t> freed = exports_.forget_freed();
  std::erase_if(known_, [&](const auto& known) {
    const Known& one = known.second;
    if (std::find(freed.begin(), freed.end(), one.number) == freed.end()) return false;
    places_[one.place] = false;
    if (window_) {
      board(rank_).alive[one.place].store(0, std::memory_order_release);
      ++untold_frees_;
    }
    return true;
  });
}

void Registry::tell_freed() {
  if (untold_frees_ != 0)
    board(rank_).frees.fetch_add(std::exchange(untold_frees_, 0), std::memory_order_release);
}

/// Returns whether all ranks see an allocation. Asks those that do not, and waits a short time.
bool Registry::complete(Known& one) {
  const auto is_seen = [&] {
    return std::find(one.seen.at.begin(), one.seen.at.end(), 0) == one.seen.at.end();
  };
  if (is_seen()) return true;
  const auto begin = std::chrono::steady_clock::now();
  if (one.refusals >= most_refusals && begin < one.next_ask) {
    // Another communicator in the peer's process may still have freed memory mapped at these addresses. The
    // peer can map the new memory after that one has unmapped it.
    fail("a peer cannot map it");
    return false;
  }
  // A peer that has not answered in time is not waited for in every call.
  const auto end = begin < one.next_wait ? begin : begin + most_wait;
  std::vector<Answer> answers;
  for (const uint64_t at : one.seen.at) answers.push_back(at != 0 ? Answer::yes : Answer::none);
  for (;;) {
    bool waits = false;
    for (size_t peer = 0; peer < answers.size(); ++peer) {
      if (answers[peer] == Answer::none) answers[peer] = ask(int(peer), one);
      waits = waits || answers[peer] == Answer::none;
    }
    if (!waits) {
      if (is_seen()) return true;
      ++one.refusals;
      one.next_ask = begin + between_refusals;
      fail("a peer could not map it");
      return false;
    }
    const bool stopped = load_relaxed(&world_.abort_word()->stop) != 0;
    if (stopped || std::chrono::steady_clock::now() >= end) {
      if (begin >= one.next_wait) one.next_wait = begin + between_refusals;
      fail("a peer has not mapped it yet");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// Asks a peer to map an allocation, or takes its answer if there is one.
Registry::Answer Registry::ask(int peer, Known& one) {
  Board& there = board(peer);
  Request& request = there.from(rank_);
  const uint64_t asked = request.asked.load(std::memory_order_relaxed);
  if (request.answered.load(std::memory_order_acquire) != asked) return Answer::none;
  if (std::exchange(in_request_[size_t(peer)], char(false))) {
    take_answer(peer, request.number, request.address);
    if (request.number == one.number) return request.address == 0 ? Answer::no : Answer::yes;
  }
  request.number = one.number;
  request.place = one.place;
  request.base = one.seen.base;
  request.bytes = one.seen.bytes;
  {
    const OutsideCapture outside;
    request.handle = handle_of(one.segment);
  }
  in_request_[size_t(peer)] = true;
  request.asked.store(asked + 1, std::memory_order_release);
  there.bell.fetch_add(1, std::memory_order_release);
  world::wake_all(there.bell);
  return Answer::none;
}

void Registry::take_answer(int peer, uint64_t number, uint64_t address) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& known) { return known.second.number == number; });
  if (found != known_.end()) {
    found->second.seen.at[size_t(peer)] = address;
  } else {
    // The allocation was freed meanwhile, and the peer may have opened it after it looked.
    ++untold_frees_;
  }
}

std::shared_ptr<const BounceBuffer> Registry::bounce_buffer(uint64_t bytes) {
  constexpr uint64_t least = uint64_t(1) << 20;
  if (bounce_ && bounce_->block.bytes() >= bytes + BounceBuffer::spare) return bounce_;
  bounce_.reset();
  auto made = std::make_shared<BounceBuffer>();
  made->block = pool_.take(std::bit_ceil(std::max(bytes, least)) + BounceBuffer::spare);
  // Each rank tells the others where it sees their blocks.
  std::vector<uint64_t> mine;
  for (int rank = 0; rank < world_.ranks(); ++rank)
    mine.push_back(reinterpret_cast<uint64_t>(made->block.at(rank)));
  const auto bytes_of_mine = std::as_bytes(std::span(mine));
  made->seen.base = mine[size_t(rank_)];
  made->seen.bytes = made->block.bytes();
  for (const std::vector<std::byte>& theirs : world_.allgather(bytes_of_mine)) {
    uint64_t at = 0;
    std::memcpy(&at, theirs.data() + size_t(rank_) * sizeof at, sizeof at);
    made->seen.at.push_back(at);
  }
  bounce_ = made;
  return bounce_;
}

// -- The peers' memory

bool Registry::peers_have_freed() const {
  if (opened_freed_.load(std::memory_order_acquire)) return true;
  for (int peer = 0; window_ && peer < world_.ranks(); ++peer) {
    if (board(peer).frees.load(std::memory_order_acquire) != seen_frees_[size_t(peer)]) return true;
  }
  return false;
}

void Registry::close_freed() {
  if (!window_) return;
  std::vector<std::unique_ptr<Imported>> closed;  // destroyed without the lock, because that takes long
  const bool all = opened_freed_.exchange(false, std::memory_order_acq_rel);
  for (int peer = 0; peer < world_.ranks(); ++peer) {
    const uint64_t frees = board(peer).frees.load(std::memory_order_acquire);
    if (!all && frees == seen_frees_[size_t(peer)]) continue;
    seen_frees_[size_t(peer)] = frees;
    const std::lock_guard lock(mutex_);
    for (auto at = opened_.begin(); at != opened_.end();) {
      const auto [rank, number] = at->first;
      if (rank == peer && board(peer).alive[at->second.place].load(std::memory_order_acquire) != number) {
        closed.push_back(std::move(at->second.imported));
        at = opened_.erase(at);
      } else {
        ++at;
      }
    }
  }
  if (closed.empty()) return;
  const OutsideCapture outside;
  const std::lock_guard lock(unmapping);
  closed.clear();
}

/// Maps memory for the peers that ask. Runs in a thread of its own.
void Registry::serve() {
  constexpr std::chrono::milliseconds most_sleep{100};
  Board& mine = board(rank_);
  // Nothing here may wait for the GPU. The context is there, so this does not make one.
  check_quietly(cudaSetDevice(device_), "cudaSetDevice");
  while (!quit_.load(std::memory_order_relaxed)) {
    const uint32_t seen = mine.bell.load(std::memory_order_acquire);
    for (int peer = 0; peer < world_.ranks(); ++peer) answer(peer);
    world::sleep_on(mine.bell, seen, most_sleep);
  }
}

void Registry::answer(int peer) {
  Request& request = board(rank_).from(peer);
  const uint64_t asked = request.asked.load(std::memory_order_acquire);
  if (request.answered.load(std::memory_order_relaxed) == asked) return;
  const auto mapped = [&]() -> uint64_t {
    const std::shared_lock nothing_unmaps(unmapping, std::try_to_lock);
    if (!nothing_unmaps) return 0;
    const OutsideCapture outside;
    const Foreign part{.bytes = request.bytes,
                       .sharing = Sharing::ipc,
                       .handle = request.handle,
                       .descriptor = -1,
                       .owner = imports_.devices()[size_t(peer)].process,
                       .base = request.base,
                       .may_close_others = false};
    auto imported = std::make_unique<Imported>(std::span(&part, 1));
    const uint64_t address = reinterpret_cast<uint64_t>(imported->data());
    const std::lock_guard lock(mutex_);
    opened_[{peer, request.number}] = {std::move(imported), size_t(request.place)};
    // The owner may have freed it meanwhile, and this rank has looked before it was in `opened_`.
    const uint64_t alive = board(peer).alive[request.place].load(std::memory_order_acquire);
    if (alive != request.number) opened_freed_.store(true, std::memory_order_release);
    return address;
  };
  // After a 0 the owner copies through the bounce buffer, and asks again in a later call.
  try {
    request.address = mapped();
  } catch (const std::exception&) {
    request.address = 0;
  }
  request.answered.store(asked, std::memory_order_release);
}

}  // namespace chorale::cuda
