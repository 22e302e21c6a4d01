// These mutations change signals and waits over channels.

#include <map>
#include <utility>

#include "places.hpp"

namespace chorale::mutation {
namespace {

bool posts(const Op& op) { return shape(op.code).has_any(post_roles); }
bool awaits(const Op& op) { return shape(op.code).has_any(await_roles); }
bool only_posts(const Op& op) { return posts(op) && !moves_data(op); }

/// Calls visit(place, op, position) for every channel of the operations that fit.
template <class Fits, class Visit>
void each_channel(const Plan& plan, Fits&& fits, Visit&& visit) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!fits(op)) return;
    for (uint32_t position = 0; position < op.ids; ++position) visit(at, op, position);
  });
}

std::string channel_text(uint32_t position) { return "channel " + std::to_string(position) + " of its list"; }

/// Returns the rest of an operation that puts and signals.
Opcode without_signal(Opcode) { return Opcode::put; }

/// Lists the operations with a post or an await on each channel, in the order of blocks and operations.
struct Uses {
  struct Use {
    OpPlace at;
    uint32_t position;
  };
  std::map<ChannelEnd, std::vector<Use>> posts, awaits;
};

Uses list_uses(const Plan& plan, ChannelType type) {
  Uses uses;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    if (op.via != type || loop) return;
    const std::span<const uint32_t> ids = block.op_ids(op);
    for (uint32_t position = 0; position < ids.size(); ++position) {
      const ChannelEnd end{at.rank, uint32_t(channel_id(block, type, ids[position]))};
      if (only_posts(op)) uses.posts[end].push_back({at, position});
      if (awaits(op)) uses.awaits[end].push_back({at, position});
    }
  });
  return uses;
}

/// Drops one signal of each channel and the wait for it.
void drop_sync(const Plan& plan, Sites& out, bool last) {
  for (const ChannelType type : signalled_types) {
    const Uses uses = list_uses(plan, type);
    for (const auto& [end, signals] : uses.posts) {
      const std::optional<ChannelEnd> other = mate(plan, end.rank, type, end.id);
      if (!other) continue;
      const auto waits = uses.awaits.find(*other);
      if (waits == uses.awaits.end()) continue;
      const Uses::Use signal = last ? signals.back() : signals.front();
      const Uses::Use wait = last ? waits->second.back() : waits->second.front();
      out.add(
          signal.at,
          [=](Edit& edit) {
            edit.erase_id(signal.at, signal.position);
            edit.erase_id(wait.at, wait.position);
          },
          channel_text(signal.position));
    }
  }
}

/// Puts another channel of the rank in one position of an operation.
template <class Fits>
void wrong_channel(const Plan& plan, Sites& out, Fits&& fits) {
  each_channel(plan, fits, [&](const OpPlace& at, const Op& op, uint32_t position) {
    const uint32_t channels = plan.gpus[at.rank].channel_count(op.via);
    if (channels < 2) return;
    const ThreadBlock& block = block_of(plan, at);
    const uint32_t id = uint32_t(channel_id(block, op.via, block.op_ids(op)[position]));
    const ChannelType via = op.via;
    out.add(
        at,
        [=](Edit& edit) {
          const ThreadBlock& in = block_of(edit.plan(), at);
          const std::span<const uint32_t> now = in.op_ids(in.ops[at.op]);
          std::vector<uint32_t> ids(now.begin(), now.end());
          ids[position] = edit.channel(at, via, (id + 1) % channels);
          edit.set_ids(at, std::move(ids));
        },
        channel_text(position));
  });
}

void recode(const Plan& plan, Sites& out, Opcode from, Opcode to) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (op.code != from || !is_direct(op.via)) return;
    out.add(at, [=](Edit& edit) { edit.op(at).code = to; });
  });
}

template <class Fits>
void duplicate(const Plan& plan, Sites& out, Fits&& fits) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (fits(op)) out.add(at, [at, op](Edit& edit) { edit.insert_behind(at, op); });
  });
}

}  // namespace

void make::drop_wait(const Plan& plan, Sites& out) {
  each_channel(plan, awaits, [&](const OpPlace& at, const Op&, uint32_t position) {
    out.add(
        at, [=](Edit& edit) { edit.erase_id(at, position); }, channel_text(position));
  });
}

void make::drop_signal(const Plan& plan, Sites& out) {
  each_channel(plan, only_posts, [&](const OpPlace& at, const Op&, uint32_t position) {
    out.add(
        at, [=](Edit& edit) { edit.erase_id(at, position); }, channel_text(position));
  });
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!posts(op) || !moves_data(op)) return;
    out.add(at, [=](Edit& edit) { edit.op(at).code = without_signal(edit.op(at).code); });
  });
}

void make::signal_before_put(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!posts(op)) return;
    if (moves_data(op)) {
      out.add(at, [at, op](Edit& edit) {
        Op signal = op;
        signal.code = Opcode::signal;
        signal.sources = signal.destinations = 0;
        edit.op(at).code = without_signal(op.code);
        edit.insert(at, signal);
      });
    } else if (const auto before = nearest_before(block, at.op, moves_data)) {
      out.add(at, [=](Edit& edit) { edit.move_before(at, *before); });
    }
  });
}

void make::data_before_wait(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!moves_data(op)) return;
    if (const auto before = nearest_before(block, at.op, awaits)) {
      out.add(at, [=](Edit& edit) { edit.move_before(at, *before); });
    }
  });
}

void make::wait_before_signal(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!awaits(op)) return;
    if (const auto before = nearest_before(block, at.op, posts)) {
      out.add(at, [=](Edit& edit) { edit.move_before(at, *before); });
    }
  });
}

void make::signal_wrong_channel(const Plan& plan, Sites& out) { wrong_channel(plan, out, only_posts); }
void make::wait_wrong_channel(const Plan& plan, Sites& out) { wrong_channel(plan, out, awaits); }

void make::relax_signal(const Plan& plan, Sites& out) {
  recode(plan, out, Opcode::signal, Opcode::relaxed_signal);
}
void make::relax_wait(const Plan& plan, Sites& out) { recode(plan, out, Opcode::wait, Opcode::relaxed_wait); }

void make::duplicate_signal(const Plan& plan, Sites& out) { duplicate(plan, out, only_posts); }
void make::duplicate_wait(const Plan& plan, Sites& out) { duplicate(plan, out, awaits); }

void make::drop_exit_sync(const Plan& plan, Sites& out) { drop_sync(plan, out, true); }
void make::drop_entry_sync(const Plan& plan, Sites& out) { drop_sync(plan, out, false); }

// A semaphore of the rank orders only its own thread blocks; the relaxed signal after it orders nothing.
void make::release_to_device(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::signal || !is_direct(op.via)) return;
    out.add(at, [=](Edit& edit) {
      std::vector<int64_t>& semaphores = edit.change(edit.plan().gpus[at.rank].semaphores);
      const uint32_t semaphore = uint32_t(semaphores.size());
      semaphores.push_back(0);
      edit.op(at).code = Opcode::relaxed_signal;
      for (const Opcode code : {Opcode::sem_acquire, Opcode::sem_release}) {
        Op local;
        local.code = code;
        local.at = block_of(edit.plan(), at).ops[at.op].at;
        edit.insert(at, local);
        edit.set_ids(at, {semaphore});
      }
    });
  });
}

}  // namespace chorale::mutation
