/// \file
/// Chooses plans by collective and size, from a table of the tuner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/tuner.hpp"

namespace chorale {

/// Says for which machine and number of ranks a table holds times. Times of another machine, or of other
/// numbers of ranks, differ.
struct TunedFor {
  int ranks = 1;
  std::string backend = "cpu";
  std::string device = {};  ///< the GPU's name; "" on the CPU
  /// For collectives that reduce, choose only plans that add in the order of the ranks, in_rank_order(). A
  /// sum then has the same bits in messages of every size, at every place, and by every table.
  bool rank_order = false;
};

/// Returns the name of the file that `chorale tune` writes for a machine, in the folder of tables:
/// "NVIDIA_H200.json".
std::string table_name(const TunedFor& machine);

/// Returns the key of a plan in a table. Plans in place have the variant "in place", those for rank_order
/// "rank order".
TuneKey plan_key(const TunedFor& machine, const std::string& collective, uint64_t bytes, DType dtype,
                 bool in_place = false);

/// Chooses from a table and the folder of plans that the table names. Plans of N ranks are in the files
/// <name>_N.json. Two threads must not use it at once.
///
/// Every rank chooses for itself, so all must have the same table. With another one they may choose different
/// plans, which the executor refuses.
class TunedPlans {
 public:
  /// Makes a plan that the folder lacks, by name, for `ranks` ranks.
  using Make = std::function<Plan(const std::string& name, int ranks)>;

  /// Chooses for `machine` from `table` and the plans in `folder`.
  /// \param make  makes what the folder lacks, as make_plan() of chorale::plans does; empty: a missing plan
  ///              is an error
  TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make = {});

  struct Choice {
    std::string collective;  ///< the one that was asked for
    std::string name, file;
    std::optional<PacketForm> packet;  ///< for Arguments
    TuneTable::Found found = TuneTable::Found::none;
    uint64_t bytes = 0;        ///< of the entry
    DType dtype = DType::f32;  ///< of the entry
  };

  /// Chooses a plan for a message. It takes the table's entry for this size, else the one for the next
  /// smaller size. Without such an entry it takes one of another type, types with elements of the same bytes
  /// first, because speed depends on the bytes of a message more than on their meaning. Else it takes a
  /// default: on GPUs, by size and ranks, the one that was fastest on two and on four H200s; on the CPU, or
  /// if the folder lacks that one and nothing makes it, a plan that is never far from the fastest.
  /// \throws UsageError for a collective of another name, or if the table names no plan there, one outside
  ///         the folder, or an unknown form of packets
  Choice choose(const std::string& collective, uint64_t bytes, DType dtype) const;

  /// Returns the plan of choose(), which is read or made once. It stays as long as this object.
  /// \throws UsageError if there is no such file and nothing makes one, if its plan is of another collective
  ///         or of other ranks, or if it is for rank_order and does not add up so; as load()
  const Plan& plan(const Choice& choice);

 private:
  const Plan& read_once(const Choice& choice);
  std::string default_name(const std::string& collective, uint64_t bytes) const;
  std::string file_of(const std::string& name) const;

  const TuneTable table_;
  const std::string folder_;
  const TunedFor machine_;
  const Make make_;
  std::map<std::string, Plan> plans_;
};

}  // namespace chorale
