#include "block_image.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "chorale/plan.hpp"

namespace chorale::cuda {
namespace {

constexpr uint32_t item_bytes = 32;  // of a list: machine.cuh

bool awaits(const OpInfo& row) { return row.has(Role::Await) || row.has(Role::AwaitRelaxed); }

/// Whether a record's ids are channels.
bool names_channels(const OpInfo& row) {
  for (const Role role : {Role::Channels, Role::PortChannels, Role::Post, Role::PostRelaxed, Role::Await,
                          Role::AwaitRelaxed, Role::Drain}) {
    if (row.has(role)) return true;
  }
  return false;
}

/// One block's tables, with what the block uses only.
class BlockBuilder {
 public:
  BlockBuilder(const interpreter::BoundImage& image, const ImagePlaces& places,
               const std::vector<uint32_t>& waiters)
      : image_(image), places_(places), waiters_(waiters) {
    for (uint32_t own = 0; own < 4; ++own) buffer(own);
  }

  void add(const image::Record& of) {
    const OpInfo& row = info(of.code);
    image::Record record = of;
    record.first_place = uint32_t(operands_.size());
    record.first_id = uint32_t(ids_.size());
    size_t at = 0;
    for (const bool dests : {false, true}) {
      const size_t end = dests ? of.sources + of.dests : of.sources;
      for (const Field& field : row.fields) {
        if (!is_operand(field.role) || field.in_dst != dests) continue;
        for (const size_t last = field.many ? end : std::min(end, at + 1); at < last; ++at) {
          image::Place place = image_.places[of.first_place + at];
          place.buffer = is_switched(field.role) ? switched(place.buffer) : buffer(place.buffer);
          operands_.push_back(place);
        }
      }
    }
    for (uint32_t id = 0; id < of.ids; ++id) {
      const uint32_t plain = image_.ids[of.first_id + id];
      ids_.push_back(names_channels(row) ? channel(plain) : plain);
    }
    widest_ = std::max({widest_, of.sources, of.dests});
    records_.push_back(record);
  }

  uint32_t channels() const { return uint32_t(channels_.size()); }
  uint32_t widest() const { return widest_; }

  void write(std::vector<char>& out, uint32_t block) {
    const size_t first = out.size();
    BlockHeader header;
    header.block = block;
    header.n_records = uint32_t(records_.size());
    header.n_channels = channels();
    header.widest = widest_;
    header.alignment = image_.alignment;
    out.resize(first + sizeof header);
    const auto table = [&](const auto& items) {
      const size_t at = out.size();
      const size_t bytes = items.size() * sizeof items[0];
      out.resize(at + (bytes + 15) / 16 * 16);
      if (bytes) std::memcpy(out.data() + at, items.data(), bytes);
      return uint32_t(at - first);
    };
    header.records = table(records_);
    header.places = table(operands_);
    header.ids = table(ids_);
    header.buffers = table(buffers_);
    header.switches = table(switches_);
    header.members = table(members_);
    header.channels = table(channels_);
    header.bytes = uint32_t(out.size() - first);
    std::memcpy(out.data() + first, &header, sizeof header);
  }

 private:
  uint32_t buffer(uint32_t plain) {
    const auto [found, is_new] = buffer_at_.try_emplace(plain, uint32_t(buffers_.size()));
    if (is_new) buffers_.push_back(image_.buffers[plain]);
    return found->second;
  }

  uint32_t switched(uint32_t plain) {
    const image::Switch& of = image_.switches[plain];
    const image::Switch here{uint32_t(members_.size()), of.n};
    for (uint32_t member = 0; member < of.n; ++member)
      members_.push_back(buffer(image_.members[of.first + member]));
    widest_ = std::max(widest_, of.n);
    switches_.push_back(here);
    return uint32_t(switches_.size() - 1);
  }

  uint32_t channel(uint32_t plain) {
    const auto [found, is_new] = channel_at_.try_emplace(plain, uint32_t(channels_.size()));
    if (is_new) {
      ChannelEnd end;
      end.channel = plain;
      end.peer = image_.channels[plain].peer;
      end.at_peer = places_.signals_at_peer[plain];
      end.mine = places_.signals + plain;
      end.expected = waiters_[plain] > 1 ? places_.expected + plain : nullptr;
      end.pushed = places_.pushed + plain;
      end.completed = places_.completed + plain;
      channels_.push_back(end);
    }
    return found->second;
  }

  const interpreter::BoundImage& image_;
  const ImagePlaces& places_;
  const std::vector<uint32_t>& waiters_;
  std::vector<image::Record> records_;
  std::vector<image::Place> operands_;
  std::vector<uint32_t> ids_, members_;
  std::vector<image::Buffer> buffers_;
  std::vector<image::Switch> switches_;
  std::vector<ChannelEnd> channels_;
  std::map<uint32_t, uint32_t> buffer_at_, channel_at_;
  uint32_t widest_ = 1;
};

/// By channel: how many blocks wait on it.
std::vector<uint32_t> count_waiters(const interpreter::BoundImage& image) {
  std::vector<uint32_t> waiters(image.channels.size()), last(image.channels.size(), ~0u);
  for (uint32_t block = 0; block < image.blocks.size(); ++block) {
    for (uint32_t at = 0; at < image.blocks[block].n; ++at) {
      const image::Record& record = image.records[image.blocks[block].first + at];
      if (!awaits(info(record.code))) continue;
      for (uint32_t id = 0; id < record.ids; ++id) {
        const uint32_t channel = image.ids[record.first_id + id];
        waiters[channel] += last[channel] != block;
        last[channel] = block;
      }
    }
  }
  return waiters;
}

}  // namespace

BlockImages make_block_images(const interpreter::BoundImage& image, const ImagePlaces& places) {
  BlockImages made;
  const std::vector<uint32_t> waiters = count_waiters(image);
  uint32_t most_channels = 0;
  for (uint32_t block = 0; block < image.blocks.size(); ++block) {
    BlockBuilder builder(image, places, waiters);
    const image::Block& of = image.blocks[block];
    for (uint32_t record = of.first; record < of.first + of.n; ++record) builder.add(image.records[record]);
    made.at.push_back(uint32_t(made.bytes.size() / 16));
    builder.write(made.bytes, block);
    made.largest = std::max(made.largest, uint32_t(made.bytes.size()) - made.at.back() * 16);
    most_channels = std::max(most_channels, builder.channels());
    made.list_bytes = std::max(made.list_bytes, 2 * (builder.widest() + 2) * item_bytes);
  }
  made.at.push_back(uint32_t(made.bytes.size() / 16));
  made.state_bytes = uint32_t((sizeof(BlockState) + most_channels * sizeof(uint64_t) + 127) / 128 * 128);
  return made;
}

}  // namespace chorale::cuda
