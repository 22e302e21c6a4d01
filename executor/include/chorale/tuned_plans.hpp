/// \file
/// TunedPlans chooses plans by collective and size from a table of the tuner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/tuner.hpp"

namespace chorale {

/// Names the machine and number of ranks to choose plans for. Times of other machines or numbers of ranks
/// differ.
struct TunedFor {
  int ranks = 1;
  std::string backend = "cpu";
  std::string device = {};  ///< the GPU's name; "" on the CPU
  /// If true, only plans that add in the order of the ranks are chosen for collectives that reduce, see
  /// in_rank_order().
  /// A sum then has the same bits for every message size, at every position in the message, and with every
  /// table.
  bool rank_order = false;
};

/// Returns the name of the file that `chorale tune` writes for a machine in the folder of tables:
/// "NVIDIA_H200.json".
std::string table_name(const TunedFor& machine);

/// Returns the key of a plan in a table. A plan in place has the variant "in place", and a plan for
/// rank_order has "rank order".
TuneKey plan_key(const TunedFor& machine, const std::string& collective, uint64_t bytes, DType dtype,
                 bool in_place = false);

/// Chooses plans by a table, and reads them from a folder. Plans of N ranks are in the files <name>_N.json.
/// Two threads must not use one object at the same time. For example:
///
///     TunedPlans plans(TuneTable::load("plans/tuned/cpu.json"), "plans/shipped", {.ranks = ranks});
///     const TunedPlans::Choice chosen = plans.choose("allreduce", bytes, DType::bf16);
///     executor.execute(plans.plan(chosen), {.in = in, .out = out, .bytes = bytes, .dtype = DType::bf16,
///                                           .packet = chosen.packet});
///
/// Every rank chooses independently, so all ranks must have the same table. With different tables ranks may
/// choose different plans, which the executor refuses.
class TunedPlans {
 public:
  /// Makes the plan called `name` for `ranks` ranks when the folder lacks it.
  using Make = std::function<Plan(const std::string& name, int ranks)>;

  /// Chooses for `machine` from `table` and the plans in `folder`.
  /// \param make  makes plans that the folder lacks, as make_plan() of chorale::plans does; empty: a missing
  ///              plan is an error
  TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make = {});

  struct Choice {
    std::string collective;  ///< the collective that you asked for
    std::string name, file;
    std::optional<PacketForm> packet;  ///< for Arguments
    TuneTable::Found found = TuneTable::Found::none;
    uint64_t bytes = 0;        ///< the entry's
    DType dtype = DType::f32;  ///< the entry's
  };

  /// Chooses a plan for a message. It takes the table's entry for this size, else the entry for the next
  /// smaller size. If there is none, it takes an entry of another type, preferably one with elements of the
  /// same size, because speed depends more on the bytes of a message than on their meaning. If there is still
  /// none, it takes a default. On GPUs the default depends on size and ranks, and is the plan that was
  /// fastest on two and on four H200s. On the CPU, or if that plan is neither in the folder nor made, the
  /// default is a plan that is never far from the fastest.
  /// \throws UsageError for an unknown collective, or if the entry names no plan, a plan outside the folder,
  ///         or an unknown packet form
  Choice choose(const std::string& collective, uint64_t bytes, DType dtype) const;

  /// Returns the plan of choose(). It reads or makes each plan once. The reference is valid as long as this
  /// object lives.
  /// \throws UsageError if there is no such file and nothing makes the plan, if the plan is of another
  ///         collective or number of ranks, or if rank_order is set and the plan does not add in rank order;
  ///         as load()
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
