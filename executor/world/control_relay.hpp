/// \file
/// In a world over several hosts, a ControlRelay repeats on all hosts what ranks say in one host's control
/// memory.
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

#include "../system/shared_memory.hpp"
#include "../system/thrown.hpp"
#include "control.hpp"

namespace chorale::world {

class Group;

/// Each host has a control memory of its own, with a seat for every rank. The lowest rank of a host looks at
/// the seats of that host's ranks and tells rank 0's host, which tells all others, what has happened there;
/// and it does in this memory what the others' ranks have done in theirs. So everybody waits as in a world of
/// one host.
///
/// Rank 0's host passes on what it hears before it does it itself, and every connection keeps its order. So
/// an effect comes after its cause on every host. A rank's next step may come to a host before that host's
/// own ranks have come as far, because a rank counts at once on its own host and later on others. Then that
/// step waits, and so does all that comes after it.
class ControlRelay {
 public:
  enum class What : uint32_t { arrived, reset, launches, stop, left, refused };

  /// An Event travels on the wire in this machine's byte order; `bytes` of text or data follow.
  struct Event {
    What what;
    uint32_t rank;
    uint64_t number;  ///< of the barrier or reset; the launches; a Stop; refused: a RunError::Reason
    uint64_t resets;  ///< the resets that the rank, or for a stop its host, had seen
    uint64_t total;   ///< arrived: Seat::total_bytes; launches: Seat::call
    Collective collective;
    uint32_t bytes;
  };

  /// \param host   the host whose seats are looked at here
  /// \param links  by host: the connections that there are. A fork of this process must not keep them open,
  ///               or the others would not hear that this process has died
  /// \throws RunError resources if there are no threads for it
  ControlRelay(Group& group, uint32_t host, std::vector<Descriptor> links);

  /// Tells the others what has happened. Waits until it is with them, for a second at most.
  ~ControlRelay();

 private:
  struct Heard {
    Event event;
    std::vector<std::byte> data;
  };

  struct Link {
    Descriptor socket;
    uint32_t host = 0;
    std::vector<std::byte> incoming;
    std::deque<Heard> heard;                      ///< events that are not done yet
    std::vector<std::byte> outgoing;              ///< bytes for which the connection had no room
    std::chrono::steady_clock::time_point moved;  ///< when the connection last took some of them
    bool reads = true;                            ///< the other end reads
    bool open = true;                             ///< more may come
    bool lost = false;                            ///< see_to_end() has run
  };

  /// Says what the others have been told of a rank.
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
  std::vector<int> mine_;  ///< ranks of this host
  std::mutex mutex_;       ///< guards all below
  std::vector<Link> links_;
  std::vector<Told> told_;     ///< by rank
  uint64_t stop_told_in_ = 0;  ///< 1 plus the resets there had been when a stop was told; 0: none
  bool refusal_told_ = false;
  Descriptor wake_;  ///< an eventfd, for listen_all()
  std::atomic<bool> quit_{false};
  std::thread teller_, listener_;
};

/// Tells the hosts at the other ends of `links` why this host's ranks cannot join. Waits until they have it,
/// for a second at most. It is for a rank that has no ControlRelay.
void tell_hosts(const std::vector<Descriptor>& links, int rank, const Thrown& thrown);

}  // namespace chorale::world
