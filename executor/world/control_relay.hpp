#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control.hpp"
#include "executor/system/shared_memory.hpp"
#include "executor/system/thrown.hpp"

namespace chorale::world {

class Group;

/// Each host has a separate control memory with a seat for every rank. The control relay runs in the lowest
/// rank of each host. It watches the seats of that host's ranks and sends their changes as events to rank 0's
/// host, which sends them on to all other hosts. It also applies the events of other hosts to this host's
/// memory. So ranks wait for each other as in a world of one host.
///
/// Rank 0's host forwards an event before it applies it, and every connection keeps the order of events. So
/// on every host an effect comes after its cause. A rank counts at once on its host and later on other hosts.
/// Therefore an event may reach a host whose ranks have not come that far. The host then delays this event
/// and all later ones of the connection.
class ControlRelay {
 public:
  enum class What : uint32_t { arrived, reset, launches, stop, left, refused };

  /// Represents the header of a message between hosts, in this machine's byte order. `bytes` bytes of text or
  /// data follow it.
  struct Event {
    What what;
    uint32_t rank;
    uint64_t number;  ///< arrived, reset: the number of the barrier or reset; launches: the Launched word;
                      ///< stop: a Stop; refused: a RunError::Reason
    uint64_t resets;  ///< the number of resets that the rank (for a stop, its host) had seen
    uint64_t total;   ///< arrived: Seat::total_bytes; launches: Seat::call
    Collective collective;
    uint32_t bytes;
  };

  /// \param host   this host, whose seats the relay watches
  /// \param links  the connections, by host. A fork of this process must not keep them open, because then the
  ///               other hosts would not notice the death of this process
  /// \throws RunError resources if it cannot start its threads
  ControlRelay(Group& group, uint32_t host, std::vector<system::Descriptor> links);

  /// Sends the last events. Waits for a second at most until the other machines have them.
  ~ControlRelay();

 private:
  struct Heard {
    Event event;
    std::vector<std::byte> data;
  };

  struct Link {
    system::Descriptor socket;
    uint32_t host = 0;
    std::vector<std::byte> incoming;
    std::deque<Heard> heard;                      ///< events that are not applied yet
    std::vector<std::byte> outgoing;              ///< bytes that the connection has not taken yet
    std::chrono::steady_clock::time_point moved;  ///< when the connection last took some of `outgoing`
    bool reads = true;                            ///< the other end still reads
    bool open = true;                             ///< more data may arrive
    bool lost = false;                            ///< see_to_end() has run
  };

  /// Records what the other hosts know about a rank.
  struct Told {
    uint64_t arrived = 0, resets = 0, launches = 0;
    bool left = false;
  };

  void tell_all();
  void listen_all();

  void tell_news();
  bool tell_arrivals();
  bool tell_resets();
  void tell_refusal();
  void tell_rest(int rank);
  void tell_arrival(int rank, uint64_t number, uint64_t resets);
  Event news_of_stop(std::string& why);
  void tell(const Event& event, const void* data, const Link* except = nullptr);
  void send(Link& link, const Event& event, const void* data);
  void flush(Link& link);
  bool taken(Link& link);
  void wake();

  void read(Link& link);
  void do_heard();
  bool may_be_done(const Event& event) const;
  void do_one(const Heard& heard);
  void see_to_end(Link& link);

  Group& group_;
  Control& control_;
  const uint32_t host_;
  std::vector<int> mine_;  ///< the ranks of this host
  std::mutex mutex_;       ///< guards all members below
  std::vector<Link> links_;
  std::vector<Told> told_;     ///< by rank
  uint64_t stop_told_in_ = 0;  ///< 1 plus the number of resets when the last stop was sent; 0: no stop was
                               ///< sent
  bool refusal_told_ = false;
  system::Descriptor wake_;  ///< an eventfd that wakes listen_all()
  std::atomic<bool> quit_{false};
  std::thread teller_, listener_;
};

/// Tells the hosts at the other ends of `links` why this host's ranks cannot join. Waits for a second at most
/// until they have the message. A rank without a control relay calls it.
void tell_hosts(const std::vector<system::Descriptor>& links, int rank, const system::Thrown& thrown);

}  // namespace chorale::world
