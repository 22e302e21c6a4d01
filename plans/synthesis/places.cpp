#include "places.hpp"

namespace chorale::synthesis {

using namespace dsl;

Places::Places(Program& program, const Network& network, const Design& design) : design_(design) {
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
  return chunk(inputs_[rank], index(stage, piece, design_.collective != AllGather::word, true), parts);
}

Chunk Places::output(const Stage& stage, uint32_t piece, uint32_t rank, Parts parts) const {
  return chunk(outputs_[rank], index(stage, piece, design_.collective != ReduceScatter::word, false), parts);
}

bool Places::has_own(uint32_t rank) const {
  return !design_.up.used() && (design_.collective != Broadcast::word || rank == design_.root);
}

std::vector<std::pair<Chunk, Chunk>> Places::own(uint32_t rank, int64_t lane) const {
  std::vector<std::pair<Chunk, Chunk>> copies;
  if (!has_own(rank)) return copies;
  const int64_t part = rank * design_.chunks;
  const int64_t to = design_.collective == Broadcast::word ? 0 : part,
                from = design_.collective == AllToAll::word ? part : 0;
  for (int64_t at = 0; at < design_.chunks; ++at)
    copies.emplace_back(chunk(outputs_[rank], to + at, {lane, 1}),
                        chunk(inputs_[rank], from + at, {lane, 1}));
  return copies;
}

int64_t Places::index(const Stage& stage, uint32_t piece, bool parts, bool input) const {
  const uint32_t tree = stage.pieces[piece].tree, root = stage.trees[tree].root;
  const int64_t chunk = stage.pieces[piece].chunk;
  if (design_.collective == AllToAll::word)
    return int64_t(input ? design_.ends[tree] : root) * design_.chunks + chunk;
  if (design_.collective == Broadcast::word || design_.collective == Reduce::word) return chunk;
  return parts ? begins_[root] + chunk : chunk;
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
