#include "places.hpp"

namespace chorale::synthesis {

using namespace dsl;

Places::Places(Program& program, const Network& network, const Design& design)
    : design_(design), collective_(collective_info(design.collective)) {
  for (uint32_t rank = 0; rank < network.ranks; ++rank) {
    inputs_.push_back(program.rank(rank).get_input_buffer());
    outputs_.push_back(program.rank(rank).get_output_buffer());
  }
  begins_.resize(network.ranks, 0);
  const Stage& stage = design.up.used() ? design.up : design.down;
  std::vector<int64_t> own(network.ranks, 0);
  for (const Tree& tree : stage.trees) own[tree.root] += tree.chunks;
  for (uint32_t rank = 1; rank < network.ranks; ++rank) begins_[rank] = begins_[rank - 1] + own[rank - 1];
}

Chunk Places::input(const Stage& stage, uint32_t piece, uint32_t rank, Parts parts) const {
  const uint32_t tree = stage.pieces[piece].tree;
  const int64_t at = design_.ends.empty()
                         ? index(stage, piece, collective_.input)
                         : int64_t(design_.ends[tree]) * design_.chunks + stage.pieces[piece].chunk;
  return chunk(inputs_[rank], at, parts);
}

Chunk Places::output(const Stage& stage, uint32_t piece, uint32_t rank, Parts parts) const {
  return chunk(outputs_[rank], index(stage, piece, collective_.output), parts);
}

bool Places::has_own(uint32_t rank) const {
  return !design_.up.used() && (!collective_.only_root_sends() || rank == design_.root);
}

std::vector<std::pair<Chunk, Chunk>> Places::own(uint32_t rank, int64_t lane) const {
  std::vector<std::pair<Chunk, Chunk>> copies;
  if (!has_own(rank)) return copies;
  const auto begin = [&](CollectiveInfo::Cut cut) {
    return cut == CollectiveInfo::Cut::whole ? 0 : rank * design_.chunks;
  };
  for (int64_t at = 0; at < design_.chunks; ++at) {
    copies.emplace_back(chunk(outputs_[rank], begin(collective_.output) + at, {lane, 1}),
                        chunk(inputs_[rank], begin(collective_.input) + at, {lane, 1}));
  }
  return copies;
}

int64_t Places::index(const Stage& stage, uint32_t piece, CollectiveInfo::Cut cut) const {
  const int64_t chunk = stage.pieces[piece].chunk;
  if (cut == CollectiveInfo::Cut::whole) return chunk;
  const uint32_t root = stage.trees[stage.pieces[piece].tree].root;
  // A rank is the root of as many chunks as any other, but for an all-reduce.
  return (design_.ends.empty() ? begins_[root] : root * design_.chunks) + chunk;
}

Chunk Places::chunk(const BaseBuffer& buffer, int64_t index, Parts parts) const {
  const int64_t begin = index * design_.lanes + parts.first;
  return buffer.slice(begin, begin + parts.count);
}

void Resources::make_scratch(Program& program) {
  for (uint32_t rank = 0; rank < slots_.size(); ++rank) {
    scratch_.push_back(slots_[rank] ? std::optional<Buffer>(Buffer(program, rank, slots_[rank] * lanes_))
                                    : std::nullopt);
  }
}

Chunk Resources::scratch(uint32_t rank, int64_t slot, Parts parts) const {
  const int64_t begin = slot * lanes_ + parts.first;
  return scratch_[rank]->slice(begin, begin + parts.count);
}

}  // namespace chorale::synthesis
