#pragma once
/// \file
/// A StageWriter writes the channels, signals and stores of one stage.

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "places.hpp"

namespace chorale::synthesis {

/// Holds both ends of a channel. `there` is run by the sender of data.
template <class Channel>
struct Ends {
  Channel there, back;
  Ends(dsl::Program& program, const Connection& one)
      : there(Channel(program, one.to, one.from)), back(Channel(program, one.from, one.to)) {}
};

/// Sends a piece over a connection.
struct Send {
  double time;
  uint32_t turn;  ///< at the same time, lower numbers are first
  uint32_t connection, piece;
  auto operator<=>(const Send&) const = default;
};

/// A thread block and the parts of each chunk that it works on.
struct Worker {
  int64_t block = 0;
  Parts parts;
};

/// Tells thread blocks of a rank, by semaphores, that others have brought or made pieces.
class Deliveries {
 public:
  Deliveries(dsl::Program& program, uint32_t rank) : program_(program), rank_(rank) {}

  void expect(uint32_t consumer, int64_t number);
  void tell(uint32_t consumer, int64_t number, int64_t block) const;
  void await(uint32_t consumer, int64_t number, int64_t block) const;

 private:
  dsl::Program& program_;
  uint32_t rank_;
  std::map<std::pair<uint32_t, int64_t>, dsl::Semaphore> semaphores_;
};

/// Over memory, a connection has a thread block for each lane at its sender, which sends its pieces in order;
/// or those thread blocks send all pieces of a rank. Each thread block at the receiver that uses a piece has
/// a channel of its own, because it counts the signals. Over ports, a rank has one thread block that sends
/// whole chunks, because its proxy sends one after the other. A thread block for each connection receives
/// them, and semaphores tell the others. If nothing is added up and all of them end there, the first thread
/// block of the end receives them.
///
/// The consumer of a piece is the connection that carries it on, or no_connection where it ends.
class StageWriter {
 public:
  StageWriter(dsl::Program&, const Network&, const Stage&, Way, const Design&, Resources&);

  /// Returns all that is sent, in the order of time.
  const std::vector<Send>& sends() const { return sends_; }

  /// Makes the thread blocks of a rank where pieces end.
  void make_end(uint32_t rank);
  /// Makes the channels, and lets each receiver say that its memory may be written.
  void begin();
  /// Sends a piece by one of the connection's senders, and tells those who use it.
  void send(uint32_t connection, uint32_t piece, const Worker& sender, dsl::Chunk to, dsl::Chunk from);
  /// Lets the receivers of ports tell what arrives, and the senders wait for their sources.
  void end();
  /// Lets a worker of the consumer wait for a piece over a connection.
  void await(uint32_t connection, uint32_t consumer, const Worker&);
  /// Does the same for pieces that this rank has made.
  void await_made(const Deliveries&, uint32_t consumer, const Worker&) const;

  /// Returns the thread blocks that store to a connection.
  const std::vector<Worker>& senders(uint32_t connection) const { return senders_[connection]; }
  /// Returns the thread blocks that wait for pieces for a consumer of a rank.
  const std::vector<Worker>& workers(uint32_t rank, uint32_t consumer) const;

  /// Return the connections over which a piece reaches and leaves a rank; consumers() returns no_connection
  /// where it ends.
  std::vector<uint32_t> arriving(uint32_t piece, uint32_t rank) const {
    return arriving_[stage_.pieces[piece].tree].at(rank);
  }
  std::vector<uint32_t> consumers(uint32_t piece, uint32_t rank) const;

 private:
  std::vector<Worker> lanes(uint32_t rank);
  void begin_port(uint32_t connection);
  void begin_memory(uint32_t connection);
  /// Returns true if all pieces of a connection end at its receiver.
  bool ends_there(uint32_t connection) const;
  int64_t receiver(uint32_t connection) const;
  bool one_for_all(uint32_t rank, uint32_t consumer) const { return workers(rank, consumer).size() < lanes_; }

  dsl::Program& program_;
  const Network& network_;
  const Stage& stage_;
  const size_t lanes_;
  Resources& resources_;
  std::vector<Branches> arriving_, leaving_;  // by tree
  std::vector<std::vector<Worker>> ends_at_;  // by rank
  std::vector<std::vector<Worker>> senders_;  // by connection
  std::vector<std::vector<Worker>> adders_;   // by connection over a port: they add up what it sends
  std::vector<int64_t> receivers_;            // by connection over a port: thread block; -1: that of the end
  std::vector<Send> sends_;
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, Ends<dsl::MemoryChannel>> channels_;  // and by lane
  std::map<uint32_t, Ends<dsl::PortChannel>> ports_;                                      // by connection
  std::map<uint32_t, Deliveries> deliveries_;  // by connection over a port
};

}  // namespace chorale::synthesis
