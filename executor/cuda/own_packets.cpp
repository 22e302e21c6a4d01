#include "own_packets.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "../interpreter/packet_form.hpp"

namespace chorale::cuda {
namespace {

constexpr uint64_t tags = TapePlace::in | TapePlace::out;

using interpreter::packet_bytes_of;

/// The places of a rank's packets in launches of odd number. The others have the same layout.
class Used {
 public:
  Used(const std::vector<std::vector<Step>>& blocks, PacketForm form) : form_(form) {
    for (const std::vector<Step>& steps : blocks) {
      for (const Step& step : steps) {
        const uint64_t bytes = packet_bytes_of(form, step.step.bytes);
        longest_ = std::max(longest_, bytes);
        for (const TapePlace& place : step.packets) all_.emplace_back(place.at, bytes);
      }
    }
    std::sort(all_.begin(), all_.end());
  }

  /// Returns how many packet places touch the packets at `at` that hold `bytes` bytes of data. These packets
  /// count, too.
  size_t touching(uint64_t at, uint64_t bytes) const {
    const uint64_t first = at < longest_ ? 0 : at - longest_, end = at + packet_bytes_of(form_, bytes);
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

bool packs_only(const Step& step) {
  return step.step.kind == TapeKind::copy && step.step.plain_sinks == 0 && step.step.packet_sinks == 1;
}

/// Returns true if a sum may read `own` and write its sinks. It reads each unit before it writes it, so a
/// sink may be `own` itself.
bool may_read(const Step& sum, const TapePlace& own) {
  for (const TapePlace& sink : sum.plain) {
    const uint64_t from = own.at & ~tags, to = sink.at & ~tags, bytes = sum.step.bytes;
    const bool one_memory = (own.at & tags) == (sink.at & tags) || ((own.at & tags) && (sink.at & tags));
    if (one_memory && from != to && from < to + bytes && to < from + bytes) return false;
  }
  return true;
}

/// Lets the sum read the memory that `pack` packs, if it can. Returns true if it does.
bool takes(Step& sum, const Step& pack, const Used& used) {
  const TapePlace own = pack.plain[0], packets = pack.packets[0];
  if (sum.step.kind != TapeKind::reduce_packets || sum.step.own != 0) return false;
  if (sum.step.bytes != pack.step.bytes || !may_read(sum, own)) return false;
  // The packets must be used in this step and in the packing, and nowhere else.
  if (used.touching(packets.at, sum.step.bytes) != 2) return false;
  for (uint32_t at = 0; at < sum.step.n; ++at) {
    if (sum.packets[at].at != packets.at) continue;
    sum.packets.erase(sum.packets.begin() + at);
    sum.plain.insert(sum.plain.begin(), own);
    --sum.step.n;
    sum.step.own = uint16_t(at + 1);
    return true;
  }
  return false;
}

}  // namespace

void keep_own_packets(std::vector<std::vector<Step>>& blocks, PacketForm form) {
  const Used used(blocks, form);
  for (std::vector<Step>& steps : blocks) {
    for (size_t at = 0; at < steps.size(); ++at) {
      if (!packs_only(steps[at])) continue;
      size_t next = at + 1;
      while (next < steps.size() && steps[next].step.kind == TapeKind::sync) ++next;
      if (next < steps.size() && steps[next].step.n > 1 && takes(steps[next], steps[at], used)) {
        steps.erase(steps.begin() + int64_t(at));
        --at;
      }
    }
  }
}

}  // namespace chorale::cuda
