/// \file
/// A Staging decides how execute_staged() runs a call: on the caller's buffers, or on copies in memory of its
/// own.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "chorale/executor.hpp"
#include "executor/binding/backend.hpp"

namespace chorale {

/// Says how a call publishes its buffers, see Call.
struct Publishing {
  bool on = false;
  uint64_t part_distance = 0;
};

/// Holds memory that peers access in place of the caller's buffers. One part is for inputs and one for
/// outputs. Longer messages go through it piece by piece: a piece is the same range of every part of the
/// buffers.
class Staging {
 public:
  static constexpr uint64_t most_bytes = uint64_t(64) << 20;

  /// Limits a piece of published buffers, in bytes. Tests lower it.
  static inline uint64_t most_published = Executor::most_direct;

  /// \param most       the most bytes of the memory for inputs, and of that for outputs
  /// \param multicast  as Call::multicast
  explicit Staging(Backend& backend, uint64_t most = most_bytes, bool multicast = false)
      : backend_(&backend), most_(most), multicast_(multicast) {}

  /// Records memory that the executor allocated. Plans may be bound to it.
  void add_allocated(const void* at, uint64_t bytes);

  enum class How {
    as_passed,  ///< as execute() does: peers do not access the buffers, or all are memory of add_allocated()
    published,  ///< ranks publish their buffers, see Call::publishes
    staged      ///< through the memory of this object
  };

  /// Decides how a call runs. All ranks decide alike.
  How how(const Plan& plan, const Arguments& arguments);

  /// Calls `visit` with each piece of a message whose buffers are published. A piece is the same range of
  /// every part of the buffers.
  static void for_each_published(const Plan& plan, const Arguments& arguments,
                                 const std::function<void(const Arguments&, const Publishing&)>& visit);

  /// Allocates the memory, if that has not been done.
  void allocate();

  bool is_allocated() const { return in_ != nullptr; }

  /// Calls `visit` with the call of each piece. The memory must be allocated.
  /// \throws UsageError as run()
  void for_each_call(const Plan& plan, const Arguments& arguments,
                     const std::function<void(const Arguments&)>& visit) const;

  /// Runs the plan piece by piece.
  /// \param execute  runs the plan on a piece
  /// \throws UsageError if the plan is not of a standard collective and its buffers are too long
  void run(const Plan& plan, const Arguments& arguments, void* stream,
           const std::function<void(const Arguments&)>& execute);

 private:
  struct Allocated {
    const char* at;
    uint64_t bytes;
  };
  /// Says which buffers of a plan any rank accesses on another rank.
  struct Reached {
    uint64_t identity;
    bool input, output;
  };

  /// Describes the parts of a buffer, and how much of each part a piece has.
  struct Parts {
    uint64_t count, distance;  ///< the distance is in bytes, from part to part
    uint64_t bytes = 0;        ///< of each part
  };
  struct Piece {
    Arguments arguments;  ///< the call of the piece
    Parts in, out;
    uint64_t begin = 0;  ///< where the piece begins in each part, in bytes
  };

  void for_each_piece(const Plan& plan, const Arguments& arguments,
                      const std::function<void(const Piece&)>& visit) const;
  bool allocated(const void* at, uint64_t bytes) const;
  const Reached& reached_of(const Plan& plan);

  Backend* backend_;
  uint64_t most_;
  bool multicast_;
  std::vector<Allocated> allocated_;
  std::vector<Reached> reached_;
  char* in_ = nullptr;
  char* out_ = nullptr;
};

}  // namespace chorale
