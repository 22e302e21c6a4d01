/// \file
/// Plans by collective and size, as a table of the tuner chooses them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/tuner.hpp"

namespace chorale {

/// Whose times a table holds: they are not those of another machine, or of other numbers of ranks.
struct TunedFor {
  int ranks = 1;
  std::string backend = "cpu";
  std::string device = {};  ///< the GPU's name; "" on the CPU
  /// Of collectives that reduce only plans that add in the order of the ranks, in_rank_order(): then a sum
  /// has the same bits in messages of every size, at every place, and by every table.
  bool rank_order = false;
};

/// The file that `chorale tune` writes for a machine, in the folder of tables: "NVIDIA_H200.json".
std::string table_name(const TunedFor& machine);

/// The key of a plan in a table. Plans in place have the variant "in place", those for rank_order "rank
/// order".
TuneKey plan_key(const TunedFor& machine, const std::string& collective, uint64_t bytes, DType dtype,
                 bool in_place = false);

/// A table, and the folder of plans that it names: those of N ranks are <name>_N.json. Not to be used by two
/// threads at once.
///
/// Every rank asks for itself, so all have one table: with another they may choose different plans, which the
/// executor refuses.
class TunedPlans {
 public:
  /// A plan that the folder lacks: of a name, for so many ranks.
  using Make = std::function<Plan(const std::string& name, int ranks)>;

  /// \param make  makes what the folder lacks, as make_plan() of chorale::plans does; empty: then it is an
  ///              error
  TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make = {});

  struct Choice {
    std::string collective;  ///< that was asked for
    std::string name, file;
    std::optional<PacketForm> packet;  ///< for Arguments
    TuneTable::Found found = TuneTable::Found::none;
    uint64_t bytes = 0;        ///< of the entry
    DType dtype = DType::f32;  ///< of the entry
  };

  /// What the table has for this size, else for the next smaller one; else the same of another type, those
  /// with elements of the same bytes first, since what is fast depends on the bytes of a message more than on
  /// what they mean; else a default: on GPUs by size and ranks, as what was fastest on two and on four H200s,
  /// on the CPU, or where the folder lacks it and nothing makes it, a plan that is never far from the
  /// fastest. \throws UsageError for a collective of another name, for a table that names no plan there, one
  /// outside the folder, or a form of packets that is none
  Choice choose(const std::string& collective, uint64_t bytes, DType dtype) const;

  /// The plan of choose(), read or made once. Stays as long as this.
  /// \throws UsageError if there is no such file and nothing makes one, if it is another collective or of
  /// other ranks, or it is for rank_order and does not add up so; as load()
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
