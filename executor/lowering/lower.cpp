#include "lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/error.hpp"
#include "packet_form.hpp"
#include "pages.hpp"
#include "recording_machine.hpp"
#include "steps.hpp"

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

/// Makes a sum read plain memory directly when a block packs it into its own rank's packets and adds them to
/// others in the next step. The sum adds the plain memory in place of the packets, and the packing is
/// removed.
///
/// The result is the same. The packets are used nowhere else in `blocks`, which are all blocks of the rank,
/// and no operation reads a peer's packets. The plain memory is read later than before, but the block signals
/// nothing between the two steps. So a writer can learn only from the block's actions after the sum that it
/// may write there. And the sum itself writes there only to the same places that it has already read.
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

/// Limits the shared memory to what a kernel may use without a special request (48 KiB), less the part that
/// it declares itself.
constexpr uint64_t most_exchange_bytes = 40 << 10;

/// Returns the number of blocks that wait on each channel.
std::vector<uint32_t> count_waiters(const BoundImage& image) {
  std::vector<uint32_t> waiters(image.channels.size()), last(image.channels.size(), ~0u);
  for (uint32_t block = 0; block < image.blocks.size(); ++block) {
    for (uint32_t at = 0; at < image.blocks[block].n; ++at) {
      const image::Record& record = image.records[image.blocks[block].first + at];
      const OpInfo& row = info(record.code);
      if (!row.has(Role::Await) && !row.has(Role::AwaitRelaxed)) continue;
      for (uint32_t id = 0; id < record.ids; ++id) {
        const uint32_t channel = image.ids[record.first_id + id];
        waiters[channel] += last[channel] != block;
        last[channel] = block;
      }
    }
  }
  return waiters;
}

/// Returns true if launches of even number use other memory than launches of odd number.
bool has_banks(const BoundImage& image) {
  return std::any_of(image.buffers.begin(), image.buffers.end(),
                     [](const image::Buffer& of) { return of.bank_bytes != 0; });
}

/// Combines the places for both parities: `odd` gets the distance to `even`.
void settle_banks(std::vector<ProgramPlace>& odd, const std::vector<ProgramPlace>& even) {
  for (size_t at = 0; at < odd.size(); ++at) odd[at].even = even[at].at - odd[at].at;
}

}  // namespace

DeviceProgram lower(const BoundImage& bound, const ProgramAddresses& places, PacketForm packet,
                    const LowerOptions& options) {
  image::Image image = bound.view();
  image.skip = places.skip;
  const std::vector<uint32_t> waiters = count_waiters(bound);
  const bool banks = has_banks(bound);
  std::vector<std::vector<RecordedStep>> blocks;
  std::vector<std::vector<Page>> pages;
  DeviceProgram program;
  program.blocks = uint32_t(bound.blocks.size());
  size_t counts = 0;
  for (uint32_t block = 0; block < bound.blocks.size(); ++block) {
    ProgramAddresses of_block = places;
    of_block.staging += program.staging_bytes;
    const auto record = [&](bool even) {
      RecordingMachine machine(image, of_block, packet, even, waiters, options.loop_bytes);
      machine.begin(block);
      run_block(machine, block);
      machine.end();
      return machine;
    };
    RecordingMachine odd = record(false);
    std::vector<RecordedStep>& steps = odd.steps();
    if (banks) {
      RecordingMachine even = record(true);
      for (size_t at = 0; at < steps.size(); ++at) {
        settle_banks(steps[at].plain, even.steps()[at].plain);
        settle_banks(steps[at].packets, even.steps()[at].packets);
      }
    }
    counts = std::max(counts, odd.counts());
    program.staging_bytes += odd.staged_bytes();
    blocks.push_back(std::move(steps));
  }
  keep_own_packets(blocks, packet);
  bool loops = false;
  program.exchange = std::all_of(blocks.begin(), blocks.end(), is_exchange);
  program.whole = true;
  // The kernel of exchange.cuh moves tails too. In a short message the time of a step is longer than that of
  // its data.
  const bool keep_tails =
      program.exchange && packet != PacketForm::ll128 && std::all_of(blocks.begin(), blocks.end(), is_short);
  for (std::vector<RecordedStep>& steps : blocks) {
    mark_whole(steps, packet, keep_tails);
    tidy(steps);
    program.whole = program.whole && are_whole(steps);
    pages.push_back(paginate(steps, options.page_bytes));
    program.busy_threads = std::max(program.busy_threads, busy_threads(steps, packet));
    for (const Page& page : pages.back()) {
      program.page.steps = std::max(program.page.steps, page.shape.steps);
      program.page.items = std::max(program.page.items, page.shape.items);
      program.page.plain = std::max(program.page.plain, page.shape.plain);
      program.page.packets = std::max(program.page.packets, page.shape.packets);
    }
    for (const RecordedStep& step : steps) {
      loops |= step.step.kind == ProgramStepKind::loop;
      program.most_plain = std::max(program.most_plain, uint32_t(step.plain.size()));
      program.most_packets = std::max(program.most_packets, uint32_t(step.packets.size()));
    }
    program.pages = std::max(program.pages, uint32_t(pages.back().size()));
  }
  if (loops) program.page.strides = program.page.plain + program.page.packets;
  if (program.page.shared_bytes() > options.most_page_bytes) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("a thread block's program needs {} bytes of shared memory at a time, but a thread block "
                    "has at most {}: use operations with fewer operands",
                    program.page.shared_bytes(), options.most_page_bytes));
  }
  const uint64_t page_size = program.page.bytes();
  // The other steps of a long message with tails are faster in the interpreter for all programs.
  program.exchange = program.exchange && (program.whole || keep_tails) && program.pages == 1 &&
                     page_size <= most_exchange_bytes;
  program.bytes.resize(blocks.size() * program.pages * page_size);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (size_t page = 0; page < pages[block].size(); ++page) {
      write_page(program.bytes.data() + (block * program.pages + page) * page_size, program.page,
                 blocks[block], pages[block][page], page + 1 < pages[block].size());
    }
  }
  program.state_bytes = uint32_t((sizeof(BlockState) + counts * sizeof(uint64_t) + 127) / 128 * 128);
  return program;
}

}  // namespace chorale::lowering
