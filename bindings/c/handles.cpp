#include "handles.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "status.hpp"

namespace chorale::c {
namespace {

/// Names the kinds of handles in messages, by Kind.
constexpr const char* kind_names[] = {"a config",    "a world",       "a plan",
                                      "an executor", "a tuned_plans", "an exchange"};

struct Entry {
  Kind kind;
  std::shared_ptr<void> object;
};

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<uint64_t, Entry> entries;
  uint64_t next = 1;
};

/// Returns the table, which is never destroyed. Objects that an application has not closed stay when the
/// process ends, because threads and the driver that they need may be gone by then.
Table& table() {
  static Table& all = *new Table;
  return all;
}

}  // namespace

uint64_t add_handle(Kind kind, std::shared_ptr<void> object) {
  Table& all = table();
  const std::unique_lock lock(all.mutex);
  all.entries.emplace(all.next, Entry{kind, std::move(object)});
  return all.next++;
}

std::shared_ptr<void> find_handle(Kind kind, uint64_t number, bool takes) {
  const char* const wanted = kind_names[size_t(kind)];
  if (number == 0) throw StatusError(CHORALE_INVALID_HANDLE, fmt::format("the handle of {} is null", wanted));
  Table& all = table();
  std::unordered_map<uint64_t, Entry>::node_type taken;  // destroyed after the lock is released
  std::shared_lock shared(all.mutex, std::defer_lock);
  std::unique_lock alone(all.mutex, std::defer_lock);
  takes ? alone.lock() : shared.lock();
  const auto found = all.entries.find(number);
  if (found == all.entries.end()) {
    throw StatusError(CHORALE_INVALID_HANDLE,
                      number < all.next ? fmt::format("handle {} of {} has been closed", number, wanted)
                                        : fmt::format("{:#x} is not a handle of {}: use the number that the "
                                                      "function which makes one returns, not an address",
                                                      number, wanted));
  }
  if (found->second.kind != kind) {
    throw StatusError(CHORALE_INVALID_HANDLE,
                      fmt::format("handle {} is of {}, but one of {} is needed", number,
                                  kind_names[size_t(found->second.kind)], wanted));
  }
  if (!takes) return found->second.object;
  taken = all.entries.extract(found);
  return std::move(taken.mapped().object);
}

Use::Use(std::atomic<bool>& in_use) : in_use_(in_use) {
  if (in_use_.exchange(true, std::memory_order_acquire)) {
    throw StatusError(
        CHORALE_IN_USE,
        "a world, with its executors and exchanges, takes one call at a time, and another thread is in one: "
        "give each thread its own world, or let one thread make all calls; only abort may come at any time");
  }
}

}  // namespace chorale::c
