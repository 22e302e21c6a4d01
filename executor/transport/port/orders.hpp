/// \file
/// On the CPU, a thread or a fiber serves the host's end of a PortQueue.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "chorale/device/port.hpp"
#include "executor/fibers/queue_thread.hpp"
#include "executor/fibers/scheduler.hpp"
#include "executor/transport/proxied.hpp"

namespace chorale::transport {

/// Takes a rank's orders one after the other and passes them to `carry_out`. It sleeps between launches.
class OrderProxy final : public Proxied {
 public:
  static constexpr uint64_t slots = 1024;

  /// \param carry_out  must return when the data has left the sender's copy of the ring. Only one thread
  ///                   calls it
  OrderProxy(fibers::Scheduler& scheduler, std::function<void(const PortOrder&)> carry_out);

  PortQueue* queue() { return &queue_; }

  void begin() override;
  void end(bool stopped) override;
  void run_fiber(HostBlock& host, const std::atomic<int>& threads_left) override;

 private:
  bool ready() const;
  bool take();
  void drop();

  fibers::Scheduler& scheduler_;
  const std::function<void(const PortOrder&)> carry_out_;
  std::vector<PortOrder> orders_;
  alignas(128) uint64_t head_ = 0;
  alignas(128) uint64_t tail_ = 0;
  std::atomic<int> unfinished_{0};  ///< the number of orders that are announced but not carried out
  PortQueue queue_;
  std::optional<fibers::QueueThread>
      thread_;  ///< none with a seed; the last member, because it uses the others
};

}  // namespace chorale::transport
