#include "loops.hpp"

#include <algorithm>
#include <cstring>

namespace chorale::lowering {
namespace {

constexpr uint64_t endless = UINT64_MAX;

/// Returns for how many turns of `turn_bytes` bytes nothing changes, if something ends after `left` bytes.
uint64_t whole_turns(uint64_t left, uint64_t turn_bytes) { return left == 0 ? endless : left / turn_bytes; }

/// Returns the buffer whose shape an operand has.
const image::Buffer& shape_of(const image::Image& image, const image::Place& place, Role role) {
  if (!is_switched(role)) return image.buffers[place.buffer];
  return image.buffers[image.members[image.switches[place.buffer].first]];
}

uint64_t turns_of_place(const image::Image& image, const image::Place& place, Role role, uint64_t at,
                        uint64_t turn_bytes) {
  const uint64_t left = place.bytes > at ? place.bytes - at : 0;
  if (left == 0) return endless;  // the operation has nothing left to do
  uint64_t turns = whole_turns(left, turn_bytes);
  if (place.whole) {
    return std::min(turns, whole_turns(place.valid > at ? place.valid - at : 0, turn_bytes));
  }
  const image::Position found = image::locate(shape_of(image, place, role), place.start + at, image.skip);
  turns = std::min(turns, whole_turns(found.run, turn_bytes));
  return std::min(turns, whole_turns(found.valid, turn_bytes));
}

uint64_t turns_of_operands(const image::Image& image, const image::Record& record, uint64_t at,
                           uint64_t turn_bytes) {
  const image::Place* const places = image.places + record.first_place;
  uint64_t turns = endless;
  for (const bool dests : {false, true}) {
    const uint32_t n = dests ? record.dests : record.sources;
    uint32_t place = 0;
    for (const Field& field : info(record.code).fields) {
      if (!is_operand(field.role) || field.in_dst != dests) continue;
      for (const uint32_t end = field.many ? n : place + 1; place < end; ++place) {
        const image::Place& of = places[(dests ? record.sources : 0) + place];
        turns = std::min(turns, turns_of_place(image, of, field.role, at, turn_bytes));
      }
    }
  }
  return turns;
}

bool same_step(const RecordedStep& a, const RecordedStep& b) {
  return std::memcmp(&a.step, &b.step, sizeof a.step) == 0 && a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                    [](const SyncItem& one, const SyncItem& other) {
                      return std::memcmp(&one, &other, sizeof one) == 0;
                    }) &&
         a.plain.size() == b.plain.size() && a.packets.size() == b.packets.size();
}

bool set_strides(std::vector<uint64_t>& strides, const std::vector<ProgramPlace>& places,
                 const std::vector<ProgramPlace>& next) {
  strides.clear();
  for (size_t at = 0; at < places.size(); ++at) {
    if (places[at].valid != next[at].valid) return false;
    strides.push_back(next[at].at - places[at].at);
  }
  return true;
}

bool places_moved_on(const std::vector<ProgramPlace>& places, const std::vector<uint64_t>& strides,
                     uint64_t later, const std::vector<ProgramPlace>& last) {
  for (size_t at = 0; at < places.size(); ++at) {
    if (places[at].valid != last[at].valid || places[at].at + later * strides[at] != last[at].at)
      return false;
  }
  return true;
}

}  // namespace

uint64_t turns_alike(const image::Image& image, uint32_t pipeline, uint64_t turn) {
  const image::Record& of = image.records[pipeline];
  if (of.turn_bytes == 0) return of.turns - turn;
  uint64_t turns = of.turns - turn;
  for (uint32_t at = 1; at <= of.body; ++at) {
    turns = std::min(
        turns, turns_of_operands(image, image.records[pipeline + at], turn * of.turn_bytes, of.turn_bytes));
  }
  return std::max<uint64_t>(turns, 1);
}

bool find_strides(std::vector<RecordedStep>& turn, const std::vector<RecordedStep>& next) {
  if (turn.size() != next.size()) return false;
  for (size_t at = 0; at < turn.size(); ++at) {
    RecordedStep& step = turn[at];
    if (!same_step(step, next[at]) || !set_strides(step.plain_strides, step.plain, next[at].plain) ||
        !set_strides(step.packet_strides, step.packets, next[at].packets)) {
      return false;
    }
  }
  return true;
}

bool moved_on(const std::vector<RecordedStep>& turn, uint64_t later, const std::vector<RecordedStep>& last) {
  if (turn.size() != last.size()) return false;
  for (size_t at = 0; at < turn.size(); ++at) {
    const RecordedStep& step = turn[at];
    if (!same_step(step, last[at]) ||
        !places_moved_on(step.plain, step.plain_strides, later, last[at].plain) ||
        !places_moved_on(step.packets, step.packet_strides, later, last[at].packets)) {
      return false;
    }
  }
  return true;
}

}  // namespace chorale::lowering
