#include "changes.hpp"

#include <algorithm>
#include <utility>

namespace chorale::random {
namespace {

constexpr BufferKind kinds[] = {BufferKind::input, BufferKind::output, BufferKind::scratch};

bool same_turns(const Item* one, const Item* other) {
  if (!one || !other) return one == other;
  return one->op.unit_bytes == other->op.unit_bytes && one->op.chunks == other->op.chunks;
}

}  // namespace

Changes::Changes(uint64_t seed, Start start) : draw_(seed), start_(start) {
  unit_ = 64 * (1 + below(2));
  loop_chunks_ = 1 + below(2);
  if (start == Start::rivals) {
    begin_with_rivals();
    return;
  }
  program_ = start == Start::pipelines ? Program(2, 1 + below(2))
             : one_in(4)               ? Program(3, 1 + below(2))
                                       : Program(2, 1 + below(3));
  for (uint64_t& chunks : program_.chunks) chunks = loop_chunks_ + below(3);
  program_.double_scratch = one_in(4);
  if (start == Start::pipelines) begin_with_pipelines();
}

void Changes::begin_with_rivals() {
  program_ = Program(1, 2 + below(3));
  program_.bounded = true;
  for (size_t semaphore = 0; semaphore < 3; ++semaphore) program_.semaphores[0][semaphore] = below(4);
  const uint32_t units[] = {64 * (1 + below(3)), 64 * (1 + below(3))};
  for (Block& block : program_.of[0]) {
    block = {pipeline(1), Item{}};
    block[0].op.unit_bytes = units[below(2)];
  }
}

void Changes::begin_with_pipelines() {
  struct Parts {
    Place place;
    Block before, body, behind;
  };
  std::vector<Parts> all;
  for (uint32_t rank = 0; rank < program_.ranks; ++rank) {
    for (uint32_t block = 0; block < program_.blocks; ++block) all.push_back({{rank, block}, {}, {}, {}});
  }
  const auto add = [&](Block& to, Item item) {
    to.insert(to.begin() + ptrdiff_t(somewhere(to)), std::move(item));
  };
  for (Parts& from : all) {
    for (Parts& to : all) {
      if (&from == &to) continue;
      if (from.place.rank == to.place.rank && one_in(2))
        program_.semaphores[to.place.rank][program_.semaphore(from.place.block, to.place.block)] = below(4);
      if (!one_in(3)) {
        add(from.body, give(from.place, to.place));
        add(to.body, take(from.place, to.place));
      }
      for (uint32_t left = one_in(2) ? below(4) : 0; left; --left) {
        add(one_in(2) ? from.before : from.behind, give(from.place, to.place));
        add(one_in(2) ? to.before : to.behind, take(from.place, to.place));
      }
    }
  }
  for (uint32_t left = 1 + below(3); left; --left) {
    Parts& parts = all[below(all.size())];
    const bool inside = !one_in(3);
    add(inside      ? parts.body
        : one_in(2) ? parts.before
                    : parts.behind,
        data(any_data(), parts.place.rank, parts.place.block, inside ? loop_chunks_ : 1));
  }
  for (Parts& parts : all) {
    if (parts.body.empty() || one_in(2)) add(parts.body, Item{});
    Block& block = block_at(parts.place);
    block = parts.before;
    block.push_back(pipeline(parts.body.size()));
    block.insert(block.end(), parts.body.begin(), parts.body.end());
    block.insert(block.end(), parts.behind.begin(), parts.behind.end());
  }
}

void Changes::make() {
  for (uint32_t left = 1 + (one_in(3) ? below(3) : 0); left; --left) change();
}

void Changes::change() {
  const size_t most = 4 * program_.ranks * program_.blocks + 8;
  const uint32_t which = below(100);
  if (which < (program_.size() > most ? 45u : 14u)) return remove();
  if (start_ == Start::rivals) {
    if (which < 55) return add_wait_for_rival();
    if (which < 65) return insert(at(0, 0), somewhere(at(0, 0)), sum_into_output());
    return which < 95 ? move() : add_barrier();
  }
  if (which < 30) return add_data();
  if (which < 46) return add_signal();
  if (which < 52) {
    Block& block = block_at(any_block());
    return insert(block, somewhere(block), Item{});
  }
  if (which < 55) return add_barrier();
  if (which < 58) return add_semaphore();
  if (which < 62) return add_packets();
  if (which < 70) return add_answered_packets();
  if (which < 80) return move();
  if (which < 88) return change_operand();
  if (which < 94) return change_code();
  if (which < 98) return wrap();
  program_.double_scratch = !program_.double_scratch;
}

void Changes::simplify() {
  for (uint32_t left = 1 + below(3); left; --left) remove();
  if (one_in(5)) change_operand();
  if (one_in(5)) program_.double_scratch = false;
}

bool Changes::pick(Place& place) {
  const size_t size = program_.size();
  if (!size) return false;
  place = {0, 0, below(size)};
  while (place.position >= block_at(place).size()) {
    place.position -= block_at(place).size();
    if (++place.block < program_.blocks) continue;
    place.block = 0;
    ++place.rank;
  }
  return true;
}

// -- Operations

Item Changes::control(Opcode code, ChannelType via, uint32_t id, uint32_t participants) const {
  Item item;
  item.op.code = code;
  item.op.via = via;
  item.op.participants = uint16_t(participants);
  item.ids = {id};
  return item;
}

Item Changes::give(const Place& from, const Place& to) {
  if (from.rank == to.rank)
    return control(Opcode::sem_release, ChannelType::none, program_.semaphore(from.block, to.block));
  return control(one_in(4) ? Opcode::relaxed_signal : Opcode::signal, ChannelType::memory,
                 program_.channel(from.rank, to.rank, from.block, to.block));
}

Item Changes::take(const Place& from, const Place& to) {
  if (from.rank == to.rank)
    return control(Opcode::sem_acquire, ChannelType::none, program_.semaphore(from.block, to.block));
  return control(one_in(4) ? Opcode::relaxed_wait : Opcode::wait, ChannelType::memory,
                 program_.channel(to.rank, from.rank, from.block, to.block));
}

Item Changes::pipeline(size_t body) const {
  Item item;
  item.op.code = Opcode::pipeline;
  item.op.body = uint32_t(body);
  item.op.unit_bytes = unit_;
  item.op.chunks = loop_chunks_;
  return item;
}

Operand Changes::part(BufferKind kind, uint32_t ref, uint64_t chunks) {
  const uint64_t all = program_.chunks[size_t(kind)], size = std::min(chunks, all);
  return {below(all - size + 1), size, ref};
}

/// Returns an operation with operands anywhere, all of one size of at most `chunks` chunks.
Item Changes::data(Opcode code, uint32_t rank, uint32_t block, uint64_t chunks) {
  const OpInfo& row = info(code);
  Item item;
  item.op.code = code;
  const bool port = row.has(Role::PortChannels) ? one_in(3) : row.has(Role::Post);
  if (row.has(Role::Via)) item.op.via = port ? ChannelType::port : ChannelType::memory;
  const bool pairs =
      row.fields.size() > 1 && row.fields[0].many && row.fields[1].many && row.fields[1].in_dst;
  const uint32_t many = one_in(4) ? 2 : 1;
  uint64_t least = chunks;
  for (const Field& field : row.fields) {
    if (!is_operand(field.role)) continue;
    for (uint32_t left = !field.many ? 1 : pairs ? many : 1 + one_in(4); left; --left) {
      const BufferKind kind = is_packet(field.role) ? BufferKind::scratch : kinds[below(std::size(kinds))];
      uint32_t ref = uint32_t(kind);
      if (is_switched(field.role)) item.op.via = ChannelType::switched;
      if (is_remote(field.role)) {
        const uint32_t peer = another(rank);
        ref = program_.remote(rank, peer, kind);
        if (row.has(Role::Channels) || port)
          item.ids.push_back(program_.channel(rank, peer, block, below(program_.blocks)));
      }
      std::vector<Operand>& list = field.in_dst ? item.dests : item.sources;
      list.push_back(part(kind, ref, chunks));
      least = std::min(least, list.back().size);
    }
  }
  for (std::vector<Operand>* const list : {&item.sources, &item.dests}) {
    for (Operand& operand : *list) operand.size = least;
  }
  return item;
}

/// Adds to the output, so that the result is the same in any order.
Item Changes::sum_into_output() {
  Item item;
  item.op.code = Opcode::reduce;
  const Operand sum = part(BufferKind::output, uint32_t(BufferKind::output), 1);
  item.sources = {sum, part(BufferKind::input, uint32_t(BufferKind::input), 1)};
  item.dests = {sum};
  return item;
}

Opcode Changes::any_data() {
  static const Opcode plain[] = {Opcode::copy,
                                 Opcode::get,
                                 Opcode::put,
                                 Opcode::reduce,
                                 Opcode::reduce_send,
                                 Opcode::read_reduce,
                                 Opcode::read_reduce_send};
  static const Opcode packets[] = {
      Opcode::copy_packets,        Opcode::unpack_packets,           Opcode::put_packets,
      Opcode::read_put_packets,    Opcode::reduce_packets,           Opcode::reduce_send_packets,
      Opcode::reduce_copy_packets, Opcode::reduce_copy_send_packets, Opcode::combine_packets};
  static const Opcode switched[] = {Opcode::switch_reduce, Opcode::switch_broadcast,
                                    Opcode::switch_broadcast_packets, Opcode::switch_reduce_broadcast};
  const uint32_t which = below(100);
  if (which < 55) return plain[below(std::size(plain))];
  return which < 85 ? packets[below(std::size(packets))] : switched[below(std::size(switched))];
}

// -- Changes

void Changes::add_data() {
  const Place place = any_block();
  Block& block = block_at(place);
  const size_t position = somewhere(block);
  const Item* const loop = loop_around(block, position);
  insert(block, position, data(any_data(), place.rank, place.block, loop ? loop->op.chunks : any_size()));
}

void Changes::add_signal() {
  const Place from = any_block();
  const uint32_t rank = another(from.rank), on = below(program_.blocks);
  Block &here = block_at(from), &there = at(rank, on);
  const size_t posted = somewhere(here), awaited = somewhere(there);
  const Item* const loop = loop_around(here, posted);
  if (!same_turns(loop, loop_around(there, awaited))) return;
  const uint32_t channel = program_.channel(from.rank, rank, from.block, on);
  const bool port = one_in(5);
  const ChannelType via = port ? ChannelType::port : ChannelType::memory;
  Item post = control(!port && one_in(3) ? Opcode::relaxed_signal : Opcode::signal, via, channel);
  if (port && one_in(2)) {
    post = data(one_in(2) ? Opcode::put_with_signal : Opcode::put_with_signal_and_flush, from.rank,
                from.block, loop ? loop->op.chunks : any_size());
    post.sources.resize(1);
    post.dests.resize(1);
    post.dests[0].ref = program_.remote(from.rank, rank, kinds[post.dests[0].ref % std::size(kinds)]);
    post.ids = {channel};
  }
  insert(here, posted, post);
  insert(there, awaited,
         control(!port && one_in(4) ? Opcode::relaxed_wait : Opcode::wait, via,
                 program_.channel(rank, from.rank, from.block, on)));
}

void Changes::add_semaphore() {
  const uint32_t rank = below(program_.ranks), from = below(program_.blocks), to = below(program_.blocks);
  const size_t released = somewhere(at(rank, from)), acquired = somewhere(at(rank, to));
  if (!same_turns(loop_around(at(rank, from), released), loop_around(at(rank, to), acquired))) return;
  insert(at(rank, from), released, give({rank, from}, {rank, to}));
  insert(at(rank, to), acquired, take({rank, from}, {rank, to}));
}

void Changes::add_wait_for_rival() {
  const uint32_t id = below(3), from = below(program_.blocks), to = below(program_.blocks);
  const size_t released = somewhere(at(0, from)), acquired = somewhere(at(0, to));
  if (!same_turns(loop_around(at(0, from), released), loop_around(at(0, to), acquired))) return;
  if (from == to && acquired > released) return;
  insert(at(0, from), released, control(Opcode::sem_release, ChannelType::none, id));
  if (from == to && one_in(2)) insert(at(0, from), released, sum_into_output());
  insert(at(0, to), acquired, control(Opcode::sem_acquire, ChannelType::none, id));
}

void Changes::add_barrier() {
  const uint32_t rank = below(program_.ranks);
  for (Block& block : program_.of[rank])
    insert(block, somewhere(block), control(Opcode::barrier, ChannelType::none, 0, program_.blocks));
}

void Changes::add_packets() {
  const Place from = any_block();
  const uint32_t rank = another(from.rank), on = below(program_.blocks);
  Item sent = data(Opcode::put_packets, from.rank, from.block, any_size());
  sent.op.via = ChannelType::memory;
  sent.ids.clear();
  sent.dests[0].ref = program_.remote(from.rank, rank, BufferKind::scratch);
  static const Opcode readers[] = {Opcode::unpack_packets, Opcode::reduce_packets, Opcode::combine_packets,
                                   Opcode::reduce_send_packets};
  Item read = data(readers[below(std::size(readers))], rank, on, sent.dests[0].size);
  read.sources.back().index = sent.dests[0].index;
  insert(block_at(from), somewhere(block_at(from)), std::move(sent));
  insert(at(rank, on), somewhere(at(rank, on)), std::move(read));
}

/// Adds packets with an answer, and an operation that writes the answer over the data that was sent.
void Changes::add_answered_packets() {
  const Place from = any_block();
  const uint32_t rank = another(from.rank), on = below(program_.blocks);
  const Operand slot = part(BufferKind::scratch, 0, any_size());
  const BufferKind kind = kinds[below(std::size(kinds))];
  const Operand source = part(kind, uint32_t(kind), slot.size);
  if (source.size != slot.size) return;
  Operand back = part(BufferKind::scratch, uint32_t(BufferKind::scratch), slot.size);
  const auto of = [](const Operand& operand, uint32_t ref) {
    return Operand{operand.index, operand.size, ref};
  };
  const uint32_t here = uint32_t(BufferKind::scratch);
  Item sent, answer, read;
  sent.op.code = Opcode::put_packets;
  sent.op.via = ChannelType::memory;
  sent.sources = {source};
  sent.dests = {of(slot, program_.remote(from.rank, rank, BufferKind::scratch))};
  answer.op.code = one_in(5) ? Opcode::switch_broadcast_packets : Opcode::read_put_packets;
  const bool all = answer.op.code == Opcode::switch_broadcast_packets;
  if (all) back = of(slot, here);
  answer.op.via = all ? ChannelType::switched : ChannelType::memory;
  answer.sources = {of(slot, here)};
  answer.dests = {of(back, all ? here : program_.remote(rank, from.rank, BufferKind::scratch))};
  read.op.code = Opcode::unpack_packets;
  read.sources = {back};
  read.dests = {source};
  if (one_in(3) && source.index) --read.dests[0].index;
  insert(block_at(from), somewhere(block_at(from)), std::move(sent));
  insert(at(rank, on), somewhere(at(rank, on)), std::move(answer));
  Block& last = at(from.rank, below(program_.blocks));
  insert(last, one_in(2) ? last.size() : somewhere(last), std::move(read));
}

void Changes::wrap() {
  for (uint32_t left = 1 + below(3); left; --left) {
    Block& block = block_at(any_block());
    if (block.empty()) continue;
    const size_t first = below(block.size());
    const size_t length = 1 + below(std::min<size_t>(4, block.size() - first));
    bool inside = false;
    for (size_t position = first; position < first + length; ++position)
      inside |= block[position].op.body || loop_around(block, position);
    if (inside) continue;
    block.insert(block.begin() + ptrdiff_t(first), pipeline(length));
  }
}

void Changes::move() {
  Place place;
  if (!pick(place) || block_at(place)[place.position].op.body) return;
  const Item item = block_at(place)[place.position];
  erase(block_at(place), place.position);
  // An operation that uses channels of its block stays there.
  if (one_in(4) && item.ids.empty()) place.block = below(program_.blocks);
  Block& block = block_at(place);
  const size_t near = place.position + 1 - std::min<size_t>(below(3), place.position + 1);
  insert(block, one_in(3) ? somewhere(block) : std::min(near, block.size()), item);
}

void Changes::change_operand() {
  Place place;
  if (!pick(place)) return;
  Item& item = block_at(place)[place.position];
  std::vector<Operand>& list = one_in(2) ? item.sources : item.dests;
  if (list.empty()) return;
  Operand& operand = list[below(list.size())];
  const uint32_t which = below(3);
  if (which == 0) operand.index = below(4);
  if (which == 1) operand.ref = operand.ref / std::size(kinds) * std::size(kinds) + below(std::size(kinds));
  if (which != 2) return;
  const uint64_t size = any_size();
  for (std::vector<Operand>* const of : {&item.sources, &item.dests}) {
    for (Operand& one : *of) one.size = size;
  }
}

void Changes::change_code() {
  Place place;
  if (!pick(place)) return;
  Op& op = block_at(place)[place.position].op;
  static constexpr std::pair<Opcode, Opcode> alike[] = {
      {Opcode::signal, Opcode::relaxed_signal},
      {Opcode::wait, Opcode::relaxed_wait},
      {Opcode::put, Opcode::put_packets},
      {Opcode::copy, Opcode::unpack_packets},
      {Opcode::put_with_signal, Opcode::put_with_signal_and_flush},
  };
  for (const auto& [one, other] : alike) {
    if (op.code != one && op.code != other) continue;
    op.code = op.code == one ? other : one;
    return;
  }
  if (op.body) op.unit_bytes = 64 * (1 + below(3));
}

template <class Match>
void Changes::remove_one(Block& block, Match&& match) {
  std::vector<size_t> found;
  for (size_t position = 0; position < block.size(); ++position) {
    if (match(block[position])) found.push_back(position);
  }
  if (!found.empty()) erase(block, found[below(found.size())]);
}

void Changes::remove() {
  Place place;
  if (!pick(place)) return;
  const Item item = block_at(place)[place.position];
  erase(block_at(place), place.position);
  const auto remove_alike = [&](uint32_t rank, uint32_t block, Opcode code) {
    remove_one(at(rank, block),
               [&](const Item& other) { return other.op.code == code && other.ids == item.ids; });
  };
  if (item.op.code == Opcode::barrier) {
    for (uint32_t block = 0; block < program_.blocks; ++block)
      if (block != place.block) remove_alike(place.rank, block, Opcode::barrier);
  } else if (item.op.code == Opcode::sem_release || item.op.code == Opcode::sem_acquire) {
    const bool release = item.op.code == Opcode::sem_release;
    const uint32_t mate = start_ == Start::rivals ? below(program_.blocks)
                          : release               ? item.ids[0] % program_.blocks
                                                  : item.ids[0] / program_.blocks;
    remove_alike(place.rank, mate, release ? Opcode::sem_acquire : Opcode::sem_release);
  } else if (posts(item) || awaits(item)) {
    const uint32_t peer = program_.peer_of_channel(place.rank, item.ids[0]);
    const uint32_t pair = item.ids[0] % (program_.blocks * program_.blocks);
    const uint32_t from = pair / program_.blocks, to = pair % program_.blocks;
    const uint32_t mate = program_.channel(peer, place.rank, from, to);
    remove_one(at(peer, posts(item) ? to : from), [&](const Item& other) {
      return posts(other) != posts(item) && awaits(other) != awaits(item) && other.op.via == item.op.via &&
             other.ids[0] == mate;
    });
  }
}

}  // namespace chorale::random
