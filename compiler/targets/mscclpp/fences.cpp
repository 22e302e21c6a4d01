// In MSCCL++'s executor, single threads do signals, waits and semaphore operations: thread k handles channel
// k while the others go on. Only a fence, which synchronises the thread block, orders them with the accesses
// of the other threads.

#include <utility>

#include "checks.hpp"

namespace chorale::mscclpp {
namespace {

/// Returns whether only the first thread hands a transfer to the proxy of a port channel.
bool is_of_first_thread(const Op& op) {
  return has_proxy(op.via) && op.destinations == 1 && !shape(op.code).has_any(packet_roles);
}

/// Holds what a thread block has done since its last fence; null: no such operation.
struct Since {
  const Op* wait = nullptr;
  const Op* access = nullptr;
};

class Fences {
 public:
  Fences(OpPlace block, const ThreadBlock& ops, Finder& find) : place_(block), block_(ops), find_(find) {}

  void check() {
    const std::vector<Op>& ops = block_.ops;
    Since since;
    for (size_t at = 0; at < ops.size(); ++at) {
      if (!ops[at].body) {
        go_on(since, at, true);
        continue;
      }
      // The first operations of a pipeline also come after its last ones.
      const size_t end = at + 1 + ops[at].body;
      Since before = since;
      for (size_t inside = at + 1; inside < end; ++inside) go_on(before, inside, false);
      if (!since.wait) since.wait = before.wait;
      if (!since.access) since.access = before.access;
      while (++at < end) go_on(since, at, true);
      --at;
    }
  }

 private:
  void go_on(Since& since, size_t at, bool tell) {
    const Op& op = block_.ops[at];
    const Shape& row = shape(op.code);
    if (is_fence(op)) {
      since = {};
    } else if (op.sources || op.destinations) {
      const bool of_first = is_of_first_thread(op);
      if (since.wait && tell && !(of_first && since.wait->ids == 1)) {
        accessed_early(*since.wait, at);
        since.wait = nullptr;  // one finding per wait
      }
      if (!of_first) since.access = &op;
    } else if (row.has(Role::Post) || row.has(Role::Release)) {
      if (since.access && tell) posted_early(*since.access, at);
    } else if (row.has_any(await_roles) || row.has(Role::Acquire)) {
      since.wait = &op;
    }
  }

  void accessed_early(const Op& wait, size_t at) {
    add(at, name_of(block_.ops[at]) + " comes after " + described(wait) +
                ", with no nop or barrier between them, but in MSCCL++ only " + waiters(wait) + " there");
  }

  void posted_early(const Op& access, size_t at) {
    const Op& post = block_.ops[at];
    add(at, described(post) + " comes after " + name_of(access) +
                ", with no nop or barrier between them, but in MSCCL++ it waits for no other thread");
  }

  static std::string described(const Op& op) {
    const bool semaphores = id_kind(shape(op.code), op.via) == IdKind::semaphore;
    return name_of(op) + " of " + count(op.ids, semaphores ? "semaphore" : "channel");
  }

  static std::string waiters(const Op& wait) {
    return count(wait.ids, "thread") + (wait.ids == 1 ? " waits" : " wait");
  }

  void add(size_t at, std::string text) {
    OpPlace place = place_;
    place.op = uint32_t(at);
    find_.add(place, std::move(text), "leave SyncType at its default, or put a nop between them");
  }

  const OpPlace place_;
  const ThreadBlock& block_;
  Finder& find_;
};

}  // namespace

void fences(const Plan& plan, Finder& find) {
  for (uint32_t rank = 0; rank < plan.gpus.size(); ++rank) {
    const std::vector<ThreadBlock>& blocks = plan.gpus[rank].threadblocks;
    for (uint32_t position = 0; position < blocks.size(); ++position)
      Fences({rank, position, 0}, blocks[position], find).check();
  }
}

}  // namespace chorale::mscclpp
