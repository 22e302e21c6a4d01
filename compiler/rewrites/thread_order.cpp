// One thread serves one id of a control operation or port transfer: thread k of a block serves id k. Before
// operations were joined, each had one id, and one thread did them all in order. After joining, an id may
// move to another thread, which does not know what the first one did.
//
// This file asks for a fence wherever that matters. It matters between two operations with no fence between
// them, one of which has several ids, in two cases:
// - The first waits, and the second posts or starts a transfer. The post may announce that the first has
//   ended, with all its ids.
// - Both name one id, but at different positions. Then two threads would use it in any order.
// A post or transfer followed by a wait needs no fence: a thread posts what comes before its wait, so the
// waits of the peers end in any case. Two posts, or two waits, of different ids need none either, because
// nobody can see their order. A body is scanned twice, because its turns follow each other.
//
// It costs a fence where the author asked for none and the order matters. Its time is linear.

#include "thread_order.hpp"

#include <map>
#include <utility>

#include "compiler/plan/roles.hpp"

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
    // Ids are numbered per type of channel; semaphores count as another type.
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
  // These members describe what has happened since the last fence.
  bool one_waits_ = false, several_wait_ = false;               // an operation with one id, with several
  std::map<std::pair<ChannelType, uint32_t>, size_t> threads_;  // the thread that served an id last
};

}  // namespace

void keep_thread_order(const ThreadBlock& block, std::vector<Op>& ops) {
  ThreadOrder(block, ops).list(0, ops.size());
}

}  // namespace chorale
