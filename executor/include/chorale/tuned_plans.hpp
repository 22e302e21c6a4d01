/// \file
/// TunedPlans chooses plans by collective and size: your own, those of the tuner's table, or defaults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/own_plans.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/tuner.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Names the machine and number of ranks to choose plans for. Times of other machines or numbers of ranks
/// differ.
struct TunedFor {
  int ranks = 1;
  std::string backend = "cpu";
  std::string device = {};  ///< the GPU's name; "" on the CPU
  /// If true, only plans that add in the order of the ranks are chosen for collectives that reduce, see
  /// in_rank_order(). A sum then has the same bits for every message size, at every position in the message,
  /// and with every table.
  bool rank_order = false;
  /// Limits the thread blocks of the plans that are chosen; 0: any number. Without a value TunedPlans takes
  /// the setting Config::max_blocks. Plans of use() are chosen whatever their blocks are. All ranks must have
  /// the same limit.
  std::optional<uint32_t> max_blocks = {};
};

/// Returns the name of the file that `chorale tune` writes for a machine in the folder of tables:
/// "NVIDIA_H200.json".
std::string table_name(const TunedFor& machine);

/// Returns the key of a plan in a table, without a limit of thread blocks. A plan in place has the variant
/// "in place", and a plan for rank_order has "rank order".
TuneKey plan_key(const TunedFor& machine, const std::string& collective, uint64_t bytes, DType dtype,
                 bool in_place = false);

/// Holds the time of a plan, for set_by_blocks().
struct TimedPlan {
  TuneConfig config;  ///< with the number of its thread blocks
  double ns = 0;      ///< the time of one call
};

/// Puts the plans into a table from which TunedPlans chooses for every limit of thread blocks up to
/// `key.max_blocks`: the fastest, and each plan with fewer blocks that is faster than all plans with as few.
void set_by_blocks(TuneTable& table, const TuneKey& key, std::span<const TimedPlan> plans);

/// Chooses plans for messages. Plans of your own, see use(), go before those of a table, and these before
/// defaults. Plans of N ranks are read from the files `<name>_N.json` of a folder. Two threads must not use
/// one object at the same time. For example:
///
///     TunedPlans plans(TuneTable::load("plans/tuned/cpu.json"), "plans/shipped", {.ranks = ranks});
///     const TunedPlans::Choice chosen = plans.choose("allreduce", bytes, DType::bf16);
///     executor.execute(plans.plan(chosen), {.in = in, .out = out, .bytes = bytes, .dtype = DType::bf16,
///                                           .packet = chosen.packet});
///
/// Every rank chooses independently, so all ranks must have the same table and the same plans of their own.
/// Otherwise ranks may choose different plans, which the executor refuses.
class TunedPlans {
 public:
  using Make = MakePlan;

  /// Chooses for `machine` from `table` and the plans in `folder`.
  /// \param folder  "" if there are no files
  /// \param make  makes plans that the folder lacks, as make_plan() of chorale::plans does; empty: a missing
  ///              plan is an error
  TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make = {});

  /// Chooses for `machine` from the plans of an installation. They are in `folder`/shipped. The table is
  /// `folder`/tuned/table_name(machine), if that file exists.
  /// \param folder  such as PREFIX/share/chorale/plans; "" if there is none
  /// \throws as TuneTable::load()
  static TunedPlans installed(const std::string& folder, const TunedFor& machine, Make make = {});

  /// Adds a plan of your own, which is chosen before all others for its sizes. If several of your plans are
  /// for a size, the one that was added last is chosen.
  ///
  /// \throws UsageError if the plan is of another number of ranks, or if rank_order is set and the plan does
  ///         not add in rank order
  void use(OwnPlan own);

  /// Holds a chosen plan, and why it was chosen.
  struct Choice {
    std::string collective;            ///< the collective that you asked for
    std::string name, file;            ///< the plan; the file is "" for a plan of use()
    std::optional<PacketForm> packet;  ///< the value for Arguments::packet
    /// Says whether the plan comes from a table's entry for this size or for a smaller one. It is `none` for
    /// a default and for a plan of use().
    TuneTable::Found found = TuneTable::Found::none;
    uint64_t bytes = 0;                  ///< the size of the table's entry
    DType dtype = DType::f32;            ///< the type of the table's entry
    uint32_t max_blocks = 0;             ///< the limit of thread blocks; 0: none
    std::shared_ptr<const OwnPlan> own;  ///< null unless the plan is one of use()

    /// Returns the plan and why it was chosen: "allreduce_ring_b64, ll16, as tuned for 65536 bytes of bf16".
    std::string words() const;
  };

  /// Chooses a plan for a message. It takes a plan of use() for this size. If there is none, it takes the
  /// table's entry for this size, else the entry for the next smaller size. If there is none, it takes an
  /// entry of another type, preferably one with elements of the same size, because speed depends more on the
  /// bytes of a message than on their meaning. If there is still none, it takes a default. On GPUs the
  /// default depends on size and ranks, and is the plan that was fastest on two and on four H200s. On the
  /// CPU, or if that plan is neither in the folder nor made, the default is a plan that is never far from the
  /// fastest.
  ///
  /// With a limit of thread blocks, plans with more blocks are passed over, except those of use(). Of the
  /// table's entries for one size, the fastest plan within the limit is taken. If the fastest plan of a size
  /// has too many blocks, and the table has no other for that size, a default with fewer blocks is taken.
  ///
  /// \throws UsageError for an unknown collective, if the entry names no plan, a plan outside the folder, or
  ///         an unknown packet form, or if every plan has more thread blocks than the limit. With a limit, as
  ///         plan() for plans whose blocks must be counted
  Choice choose(const std::string& collective, uint64_t bytes, DType dtype) const;

  /// Returns the plan of choose(). It reads or makes each plan once. The reference is valid as long as this
  /// object lives.
  /// \throws UsageError if there is no such file and nothing makes the plan, if the plan is of another
  ///         collective or number of ranks, or if rank_order is set and the plan does not add in rank order;
  ///         as load()
  const Plan& plan(const Choice& choice);

  /// Holds a plan that was not chosen, and the first reason why not.
  struct Passed {
    std::string plan, reason;
    bool operator==(const Passed&) const = default;
  };

  /// Returns the limit of thread blocks; 0: any number. set_max_blocks() changes it for later choices.
  uint32_t max_blocks() const { return *machine_.max_blocks; }
  void set_max_blocks(uint32_t limit) { machine_.max_blocks = limit; }

  /// Returns the name of a plan of this collective for all sizes, within the limit. make_plan() makes it for
  /// roots other than 0, for which choose() has no plans.
  std::string name_for_roots(std::string_view collective) const;

  /// Says why choose() did not choose the other plans: those of use(), of the table, of the defaults, of the
  /// table's failures, and of the folder, in this order. Each plan is listed once.
  /// \throws as choose()
  std::vector<Passed> explain(const std::string& collective, uint64_t bytes, DType dtype) const;

 private:
  struct Candidate;
  /// Visits the plans for messages of this collective, the preferred ones first, until `visit` returns true.
  template <class Visit>
  void weigh(const std::string& collective, uint64_t bytes, DType dtype, const Visit& visit) const;
  std::vector<Candidate> of_type(const std::string& collective, uint64_t bytes, DType dtype) const;
  uint32_t blocks_of(const std::string& name) const;
  uint32_t blocks_of(const TuneTable::Entry& entry) const;
  Plan read(const std::string& name) const;
  bool fits(uint32_t blocks) const;
  void check_named(const Choice& choice) const;
  std::vector<std::string> others_in_folder(const std::string& collective) const;
  const Plan& read_once(const Choice& choice);
  bool is_there(const std::string& name) const;
  std::string file_of(const std::string& name) const;

  const TuneTable table_;
  const std::string folder_;
  TunedFor machine_;  ///< its max_blocks has a value
  const Make make_;
  std::vector<std::shared_ptr<const OwnPlan>> own_;  ///< in the order of use()
  std::map<std::string, Plan> plans_;                ///< by file
  mutable std::map<std::string, uint32_t> blocks_;   ///< thread blocks, by the plan's name
};

/// Returns the plans in one line, by reason: "allreduce_ring, allreduce_staged (tuned for more bytes); ...".
std::string words_of(const std::vector<TunedPlans::Passed>& passed);

}  // namespace chorale
