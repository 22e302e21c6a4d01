// These tests check host schedules in plan files.

#include "chorale/json.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "chorale/schedule/schedule.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

TEST(HostJson, OneOfEverythingSurvivesARoundTrip) {
  const std::string text = plan_with(one_of_everything());
  const Plan plan = read(text);
  ASSERT_TRUE(plan.extension.schedule);
  EXPECT_EQ(write(plan), text);
  std::ostringstream binary;
  write_cbor(plan, binary);
  EXPECT_EQ(write(read(binary.str())), text);
}

TEST(HostJson, MistakesNameTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"tensors":[]})", R"(/chorale/host: the key "body" is missing)"},
      {R"({"tensors":[],"body":[{"op":"jump"}]})",
       "/chorale/host/body/0/op: \"jump\", expected alloc, free, share,"},
      {R"({"tensors":[],"body":[{"op":"cpoy"}]})", "did you mean 'copy'?"},
      {R"({"tensors":[],"body":[{"op":"barrier","lane":"comm"}]})",
       "/chorale/host/body/0/lane: \"comm\", expected the name of a stream"},
      {R"({"tensors":[],"body":[{"op":"mark","text":"a","txt":1}]})",
       "/chorale/host/body/0: the key \"txt\" is unknown, expected op, lane, text or at"},
      {R"({"tensors":[],"body":[{"op":"for","i":"i","lo":0,"hi":["^",1,2],"body":[]}]})",
       "/chorale/host/body/0/hi/0: \"^\", expected +, -"},
      {R"({"tensors":[],"body":[{"op":"for","i":"i","lo":0,"hi":["+",1],"body":[]}]})",
       "/chorale/host/body/0/hi: a list, expected [operator, left, right]"},
      {R"({"tensors":[],"body":[{"op":"for","i":"2i","lo":0,"hi":1,"body":[]}]})",
       "/chorale/host/body/0/i: \"2i\", expected a name of letters, digits and underscores"},
      {R"({"tensors":[{"name":"a","dtype":"f33","shape":[],"role":"in"}],"body":[]})",
       "/chorale/host/tensors/0/dtype: \"f33\", expected f32,"},
      {R"({"tensors":[{"name":"a","dtype":"f32","shape":[4],"role":"in"}],"body":[{"op":"fill","dst":["a",[1,0]],"value":0}]})",
       "/chorale/host/body/0/dst/1/0: 1, expected at most 0"},
      {R"({"tensors":[{"name":"a","dtype":"f32","shape":[4],"role":"in"},{"name":"a","dtype":"f32","shape":[4],"role":"in"}],"body":[]})",
       "/chorale/host/tensors/1/name: \"a\", expected a name that no other tensor has"},
      {R"({"flags":[{"name":"f"},{"name":"f"}],"tensors":[],"body":[]})",
       "/chorale/host/flags/1/name: \"f\", expected a name that no other flag has"},
      {R"({"lanes":["a","a"],"tensors":[],"body":[]})",
       "/chorale/host/lanes/1: \"a\", expected a name that no other stream has"},
      {R"({"lanes":["main"],"tensors":[],"body":[]})",
       "/chorale/host/lanes/0: \"main\", expected a name other than main and pool"},
      {R"({"ranks":[2,4,2],"tensors":[],"body":[]})",
       "/chorale/host/ranks/2: 2, expected each number of ranks once"},
      {R"({"params":{"ranks":1},"tensors":[],"body":[]})", "expected parameters with names other than ranks"},
      {R"({"params":{"a-b":1},"tensors":[],"body":[]})", "expected parameters with a name of letters"},
      {R"({"functions":[{"name":"f","writes":1,"reads":1},{"name":"f","writes":1,"reads":2}],"tensors":[],"body":[]})",
       "/chorale/host/functions/1/name: \"f\", expected a name that no other function has"},
      {R"({"tensors":[],"body":[],"verison":2})", "/chorale/host: the key \"verison\" is unknown"},
      {R"({"tensors":[{"name":"a","dtype":"f32","shape":[4],"role":"in"}],"body":[{"op":"group","token":1,"do":[{"op":"send","src":["a"],"peer":1,"lane":"main"}]}]})",
       "/chorale/host/body/0/do/0: the key \"lane\" is unknown, expected op, src, peer, tag, via or at"},
      {R"({"tensors":[],"body":[{"op":"mark","text":"a","at":0}]})",
       "/chorale/host/body/0/at: 0, expected no line: there is no \"source\""},
  };
  for (const auto& [host, expected] : cases) {
    try {
      read(plan_with(host));
      ADD_FAILURE() << "accepted: " << host;
    } catch (const PlanError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace chorale::schedule
