/// \file
/// Sends messages from one rank to another in order, independently of everything else that the two ranks do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chorale/config.hpp>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace chorale::torch_backend {

/// Holds the state of one message.
class Transfer {
 public:
  explicit Transfer(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  const at::Tensor& tensor() const { return tensor_; }

  /// Waits on the host until the message has ended. On a GPU it waits until the message has been enqueued,
  /// and the current stream then waits for its end.
  /// \throws the error that made it fail
  void wait();
  /// Returns true if the message has ended.
  bool ended() const;

 private:
  friend class P2pConnection;
  void finish(std::exception_ptr error);

  const at::Tensor tensor_;
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;  ///< on the CPU: the message has ended; on a GPU: it is enqueued
  std::exception_ptr error_;
  std::optional<c10::Event> ready_;  ///< on a GPU: the end of the earlier work on the current stream
  std::optional<c10::Event> end_;
};

/// Stands for one end of a p2p connection, which carries messages from one rank to another. It has a world of
/// these two ranks, which connect when each has made its end, and a stream on a GPU. Only Transfer::wait()
/// and settle() wait for the other rank. So ranks may send before they receive, whatever the sizes and the
/// order of their peers.
class P2pConnection {
 public:
  /// \param address  the address at which the two ends connect
  /// \param name     the connection's name for errors, which otherwise call its ends ranks 0 and 1
  /// \param stream   a stream on the tensors' GPU that no other connection uses; none if they are on the CPU
  P2pConnection(const std::string& address, const std::string& name, bool sends, const Config& config,
                std::optional<c10::Stream> stream);
  /// Ends the transfers that have not finished.
  ~P2pConnection();
  P2pConnection(const P2pConnection&) = delete;
  P2pConnection& operator=(const P2pConnection&) = delete;

  /// Sends or receives the tensor after all transfers that were enqueued before, once both ranks have called
  /// this. On a GPU it also runs after the work that is on the current stream. The tensor is contiguous and
  /// must stay until the transfer has ended. During a capture the transfer goes into the CUDA graph at once.
  /// \throws c10::DistBackendError during a capture if an earlier transfer has failed; c10::Error if an
  /// earlier one has not ended
  std::shared_ptr<Transfer> enqueue(const at::Tensor& tensor);

  /// Throws the error of a transfer that has failed. It does not wait.
  void check();
  /// Waits on the host until all transfers have ended or failed.
  void settle();
  /// Ends the waits of both ends. Any thread may call it.
  void abort(const std::string& why);

 private:
  struct Core;
  static void work(const std::shared_ptr<Core>& core);
  static void run(Core& core, Transfer& transfer, bool barrier_first);

  const std::shared_ptr<Core> core_;
};

/// Returns a stream of this GPU that no p2p connection uses, as long as there is one.
c10::Stream stream_for_line(const c10::Device& device);

}  // namespace chorale::torch_backend
