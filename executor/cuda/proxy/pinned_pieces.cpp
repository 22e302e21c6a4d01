#include "pinned_pieces.hpp"

namespace chorale::cuda {

PinnedPieces::PinnedPieces(size_t count, size_t piece_bytes)
    : room_(std::make_shared<Room>()), piece_bytes_(piece_bytes) {
  room_->memory = HostArray<std::byte>(count * piece_bytes);
  for (size_t at = count; at-- != 0;) room_->free.push_back(room_->memory.host() + at * piece_bytes);
}

std::shared_ptr<std::byte[]> PinnedPieces::take() {
  if (room_->free.empty()) return nullptr;
  std::byte* const piece = room_->free.back();
  room_->free.pop_back();
  return {piece, [room = room_](std::byte* of) { room->free.push_back(of); }};
}

}  // namespace chorale::cuda
