// Runs the messages of a communicator.

#include <algorithm>
#include <cstddef>

#include "communicator.hpp"
#include "outcome.hpp"

namespace chorale::nccl {

/// Adds the messages of a call to those of its group.
void Communicator::add_messages(const Task& task, Messages& messages) const {
  const uint64_t bytes = task.count * element_bytes(task.type);
  const auto part = [bytes](auto* buffer, int peer) { return buffer + uint64_t(peer) * bytes; };
  const char* const from = static_cast<const char*>(task.send);
  char* const to = static_cast<char*>(task.recv);
  const bool root = task.root == rank();
  switch (task.function) {
    case Function::ncclSend:
      messages.sends.push_back({from, bytes, task.root});
      return;
    case Function::ncclRecv:
      messages.recvs.push_back({to, bytes, task.root});
      return;
    case Function::ncclGather:
      messages.sends.push_back({from, bytes, task.root});
      for (int peer = 0; root && peer < ranks(); ++peer)
        messages.recvs.push_back({part(to, peer), bytes, peer});
      return;
    default:  // ncclScatter
      for (int peer = 0; root && peer < ranks(); ++peer)
        messages.sends.push_back({part(from, peer), bytes, peer});
      messages.recvs.push_back({to, bytes, task.root});
  }
}

/// Takes away the messages of a rank to itself that stay in place.
void Communicator::leave_in_place(Messages& messages) const {
  size_t recv = 0;
  for (size_t send = 0; send < messages.sends.size(); ++send) {
    if (messages.sends[send].peer != rank()) continue;
    while (recv < messages.recvs.size() && messages.recvs[recv].peer != rank()) ++recv;
    if (recv == messages.recvs.size()) return;  // the exchange refuses it
    const bool stays = messages.sends[send].data == messages.recvs[recv].data &&
                       messages.sends[send].bytes == messages.recvs[recv].bytes;
    if (stays) {
      messages.sends.erase(messages.sends.begin() + ptrdiff_t(send--));
      messages.recvs.erase(messages.recvs.begin() + ptrdiff_t(recv));
    } else {
      ++recv;
    }
  }
}

/// Runs messages at once. NCCL allows that a rank receives where it also sends from, so such data is copied
/// before it is sent.
void Communicator::run_messages(Messages messages, cudaStream_t stream) {
  leave_in_place(messages);
  std::vector<SendTo>& sends = messages.sends;
  if (sends.empty() && messages.recvs.empty()) return;
  const auto overlaps = [&](const SendTo& send) {
    const char* const begin = static_cast<const char*>(send.data);
    return std::any_of(messages.recvs.begin(), messages.recvs.end(), [&](const RecvFrom& recv) {
      const char* const other = static_cast<const char*>(recv.data);
      return begin < other + recv.bytes && other < begin + send.bytes;
    });
  };
  uint64_t copied = 0;
  for (const SendTo& send : sends) copied += overlaps(send) ? (send.bytes + 127) / 128 * 128 : 0;
  if (copied > copied_) {
    copies_.push_back(device_->allocate(copied));
    copied_ = copied;
  }
  char* to = copied > 0 ? static_cast<char*>(copies_.back()->at()) : nullptr;
  for (SendTo& send : sends) {
    if (!overlaps(send)) continue;
    device_->copy(to, send.data, send.bytes, stream);
    send.data = to;
    to += (send.bytes + 127) / 128 * 128;
  }
  if (exchange_) return exchange_->exchange(sends, messages.recvs, stream);
  // The messages of a single rank to itself match in their order.
  for (size_t at = 0; at < std::max(sends.size(), messages.recvs.size()); ++at) {
    if (at >= sends.size() || at >= messages.recvs.size() || sends[at].bytes != messages.recvs[at].bytes) {
      throw CallError(ncclInvalidUsage,
                      "the sends of a rank to itself do not match its receives in the same group");
    }
    if (sends[at].data != messages.recvs[at].data && sends[at].bytes)
      device_->copy(messages.recvs[at].data, sends[at].data, sends[at].bytes, stream);
  }
}

}  // namespace chorale::nccl
