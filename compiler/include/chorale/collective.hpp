#pragma once
/// \file
/// This header says, from the name of a collective, what it does and what a plan must write to its outputs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chorale/plan.hpp"

namespace chorale {

/// Describes one collective. It is a row of collectives.def, which explains the columns.
struct CollectiveInfo {
  /// Says how a buffer of a rank is cut. N is the number of ranks and c the chunk factor of a program.
  enum class Cut : uint8_t {
    whole,  ///< one part of c chunks
    even,   ///< one part of N * c chunks
    parts,  ///< N parts of c chunks, one for each rank
    own     ///< the plan itself says it
  };
  /// Says what a part of an output holds. If inputs have parts, rank r takes part r of each input.
  enum class Holds : uint8_t {
    sum,      ///< the sum of all inputs
    each,     ///< the input of rank r, in part r
    root,     ///< the input of the root
    sender,   ///< the input of one rank, which the program chooses
    post,     ///< the sum that Extension::post lists
    nothing,  ///< any value, because nothing is promised
    unknown   ///< the collective has no row, see unknown_collective
  };
  /// Says which ranks' outputs hold the result.
  enum class At : uint8_t { all, root };
  /// Says on which ranks input and output of a plan in place are one memory.
  enum class InPlace : uint8_t {
    always,  ///< on all ranks
    by_use   ///< on the ranks that use only one of the two, see is_one_storage()
  };

  std::string_view word;
  Cut input = Cut::own, output = Cut::own;
  Holds holds = Holds::unknown;
  At at = At::all;
  InPlace in_place = InPlace::by_use;

  /// Returns whether the name alone determines the layout and the result. All inputs then have one size, and
  /// so have all outputs. Input and output consist of parts of equal size, see segmentation(). A plan may
  /// process them piece by piece, each time the same range of every part, with the same result.
  constexpr bool is_standard() const { return holds != Holds::unknown && !has_free_sizes(); }
  /// Returns whether the author chooses how many chunks each buffer has.
  constexpr bool has_free_sizes() const { return holds == Holds::post || holds == Holds::nothing; }
  /// Returns whether parts of outputs are sums of several inputs. A plan's own post may have sums, too.
  constexpr bool reduces() const {
    switch (holds) {
      case Holds::sum:
        return true;
      case Holds::each:
      case Holds::root:
      case Holds::sender:
      case Holds::post:
      case Holds::nothing:
      case Holds::unknown:
        return false;
    }
    return false;
  }
  constexpr bool has_root() const { return only_root_sends() || only_root_receives(); }
  /// Returns whether the outputs are made of the root's input alone. The other ranks' inputs may be absent.
  constexpr bool only_root_sends() const { return holds == Holds::root; }
  constexpr bool only_root_receives() const { return at == At::root; }
  /// Returns whether the program chooses which rank sends to which.
  constexpr bool leaves_sender_open() const { return holds == Holds::sender; }
  /// Returns whether a plan that is not in place must leave its inputs unchanged.
  constexpr bool keeps_inputs() const { return holds != Holds::nothing; }
  /// Returns whether every plan of this collective writes all of every output.
  constexpr bool fills_outputs() const {
    return is_standard() && !leaves_sender_open() && !only_root_receives();
  }
  /// Returns whether an in-place call that reads the outputs of the previous call writes the same outputs
  /// again.
  constexpr bool repeats_in_place() const { return only_root_sends() || input_is_part(); }

  constexpr uint64_t input_parts(uint64_t ranks) const { return input == Cut::parts ? ranks : 1; }
  constexpr uint64_t output_parts(uint64_t ranks) const { return output == Cut::parts ? ranks : 1; }
  /// Returns whether, in place, the input of a rank is this rank's part of its output.
  constexpr bool input_is_part() const { return input == Cut::whole && output == Cut::parts; }
  /// Returns whether, in place, the output of a rank is this rank's part of its input.
  constexpr bool output_is_part() const { return input == Cut::parts && output == Cut::whole; }
  /// Returns whether the size of a message is the size of the output. For all other collectives it is the
  /// size of the input.
  constexpr bool counts_output() const { return input_is_part(); }
};

inline constexpr CollectiveInfo collective_table[] = {
#define CHORALE_COLLECTIVE(word, input, output, holds, at, in_place, nccl) \
  {#word, \
   CollectiveInfo::Cut::input, \
   CollectiveInfo::Cut::output, \
   CollectiveInfo::Holds::holds, \
   CollectiveInfo::At::at, \
   CollectiveInfo::InPlace::in_place},
#include "chorale/collectives.def"
};

/// Describes a collective without a row. A plan of such a name states its result itself, or states none.
inline constexpr CollectiveInfo unknown_collective{};

/// Returns the row of a collective; unknown_collective if there is none.
constexpr const CollectiveInfo& collective_info(std::string_view word) {
  for (const CollectiveInfo& row : collective_table)
    if (row.word == word) return row;
  return unknown_collective;
}

constexpr bool is_standard(std::string_view collective) { return collective_info(collective).is_standard(); }
/// Returns whether the collective combines elements of several ranks.
constexpr bool collective_reduces(std::string_view collective) {
  return collective_info(collective).reduces();
}

/// Lists the words of the standard collectives.
inline constexpr auto standard_collectives = [] {
  constexpr auto standard = [](const CollectiveInfo& row) { return row.is_standard(); };
  constexpr auto count = std::count_if(std::begin(collective_table), std::end(collective_table), standard);
  std::array<std::string_view, size_t(count)> words;
  size_t position = 0;
  for (const CollectiveInfo& row : collective_table)
    if (row.is_standard()) words[position++] = row.word;
  return words;
}();

/// Lists, for each part of an output, the inputs whose sum it is. They come from Extension::post if that is
/// not empty, else from the collective. A part is a segment of segmentation(). The plan must outlive this
/// object.
class Outcome {
 public:
  explicit Outcome(const Plan& plan) : Outcome(plan, collective_info(plan.collective)) {}
  /// \param row  the row of the plan's collective
  Outcome(const Plan& plan, const CollectiveInfo& row)
      : plan_(&plan),
        holds_(plan.extension.post.empty() ? row.holds : Holds::post),
        is_known_(holds_ == Holds::post ? !plan.extension.post.empty() : row.is_standard()),
        only_root_receives_(holds_ != Holds::post && row.only_root_receives()),
        input_in_parts_(row.input == CollectiveInfo::Cut::parts) {}

  /// Returns false if the plan does not say what it computes.
  bool is_known() const { return is_known_; }
  /// Returns whether the collective promises something of the output of `rank`.
  bool promises(uint32_t rank) const { return !only_root_receives_ || rank == plan_->extension.root; }
  /// Returns whether the program chooses which rank sends to which. An output that is written then holds the
  /// whole input of some rank.
  bool leaves_sender_open() const { return holds_ == Holds::sender; }

  /// Returns whether every part that the collective itself promises is the sum of one part of all inputs.
  bool reduces() const { return holds_ == Holds::sum; }
  /// Returns which part of each input goes into the output of `rank`. Extension::post does not use it.
  uint64_t input_part(uint32_t rank) const { return input_in_parts_ ? rank : 0; }

  /// Calls visit(Contribution) for each input part in the sum that part `part` of `rank`'s output holds.
  /// Makes no call if nothing is promised there.
  /// \param sender  the rank whose input the output holds. Used only if leaves_sender_open()
  template <class Visit>
  void for_each(uint32_t rank, uint64_t part, uint32_t sender, Visit&& visit) const {
    if (!promises(rank)) return;
    const uint64_t own = input_part(rank);
    switch (holds_) {
      case Holds::sum:
        for (uint32_t of = 0; of < plan_->ranks(); ++of) visit(Contribution{of, own});
        return;
      case Holds::each:
        return visit(Contribution{uint32_t(part), own});
      case Holds::root:
        return visit(Contribution{plan_->extension.root, own});
      case Holds::sender:
        return visit(Contribution{sender, own});
      case Holds::post: {
        const auto& post = plan_->extension.post;
        if (rank >= post.size() || part >= post[rank].size()) return;
        for (const Contribution& from : post[rank][part]) visit(from);
        return;
      }
      case Holds::nothing:
      case Holds::unknown:
        return;
    }
  }

 private:
  using Holds = CollectiveInfo::Holds;

  const Plan* plan_;
  Holds holds_;
  bool is_known_, only_root_receives_, input_in_parts_;
};

}  // namespace chorale
