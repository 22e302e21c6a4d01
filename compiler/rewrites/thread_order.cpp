// Ids of control operations and port transfers are served by one thread each: thread k of a
// block serves id k. Before they were joined each had one id, and one thread did them all
// in order. Joined, an id may move to another thread, which has not seen what the first did.
//
// This is right because a fence is asked for wherever that matters: between two operations of which one has
// several ids and that have no fence between them, if
// - the first waits and the second posts or starts a transfer: what it tells may be that the first
//   is through, with all its ids;
// - both name one id, but at different positions: two threads would use it in any order.
// A post or transfer followed by a wait needs none: no thread waits before it has posted what stands before,
// so the peers' waits end in any order. Two posts, or two waits, of different ids need none either: nobody
// sees in which order they came.
// A body is looked at twice, because its turns follow each other.
//
// It costs a fence if the author asked for none and the order matters; its time is linear.

#include "thread_order.hpp"

#include <map>
#include <utility>

#include "../plan/roles.hpp"

namespace chorale {
namespace {

class ThreadOrder {
 public:
  ThreadOrder(const ThreadBlock& block, std::vector<Op>& ops) : block_(block), ops_(ops) {}

  void list(size_t from, size_t to) {
    for (size_t at = from; at < to; ++at) {
      Op& op = ops_[at];
      if (is_fence(op)) {
        forget();
      } else if (op.body) {
        const size_t end = at + 1 + op.body;
        for (int turn = 0; turn < 2; ++turn) list(at + 1, end);
        at = end - 1;
      } else {
        one(op);
      }
    }
  }

 private:
  void one(Op& op) {
    const Shape& row = shape(op.code);
    const IdKind kind = id_kind(row, op.via);
    if (kind == IdKind::none || row.has(Role::Channels)) return;
    if (uint8_t(op.sync) & uint8_t(SyncType::before)) forget();
    const bool waits = row.has_any(await_roles) || row.has(Role::Acquire) || row.has(Role::Drain);
    const bool posts = row.has_any(post_roles) || row.has(Role::Release) || row.has(Role::PortChannels);
    const bool several = op.ids > 1;
    bool fence = posts && (several_wait_ || (one_waits_ && several));
    // Ids belong to a type of channel; semaphores are a type of their own.
    const ChannelType type = kind == IdKind::channel ? op.via : ChannelType::none;
    const std::span<const uint32_t> ids = block_.op_ids(op);
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto found = threads_.find({type, ids[k]});
      fence |= found != threads_.end() && found->second != k;
    }
    if (fence) {
      op.sync = SyncType(uint8_t(op.sync) | uint8_t(SyncType::before));
      forget();
    }
    if (uint8_t(op.sync) & uint8_t(SyncType::after)) return forget();
    if (waits) (several ? several_wait_ : one_waits_) = true;
    for (size_t k = 0; k < ids.size(); ++k) threads_[{type, ids[k]}] = k;
  }

  void forget() {
    one_waits_ = several_wait_ = false;
    threads_.clear();
  }

  const ThreadBlock& block_;
  std::vector<Op>& ops_;
  // Since the last fence:
  bool one_waits_ = false, several_wait_ = false;               // an operation with one id, with several
  std::map<std::pair<ChannelType, uint32_t>, size_t> threads_;  // the thread that served an id last
};

}  // namespace

void keep_thread_order(const ThreadBlock& block, std::vector<Op>& ops) {
  ThreadOrder(block, ops).list(0, ops.size());
}

}  // namespace chorale
