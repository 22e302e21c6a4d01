// These tests read and write plans as CBOR. They cover round trips with JSON, one rank's part, and what the
// reader refuses.

#include <sstream>
#include <utility>

#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/compiler/plans.hpp"

namespace chorale {
namespace {

using namespace std::string_literals;

std::string cbor_of(const Plan& plan) {
  std::ostringstream bytes;
  write_cbor(plan, bytes);
  return bytes.str();
}

std::string error_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "no error";
}

/// Expects that a plan survives a round trip through CBOR, and that it can be read for each rank alone.
void survives(const Plan& plan, const std::string& name) {
  const std::string text = write(plan), bytes = cbor_of(plan);
  EXPECT_EQ(write(read(bytes)), text) << name;
  EXPECT_EQ(cbor_of(read(text)), bytes) << name;
  EXPECT_LT(bytes.size(), text.size()) << name;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (const std::string& form : {text, bytes}) {
      const Plan part = read(form, rank);
      ASSERT_EQ(part.only_rank, rank);
      for (uint32_t other = 0; other < plan.ranks(); ++other) {
        EXPECT_EQ(part.gpus[other].channels.size(), plan.gpus[other].channels.size());
        const size_t blocks = other == rank ? plan.gpus[rank].threadblocks.size() : 0;
        ASSERT_EQ(part.gpus[other].threadblocks.size(), blocks) << name;
      }
      for (size_t k = 0; k < plan.gpus[rank].threadblocks.size(); ++k)
        EXPECT_EQ(part.gpus[rank].threadblocks[k].ops.size(), plan.gpus[rank].threadblocks[k].ops.size());
    }
  }
}

TEST(Cbor, OneOfEverythingSurvivesARoundTrip) {
  Plan plan = rich();
  survives(read(write(plan)), "rich");
  plan.extension.verified = R"({"lanes":[1500.0,-2,-9223372036854775808,18446744073709551615,null,true]})";
  survives(read(write(plan)), "rich");
}

/// Numbers that fit neither an integer nor a double of CBOR keep their digits, too.
TEST(Cbor, NumbersKeepTheirDigits) {
  std::string numbers;
  for (const char* digits :
       {"0.1", "1.0", "-0.0", "1e5", "1E+2", "5e-324", "1e-400", "1.7976931348623157e308",
        "9007199254740993.0", "3.0000000000000000001", "18446744073709551616", "-9223372036854775809",
        "123456789012345678901234567890"}) {
    numbers += numbers.empty() ? "" : ",";
    numbers += digits;
  }
  const std::string text = write(two_ranks()), more = ",\"zz\":[" + numbers + "]}";
  const Plan plan = read(text.substr(0, text.rfind('}')) + more);
  ASSERT_NE(write(plan).find(numbers), std::string::npos);
  survives(plan, "numbers");
}

/// Keys that the format does not know are kept, even if it knows a key of the same name elsewhere.
TEST(Cbor, AKeyOfAGpuMeansNothingAroundTheGpus) {
  Plan plan = rich();
  plan.extension.verified.clear();
  std::string text = write(plan);
  text.insert(text.find('{') + 1, R"("threadblocks":[{"id":0}],)");
  survives(read(text), "a plan with thread blocks of its own");
}

TEST(Cbor, GivenPlansSurviveARoundTrip) {
  const std::vector<std::filesystem::path> files = given_plans();
  if (files.empty()) GTEST_SKIP() << "no ../shared/mscclpp-plans and no CHORALE_SHARED";
  for (const std::filesystem::path& file : files) survives(load(file), file.stem());
}

TEST(Cbor, ShippedPlansSurviveARoundTrip) {
  const std::filesystem::path folder = std::filesystem::path(CHORALE_SOURCE_DIR) / "plans/shipped";
  // Larger plans differ from these by more ranks and thread blocks of the same form.
  constexpr uintmax_t most_bytes = 150000;
  size_t tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.file_size() > most_bytes) continue;
    survives(load(entry.path()), entry.path().stem());
    ++tried;
  }
  EXPECT_GT(tried, 100u);
}

TEST(Cbor, IsRecognisedByItsFirstByte) {
  const std::string bytes = cbor_of(two_ranks());
  EXPECT_EQ(bytes.substr(0, 3), "\xd9\xd9\xf7");
  EXPECT_EQ(write(read(bytes.substr(3))), write(two_ranks())) << "the tag may be left out";
}

TEST(Cbor, OnePartIsNeitherCheckedNorWritten) {
  const Plan part = read(cbor_of(two_ranks()), 1);
  EXPECT_THROW(check(part), std::invalid_argument);
  EXPECT_THROW(write(part), std::invalid_argument);
  EXPECT_THROW(cbor_of(part), std::invalid_argument);
  EXPECT_THROW(read(cbor_of(two_ranks()), 2), PlanError);
}

TEST(Cbor, WhatOtherRanksDoIsNotParsed) {
  std::string bytes = cbor_of(two_ranks());
  // The corrupted byte comes after the head of rank 1's byte string.
  const size_t blocks = bytes.rfind("threadblocks") + 12;
  ASSERT_EQ(bytes.substr(blocks, 2), "\xd8\x18");
  bytes[blocks + 5] = char(0xff);  // after tag, head and length
  EXPECT_NO_THROW(read(bytes, 0));
  EXPECT_THROW(read(bytes, 1), PlanError);
  EXPECT_THROW(read(bytes), PlanError);
}

TEST(Cbor, EveryCutIsAnError) {
  const std::string bytes = cbor_of(rich());
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_THROW(read(bytes.substr(0, size)), PlanError) << size << " bytes";
}

TEST(Cbor, RefusesWhatIsMalformed) {
  const std::string deep(100, char(0x81));
  for (const auto& [bytes, message] : {
           std::pair("\xa1"s, "byte 1: this is not CBOR: found the end, expected an item"s),
           std::pair("\xbf"s,
                     "byte 1: this is not CBOR: found the end, expected an item or the end of a list"s),
           std::pair("\xa0\x00"s,
                     "byte 1: this is not CBOR: found the byte 0, expected the end of the plan"s),
           std::pair("\xa1\x01\x01"s,
                     "byte 1: this is not CBOR: found the byte 1, expected a key that is a string"s),
           std::pair("\xa1\x61\x61\xfc"s, "byte 3: this is not CBOR: found the byte 252, expected an item"s),
           std::pair("\xa1\x61\x61\xf7"s,
                     "byte 3: this is not CBOR: found the byte 247, expected an item that JSON has"s),
           std::pair("\xa1\x61\x61\x41\x00"s,
                     "byte 3: this is not CBOR: found the byte 65, expected an item that JSON has"s),
           std::pair("\xa1\x61\x61\xd8\x18\x41\x00"s,
                     "byte 3: this is not CBOR: found the byte 216, expected no tag but 24 around thread "
                     "blocks and 262 "
                     "around digits"s),
           std::pair("\xa1\x61\x61\xd9\x01\x06\x01"s,
                     "byte 6: this is not CBOR: found the byte 1, expected a byte string"s),
           std::pair("\xa1\x61\x61\xd9\x01\x06\x42[]"s,
                     "byte 6: this is not CBOR: found the byte 66, expected the digits of a number"s),
           std::pair("\xa1\x61\x61\xd9\x01\x06\x43NaN"s,
                     "byte 6: this is not CBOR: found the byte 67, expected the digits of a number"s),
           std::pair("\xa1\x61\x61\x7f\xff"s,
                     "byte 3: this is not CBOR: found the byte 127, expected a string in one piece"s),
           std::pair("\xa1\x61\x61\x65\x61"s,
                     "byte 5: this is not CBOR: found the end, expected 5 bytes of a string"s),
           std::pair("\xa1\x61\xff\x01"s,
                     "byte 2: this is not CBOR: found the byte 255, expected a key in UTF-8"s),
           std::pair("\xa1\x61\x61\xfa\x7f\x80\x00\x00"s,
                     "byte 3: this is not CBOR: found the byte 250, expected a finite number"s),
           std::pair("\xa2\x61\x61\x01\x61\x61\x01"s, "byte 0: the key \"a\" twice in one object"s),
           std::pair("\x80"s, "/: a list, expected an object"s),
           std::pair(deep, "byte 64: nesting deeper than 64 levels"s),
       }) {
    EXPECT_EQ(error_of(bytes), message);
  }
}

}  // namespace
}  // namespace chorale
