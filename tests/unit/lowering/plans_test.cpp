/// \file
/// These tests run the device programs of whole plans, and compare with the result that the collective must
/// give.

#include <cctype>
#include <chorale/json.hpp>
#include <system_error>

#include "tests/unit/lowering/bound_ranks.hpp"

namespace chorale::test {
namespace {

/// Returns the plans to run. Of the plans for eight ranks, which take the most time, it leaves out those that
/// differ from another one only in their number of thread blocks.
std::vector<std::filesystem::path> plan_files() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"plans/shipped", "../shared/mscclpp-plans"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder, none)) {
      const std::string name = entry.path().filename().string();
      const bool ours = std::string_view(folder) == "plans/shipped";
      if (name.find("_quantised_") != name.npos) continue;  // tests/cpu/codecs_test.cpp runs them
      const bool small = name.starts_with("single_node-") && name.find("__n8") == std::string::npos;
      const bool repeats = name.ends_with("_8.json") && differs_only_in_blocks(entry.path());
      if (name.ends_with(".json") && (ours || small) && !repeats) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class ProgramsOf : public testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override { plan_ = load(GetParam().string()); }

  /// Expects the right result in all forms of packets.
  void expect(std::vector<uint64_t> parts, ProgramRuns runs) {
    for (const uint64_t bytes : some_sizes(plan_, parts)) {
      for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128}) {
        runs.bytes = bytes;
        runs.packet = form;
        ++runs.seed;
        EXPECT_EQ(BoundRanks(plan_, runs).run(), "")
            << bytes << " bytes, form " << int(form) << (runs.in_place ? ", in place" : "") << ", shift "
            << runs.shift << ", pages of " << runs.page_bytes << ", seed " << runs.seed;
      }
    }
  }

  Plan plan_;
};

TEST_P(ProgramsOf, give_the_result_out_of_place) { expect({1, 4, 5, 17, 250, 1025}, {}); }

TEST_P(ProgramsOf, give_the_result_in_place) { expect({1, 3, 17, 1025}, {.in_place = true}); }

TEST_P(ProgramsOf, give_the_result_at_odd_addresses) {
  expect({1, 5, 250}, {.shift = 4});
  expect({4, 17}, {.in_place = true, .shift = 7});
}

TEST_P(ProgramsOf, give_the_result_on_small_pages) {
  expect({1, 5, 1025}, {.page_bytes = 256});
  expect({17}, {.in_place = true, .page_bytes = 1});
}

TEST_P(ProgramsOf, give_the_result_unrolled) { expect({5, 1025}, {.loop_bytes = 0}); }

/// The messages take several rounds, of all shapes: the last chunks are short, or empty.
TEST_P(ProgramsOf, give_the_result_in_rounds) {
  uint64_t per_byte = 0;
  for (const ScratchUse& of : scratch_use(plan_)) per_byte = std::max(per_byte, of.per_chunk_byte());
  if (per_byte == 0) return;
  const uint64_t parts = message_segments(plan_), chunks = layout_of(plan_, 0, DType::u8).chunks_per_segment;
  for (const PacketForm form : {PacketForm::ll16, PacketForm::ll128}) {
    const uint64_t slice = form == PacketForm::ll128 && sends_packets(plan_) ? 1920 : 128;
    ProgramRuns runs{.bytes = parts * ((chunks * 6 * slice - 5 * slice / 2) / 4 * 4),
                     .in_place = form == PacketForm::ll16,
                     .packet = form,
                     .launches = 3,
                     .round_scratch = per_byte * slice};
    if (runs.bytes < plan_.min_message_size || runs.bytes > plan_.max_message_size) continue;
    const Layout whole = layout_of(plan_, runs.bytes, DType::i32, form);
    // Rounds are no shorter than the plan's smallest message.
    EXPECT_GE(in_rounds(plan_, scratch_use(plan_), whole, runs.round_scratch).rounds(),
              plan_.min_message_size == 0 ? 3u : 1u);
    EXPECT_EQ(BoundRanks(plan_, runs).run(), "") << runs.bytes << " bytes, form " << int(form);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProgramsOf, testing::ValuesIn(plan_files()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace chorale::test
