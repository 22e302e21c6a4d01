#include "remote_copies.hpp"

#include <cstring>
#include <utility>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"

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

namespace {

/// Set the bytes of a piece and the number of pieces: 32 MiB each way.
constexpr size_t remote_piece_bytes = size_t{512} << 10, remote_pieces = 64;

}  // namespace

RemoteCopies::Direction::Direction(const char* name)
    : what(name), pieces(remote_pieces, remote_piece_bytes), stream(name) {
  while (events.size() < remote_pieces) events.emplace_back(name);
}

/// Begins a copy through a piece. There are as many events as pieces, so one is unused.
void RemoteCopies::Direction::copy(void* to, const void* from, size_t bytes, Piece piece) {
  const OutsideCapture outside;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), what);
  check(cudaEventRecord(events[(ended + under_way.size()) % events.size()].get(), stream.get()), what);
  under_way.push_back(std::move(piece));
}

/// Counts the copies that have ended.
uint64_t RemoteCopies::Direction::look() {
  if (under_way.empty()) return ended;
  const OutsideCapture outside;
  for (; !under_way.empty(); ++ended, under_way.pop_front()) {
    const cudaError_t result = cudaEventQuery(events[ended % events.size()].get());
    if (result == cudaErrorNotReady) break;
    check(result, what);
  }
  return ended;
}

RemoteCopies::RemoteCopies() = default;

RemoteCopies::~RemoteCopies() {
  for (const Direction* direction : {&out_, &in_})
    check_quietly(cudaStreamSynchronize(direction->stream.get()), direction->what);
}

ucx::Payload RemoteCopies::copy_out(const char* from, size_t bytes) {
  ucx::Payload payload;
  payload.data = out_.pieces.take();
  payload.bytes = bytes;
  if (payload.data) out_.copy(payload.data.get(), from, bytes, payload.data);
  return payload;
}

bool RemoteCopies::copy_in(char* to, const ucx::Payload& payload, bool) {
  Piece piece = in_.pieces.take();
  if (!piece) return false;
  std::memcpy(piece.get(), payload.data.get(), payload.bytes);
  in_.copy(to, piece.get(), payload.bytes, piece);
  return true;
}

void RemoteCopies::finish() {
  for (Direction* direction : {&out_, &in_}) {
    check(cudaStreamSynchronize(direction->stream.get()), direction->what);
    direction->ended += direction->under_way.size();
    direction->under_way.clear();
  }
}

}  // namespace chorale::cuda
