// This file counts the channels, remote buffers and barriers of thread blocks and ranks.

#include <utility>

#include "checks.hpp"

namespace chorale::mscclpp {
namespace {

/// Returns the first operation of a block for which uses(op) is true. There the author exceeded the limit.
template <class Uses>
std::optional<OpPlace> first_use(const ThreadBlock& block, OpPlace place, Uses&& uses) {
  for (place.op = 0; place.op < block.ops.size(); ++place.op) {
    if (uses(block.ops[place.op])) return place;
  }
  return std::nullopt;
}

bool names_channel_past(const ThreadBlock& block, const Op& op, ChannelType type, uint32_t most) {
  if (op.via != type) return false;
  bool past = false;
  if (id_kind(shape(op.code), op.via) == IdKind::channel) {
    for (const uint32_t id : block.op_ids(op)) past |= id >= most;
  }
  for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
    past |= is_switched(field.role) && operand.ref >= most;
  });
  return past;
}

bool names_buffer_past(const ThreadBlock& block, const Op& op, ChannelType type, uint32_t most) {
  bool past = false;
  for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
    past |= op.via == type && is_remote(field.role) && operand.ref >= most;
  });
  return past;
}

template <class Visit>
void for_each_block(const Plan& plan, Visit&& visit) {
  for (uint32_t rank = 0; rank < plan.gpus.size(); ++rank) {
    const Gpu& gpu = plan.gpus[rank];
    for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position)
      visit(gpu.threadblocks[position], OpPlace{rank, position, 0});
  }
}

std::string block_path(OpPlace place, const char* key) {
  return path_of("gpus", place.rank, "threadblocks", place.threadblock, key);
}

/// Reports a list that is too long, at its first use or, if it is unused, at the list itself.
void report(Finder& find, std::optional<OpPlace> used, std::string path, std::string text) {
  find.add(used, std::move(text), "spread the peers over more thread blocks", used ? "" : std::move(path));
}

std::string word(ChannelType type) { return std::string(channel_type_names[size_t(type)]); }

}  // namespace

void block_channels(const Plan& plan, Finder& find) {
  for_each_block(plan, [&](const ThreadBlock& block, OpPlace place) {
    for (const ChannelRefs& refs : block.channels) {
      if (refs.ids.size() <= max_block_channels) continue;
      const auto past = [&](const Op& op) {
        return names_channel_past(block, op, refs.type, max_block_channels);
      };
      report(find, first_use(block, place, past), block_path(place, "channels"),
             block_name(place) + " has " + count(refs.ids.size(), word(refs.type) + " channel") +
                 ", but MSCCL++ holds at most " + number(max_block_channels) + " per thread block");
    }
  });
}

void block_remote_buffers(const Plan& plan, Finder& find) {
  for_each_block(plan, [&](const ThreadBlock& block, OpPlace place) {
    for (const RemoteBufferRefs& refs : block.remote_buffers) {
      if (refs.ids.size() <= max_block_remote_buffers) continue;
      const auto past = [&](const Op& op) {
        return names_buffer_past(block, op, refs.type, max_block_remote_buffers);
      };
      report(find, first_use(block, place, past), block_path(place, "remote_buffer_refs"),
             block_name(place) + " reaches " + count(refs.ids.size(), "remote buffer") + " over " +
                 word(refs.type) + " channels, but MSCCL++ holds at most " +
                 number(max_block_remote_buffers) + " per thread block");
    }
  });
}

void barriers(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(Role::Arrive) || block.op_ids(op)[0] < max_barriers) return;
    find.add(at, "this is barrier " + number(block.op_ids(op)[0]) + " of " + rank_name(gpu.id) +
                     ", but MSCCL++ has " + number(max_barriers) + ", numbers 0 to " +
                     number(max_barriers - 1));
  });
}

void port_resources(const Plan& plan, Finder& find) {
  for (const Gpu& gpu : plan.gpus) {
    const uint32_t channels = gpu.channel_count(ChannelType::port);
    if (channels > max_port_channels) {
      find.add_at(path_of("gpus", gpu.id, "channels"),
                  rank_name(gpu.id) + " has " + count(channels, "port channel") +
                      ", but MSCCL++ holds at most " + number(max_port_channels));
    }
    uint32_t buffers = 0;
    for (const RemoteBuffer& buffer : gpu.remote_buffers) {
      buffers +=
          std::find(buffer.access.begin(), buffer.access.end(), ChannelType::port) != buffer.access.end();
    }
    if (buffers > max_port_buffers) {
      find.add_at(path_of("gpus", gpu.id, "remote_buffers"),
                  rank_name(gpu.id) + " reaches " + count(buffers, "remote buffer") +
                      " over port channels, but MSCCL++ holds at most " + number(max_port_buffers));
    }
  }
}

}  // namespace chorale::mscclpp
