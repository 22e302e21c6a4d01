#include "recorder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/error.hpp"
#include "own_packets.hpp"
#include "pages.hpp"
#include "recording_machine.hpp"

namespace chorale::cuda {
namespace {

/// The most shared memory of a page.
constexpr uint64_t most_page_bytes = 160 << 10;
/// The shared memory that a kernel may take without asking for more (48 KiB), less what it declares itself.
constexpr uint64_t most_exchange_bytes = 40 << 10;

/// Returns, by channel, how many blocks wait on it.
std::vector<uint32_t> count_waiters(const interpreter::BoundImage& image) {
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

/// Makes the places of one parity hold for both.
void settle_banks(std::vector<TapePlace>& odd, const std::vector<TapePlace>& even) {
  for (size_t at = 0; at < odd.size(); ++at) odd[at].even = even[at].at - odd[at].at;
}

}  // namespace

Tapes record_tapes(const interpreter::BoundImage& bound, const TapePlaces& places, PacketForm packet,
                   uint64_t page_bytes) {
  image::Image image = bound.view();
  image.skip = places.skip;
  const std::vector<uint32_t> waiters = count_waiters(bound);
  std::vector<std::vector<Step>> blocks;
  std::vector<std::vector<Page>> pages;
  Tapes tapes;
  size_t counts = 0;
  for (uint32_t block = 0; block < bound.blocks.size(); ++block) {
    TapePlaces of_block = places;
    of_block.staging += tapes.staging_bytes;
    RecordingMachine odd(image, of_block, packet, false, waiters),
        even(image, of_block, packet, true, waiters);
    for (RecordingMachine* machine : {&odd, &even}) {
      machine->begin(block);
      run_block(*machine, block);
      machine->end();
    }
    std::vector<Step>& steps = odd.steps();
    for (size_t at = 0; at < steps.size(); ++at) {
      settle_banks(steps[at].plain, even.steps()[at].plain);
      settle_banks(steps[at].packets, even.steps()[at].packets);
    }
    counts = std::max(counts, odd.counts());
    tapes.staging_bytes += odd.staged_bytes();
    blocks.push_back(std::move(steps));
  }
  keep_own_packets(blocks, packet);
  tapes.exchange = true;
  for (std::vector<Step>& steps : blocks) {
    split_tails(steps, packet);
    tidy(steps);
    tapes.exchange = tapes.exchange && is_exchange(steps);
    pages.push_back(paginate(steps, page_bytes));
    tapes.busy_threads = std::max(tapes.busy_threads, busy_threads(steps, packet));
    for (const Page& page : pages.back()) {
      tapes.page.steps = std::max(tapes.page.steps, page.shape.steps);
      tapes.page.items = std::max(tapes.page.items, page.shape.items);
      tapes.page.plain = std::max(tapes.page.plain, page.shape.plain);
      tapes.page.packets = std::max(tapes.page.packets, page.shape.packets);
    }
    tapes.pages = std::max(tapes.pages, uint32_t(pages.back().size()));
  }
  if (tapes.page.shared_bytes() > most_page_bytes) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("a thread block's tape takes {} bytes of shared memory at a time, and no more than {} "
                    "can be given: an operation with fewer operands is needed",
                    tapes.page.shared_bytes(), most_page_bytes));
  }
  const uint64_t page_size = tapes.page.bytes();
  tapes.exchange = tapes.exchange && tapes.pages == 1 && page_size <= most_exchange_bytes;
  tapes.bytes.resize(blocks.size() * tapes.pages * page_size);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (size_t page = 0; page < pages[block].size(); ++page) {
      write_page(tapes.bytes.data() + (block * tapes.pages + page) * page_size, tapes.page, blocks[block],
                 pages[block][page], page + 1 < pages[block].size());
    }
  }
  tapes.state_bytes = uint32_t((sizeof(BlockState) + counts * sizeof(uint64_t) + 127) / 128 * 128);
  return tapes;
}

}  // namespace chorale::cuda
