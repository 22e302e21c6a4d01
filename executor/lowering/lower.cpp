#include "lower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/error.hpp"
#include "own_packets.hpp"
#include "pages.hpp"
#include "recording_machine.hpp"

namespace chorale::lowering {
namespace {

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
