/// \file
/// Messages from one rank to another, one after the other, beside everything else that the two do.
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

/// What has become of one message.
class Transfer {
 public:
  explicit Transfer(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  const at::Tensor& tensor() const { return tensor_; }

  /// Waits on the host until it has ended, or, on a GPU, been enqueued; the current stream then waits for it.
  /// \throws what it failed with
  void wait();
  /// Whether it has ended.
  bool ended() const;

 private:
  friend class Line;
  void finish(std::exception_ptr error);

  const at::Tensor tensor_;
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;  ///< has ended on the CPU; is enqueued on a GPU
  std::exception_ptr error_;
  std::optional<c10::Event> ready_;  ///< of a GPU: what is before it
  std::optional<c10::Event> end_;
};

/// One end of the messages from one rank to another: a world of these two, which meet when each has made its
/// end, and on a GPU a stream. Nothing here waits for the other rank but Transfer::wait() and settle(), so
/// ranks may send before they receive, whatever the sizes and the order of their peers.
class Line {
 public:
  /// \param address  where the two ends meet
  /// \param name     of the line in errors, which else know its ends as ranks 0 and 1
  /// \param stream   of its own on the GPU of the tensors; none: they are on the CPU
  Line(const std::string& address, const std::string& name, bool sends, const Config& config,
       std::optional<c10::Stream> stream);
  /// What has not ended is given up.
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// Sends the tensor, or receives it, behind all that was enqueued before, once both ranks have asked for
  /// it; on a GPU also behind what is on the current stream. It is contiguous and stays until the transfer
  /// has ended. Into a CUDA graph it goes at once. \throws c10::DistBackendError there, where an earlier one
  /// has failed, c10::Error where an earlier one has not ended
  std::shared_ptr<Transfer> enqueue(const at::Tensor& tensor);

  /// Throws what has failed. Does not wait.
  void check();
  /// Waits on the host until all transfers have ended, well or not.
  void settle();
  /// Ends the waits of both ends. From any thread.
  void abort(const std::string& why);

 private:
  struct Core;
  static void work(const std::shared_ptr<Core>& core);
  static void run(Core& core, Transfer& transfer, bool meets);

  const std::shared_ptr<Core> core_;
};

/// A stream of this GPU that no line has, as long as there are some.
c10::Stream stream_for_line(const c10::Device& device);

}  // namespace chorale::torch_backend
