#include "chorale/fused/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "chorale/error.hpp"
#include "chorale/world.hpp"
#include "executor/system/round_up.hpp"

namespace chorale::fused {
namespace {

/// Limits the blocks that send packets. More blocks wait for each other's credits longer than they save.
constexpr uint32_t most_packet_blocks = 32;

const char* name_of(Form form) {
  switch (form) {
    case Form::by_size:
      return "by_size";
    case Form::packets:
      return "packets";
    case Form::packets_twice:
      return "packets_twice";
    case Form::window:
      return "window";
    case Form::tiles:
      return "tiles";
  }
  return "unknown";
}

std::string text_of(const Setup& setup) {
  return fmt::format("form {}, {} blocks, {} threads, {} memory", name_of(setup.form), setup.blocks,
                     setup.threads, setup.space == Space::host ? "host" : "device");
}

/// Throws RunError mismatch, on all ranks, unless all ranks pass the same text.
void agree_on(World& world, const std::string& name, const std::string& mine) {
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  const auto text = [&all](int rank) {
    const std::vector<std::byte>& said = all[size_t(rank)];
    return std::string(reinterpret_cast<const char*>(said.data()), said.size());
  };
  for (int rank = 1; rank < world.ranks(); ++rank) {
    if (text(rank) == text(0)) continue;
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("the ranks make {} differently: rank 0 with {}, rank {} with {}; they must be "
                               "the same",
                               name, text(0), rank, text(rank)));
  }
}

}  // namespace

Buffers::Buffers(World& world, const Setup& setup, const Needs& needs)
    : name_(needs.name), setup_(setup), capacity_(needs.capacity), factor_(needs.block_factor) {
  agree_on(world, name_, fmt::format("{}, {}", needs.sizes, text_of(setup)));
  require(needs.has_form,
          fmt::format("there is no form {} of it, only {}", name_of(setup.form), needs.forms));
  require(needs.wrong.empty(), needs.wrong);
  require(capacity_ != 0, fmt::format("it is made for 0 bytes ({}), expected more", needs.sizes));
  // So a block index and a number of barriers have no overflow, and no transport refuses the channels.
  require(setup.blocks <= 512, fmt::format("blocks is {}: it must be at most 512", setup.blocks));
  const bool on_host = setup.space == Space::host;
  require(on_host || (setup.threads % 32 == 0 && setup.threads <= 512),
          fmt::format("threads is {}: on GPUs it must be a multiple of 32, and at most 512", setup.threads));
  const auto in_factors = [this](uint32_t blocks) { return std::max(blocks / factor_ * factor_, factor_); };
  other_blocks_ = in_factors(setup.blocks != 0 ? setup.blocks : on_host ? 4 : 128);
  packet_blocks_ =
      in_factors(std::min(setup.blocks != 0 || !on_host ? other_blocks_ : 4, most_packet_blocks));
  RendezvousOptions options;
  options.space = setup.space;
  options.depth = 2;
  // If blocks are divided among peers, each peer has its own channel 0.
  options.max_channels = (setup.form == Form::tiles ? other_blocks_ : packet_blocks_) / factor_;
  options.per_peer_bytes = uint64_t(options.max_channels) * options.depth * needs.slot_bytes;
  if (needs.packets != 0 && world.ranks() <= 16) {
    packet_room_ = round_up(needs.packets / packet_blocks_ + needs.grain + 1, 16);
    options.packet_bytes = packet_room_;
  }
  require((setup.form != Form::packets && setup.form != Form::packets_twice) || world.ranks() <= 16,
          fmt::format("its form {} is for at most 16 ranks, and there are {}: use Form::window",
                      name_of(setup.form), world.ranks()));
  transport_ = direct_rendezvous(world, options);
  if (needs.window != 0) {
    window_ = OneSidedWindow::create(world, needs.window, needs.signals, 2 * other_blocks_, setup.space);
  }
}

Buffers::Buffers(Buffers&&) noexcept = default;
Buffers& Buffers::operator=(Buffers&&) noexcept = default;
Buffers::~Buffers() = default;

void Buffers::reset() {
  transport_->reset();
  if (window_) window_->reset();
}

void Buffers::require(bool right, const std::string& why) const {
  if (!right) throw UsageError(name_ + ": " + why);
}

void Buffers::require_room(uint64_t bytes, const std::string& shape, const std::string& remedy) const {
  if (bytes > capacity_) {
    throw UsageError(fmt::format("{}: {} take {} bytes, and this object was made for {}: make it with {}",
                                 name_, shape, bytes, capacity_, remedy));
  }
}

void Buffers::require_rows(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool ragged_input) const {
  const uint64_t row = round_up(cols * element_bytes, unit_bytes);
  const std::string shape = fmt::format("{} rows of {} elements of {} bytes", rows, cols, element_bytes);
  require(row == 0 || rows <= ~uint64_t{0} / row, shape + " have more bytes than can be addressed");
  require_room(rows * row, shape,
               fmt::format("max_rows = {} and max_row_bytes = {}", rows, cols * element_bytes));
  require(!ragged_input,
          fmt::format("rows in input() are whole units of 16 bytes, and a row of {} elements of {} bytes is "
                      "not: pass them in other memory",
                      cols, element_bytes));
}

LaunchConfig Buffers::shape_of(Form form, uint64_t items, uint64_t units) const {
  const bool packets = form == Form::packets || form == Form::packets_twice;
  const uint32_t most = packets ? packet_blocks_ : other_blocks_;
  const uint32_t blocks = items < most ? uint32_t(round_up(std::max<uint64_t>(items, 1), factor_)) : most;
  uint32_t threads = setup_.threads;
  if (threads == 0 && setup_.space == Space::device) {
    // A unit for each thread takes the fewest waits. Long messages need several blocks on a multiprocessor.
    threads = packets ? uint32_t(round_up(std::clamp<uint64_t>(units, 32, 512), 32)) : 256;
  }
  return {blocks, threads};
}

}  // namespace chorale::fused
