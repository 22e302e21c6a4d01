// This part of Engine takes the steps of proxies. A proxy reads the sources of a transfer, and later writes
// the destinations and posts.

#include "engine.hpp"

namespace chorale::adversary {

Engine::Did Engine::read_queue(uint32_t position) {
  QueueState& queue = queues_[position];
  if (queue.read == queue.transfers.size()) return Did::park;
  Transfer& transfer = queue.transfers[queue.read];
  const Push& push = program_.pushes[transfer.push];
  if (transfer.done < push.cells) {
    const uint32_t at = (transfer.done + transfer.offset) % push.cells;
    const Ref from = program_.refs[push.first + 2 * at];
    if (from != no_cell) {
      if (program_.is_packet[cell_of(from)] && !memory_.has_packet(cell_of(from), transfer.flag)) {
        wait_for_packet(first_read_ + position, cell_of(from));
        return Did::park;
      }
      queue.values[transfer.first_value + at] = memory_.read(cell_of(from));
    }
    ++transfer.done;
    return Did::step;
  }
  transfer.done = 0;
  ++queue.read;
  wake(queue.waiting);
  turns_.activate(first_write_ + position);
  const uint32_t of = program_.queues[position].rank;
  if (--ranks_[of].reads_left == 0 && ranks_[of].threads_left == 0) turns_.activate(first_rank_ + of);
  return Did::step;
}

Engine::Did Engine::write_queue(uint32_t position) {
  QueueState& queue = queues_[position];
  if (queue.written == queue.read) return Did::park;
  Transfer& transfer = queue.transfers[queue.written];
  const Push& push = program_.pushes[transfer.push];
  if (transfer.done < push.cells) {
    const uint32_t at = (transfer.done + transfer.offset) % push.cells;
    const Ref to = program_.refs[push.first + 2 * at + 1];
    if (to != no_cell) memory_.write(cell_of(to), queue.values[transfer.first_value + at], transfer.flag);
    ++transfer.done;
    return Did::step;
  }
  if (push.signal != none) raise(signals_[push.signal], memory_.now(), transfer.start);
  ++queue.written;
  return Did::step;
}

}  // namespace chorale::adversary
