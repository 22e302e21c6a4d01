#include "own_packets.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "packet_form.hpp"

namespace chorale::lowering {
namespace {

constexpr uint64_t tags = ProgramPlace::in | ProgramPlace::out;

/// Finds the places of a rank's packets in launches of odd number. Launches of even number have the same
/// layout.
class Used {
 public:
  Used(const std::vector<std::vector<RecordedStep>>& blocks, PacketForm form) : form_(form) {
    for (const std::vector<RecordedStep>& steps : blocks) {
      for (const RecordedStep& step : steps) {
        for (size_t place = 0; place < step.packets.size(); ++place) {
          // In a loop a place counts from its first turn to its last.
          const uint64_t stride = step.packet_strides.empty() ? 0 : step.packet_strides[place];
          const uint64_t bytes = packet_bytes_of(form, step.step.bytes) + (step.turns - 1) * stride;
          longest_ = std::max(longest_, bytes);
          all_.emplace_back(step.packets[place].at, bytes);
        }
      }
    }
    std::sort(all_.begin(), all_.end());
  }

  /// Returns how many packet places touch the packets of a step, in all turns of its loop. The step itself
  /// counts too.
  size_t touching(const RecordedStep& step, size_t place) const {
    const uint64_t stride = step.packet_strides.empty() ? 0 : step.packet_strides[place];
    const uint64_t at = step.packets[place].at;
    const uint64_t first = at < longest_ ? 0 : at - longest_,
                   end = at + packet_bytes_of(form_, step.step.bytes) + (step.turns - 1) * stride;
    size_t n = 0;
    for (auto it = std::lower_bound(all_.begin(), all_.end(), std::pair{first, uint64_t{0}});
         it != all_.end() && it->first < end; ++it) {
      n += it->first + it->second > at;
    }
    return n;
  }

 private:
  const PacketForm form_;
  std::vector<std::pair<uint64_t, uint64_t>> all_;
  uint64_t longest_ = 0;
};

bool packs_only(const RecordedStep& step) {
  return step.step.kind == ProgramStepKind::copy && step.step.plain_sinks == 0 && step.step.packet_sinks == 1;
}

/// Returns true if a sum may read `own`, which advances by `stride`, and write its sinks. It reads each unit
/// before it writes that unit, so a sink may be `own` itself.
bool may_read(const RecordedStep& sum, const ProgramPlace& own, uint64_t stride) {
  for (size_t at = 0; at < sum.plain.size(); ++at) {
    const ProgramPlace& sink = sum.plain[at];
    const uint64_t from = own.at & ~tags, to = sink.at & ~tags, bytes = sum.step.bytes;
    const bool one_memory = (own.at & tags) == (sink.at & tags) || ((own.at & tags) && (sink.at & tags));
    if (!one_memory) continue;
    if (!sum.plain_strides.empty() && sum.plain_strides[at] != stride) return false;
    if (from != to && from < to + bytes && to < from + bytes) return false;
  }
  return true;
}

/// Makes the sum read the memory that `pack` packs, if possible. Returns true if it does.
bool takes(RecordedStep& sum, const RecordedStep& pack, const Used& used) {
  const ProgramPlace own = pack.plain[0], packets = pack.packets[0];
  const bool loops = !pack.plain_strides.empty();
  if (sum.step.kind != ProgramStepKind::reduce_packets || sum.step.own != 0) return false;
  if (sum.step.bytes != pack.step.bytes || !may_read(sum, own, loops ? pack.plain_strides[0] : 0))
    return false;
  // The packets must be used in the sum and in the packing, and nowhere else.
  if (used.touching(pack, 0) != 2) return false;
  for (uint32_t at = 0; at < sum.step.n; ++at) {
    if (sum.packets[at].at != packets.at) continue;
    if (loops && sum.packet_strides[at] != pack.packet_strides[0]) return false;
    sum.packets.erase(sum.packets.begin() + at);
    sum.plain.insert(sum.plain.begin(), own);
    if (loops) {
      sum.packet_strides.erase(sum.packet_strides.begin() + at);
      sum.plain_strides.insert(sum.plain_strides.begin(), pack.plain_strides[0]);
    }
    --sum.step.n;
    sum.step.own = uint16_t(at + 1);
    return true;
  }
  return false;
}

}  // namespace

void keep_own_packets(std::vector<std::vector<RecordedStep>>& blocks, PacketForm form) {
  const Used used(blocks, form);
  for (std::vector<RecordedStep>& steps : blocks) {
    for (size_t at = 0; at < steps.size(); ++at) {
      if (!packs_only(steps[at])) continue;
      size_t next = at + 1;
      while (next < steps.size() && steps[next].step.kind == ProgramStepKind::sync) ++next;
      if (next < steps.size() && steps[next].step.n > 1 && takes(steps[next], steps[at], used)) {
        steps.erase(steps.begin() + int64_t(at));
        --at;
      }
    }
  }
}

}  // namespace chorale::lowering
