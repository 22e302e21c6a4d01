// These tests read and write plans as text. They cover round trips, the canonical form, and what the reader
// refuses.

#include <filesystem>
#include <fstream>

#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/compiler/plans.hpp"

namespace chorale {
namespace {

std::string path_of_error(const std::string& text) {
  try {
    read(text);
  } catch (const PlanError& error) {
    EXPECT_EQ(std::string(error.what()).find(error.json_path + ": "), 0u);
    return error.json_path;
  }
  return "no error";
}

/// Returns the smallest plan, with a list of operations.
std::string with_ops(const std::string& ops) {
  return R"({"name":"n","collective":"test","protocol":"Simple","inplace":false,"gpus":[{"id":0,"input_chunks":1,)"
         R"("output_chunks":1,"scratch_chunks":0,"threadblocks":[{"id":0,"ops":[)" +
         ops + R"(],"channels":[]}],"channels":[],"remote_buffers":[]}]})";
}

TEST(Json, GivenPlansSurviveARoundTrip) {
  const std::vector<std::filesystem::path> files = given_plans();
  if (files.empty()) GTEST_SKIP() << "no ../shared/mscclpp-plans and no CHORALE_SHARED";
  EXPECT_EQ(files.size(), 112u);
  for (const std::filesystem::path& file : files) {
    const Plan plan = load(file);
    const std::string once = write(plan);
    EXPECT_EQ(write(read(once)), once) << file;
  }
}

TEST(Json, GivenPlansPassTheChecksButOne) {
  const std::vector<std::filesystem::path> files = given_plans();
  if (files.empty()) GTEST_SKIP() << "no ../shared/mscclpp-plans and no CHORALE_SHARED";
  for (const std::filesystem::path& file : files) {
    Plan plan = load(file);
    // This plan signals on channels 0 and 1, and waits on 2 and 3.
    const std::string name = file.stem();
    const bool crossed = name == "unit_tests-signal_wait-signal_wait_fuse_test";
    const Diagnostics findings = check(plan);
    EXPECT_EQ(findings.empty(), !crossed) << name << "\n" << render(plan, findings);
    if (crossed) continue;
    // Instances of operations on different chunks may overlap, so some are races.
    const Diagnostics bugs = compile(plan, {.instances = 2, .allow = {std::string(all_proofs)}});
    EXPECT_EQ(render(plan, bugs), "") << name;
    EXPECT_EQ(write(read(write(plan))), write(plan));
  }
}

TEST(Json, OneOfEverythingSurvivesARoundTrip) {
  const Plan plan = rich();
  const std::string once = write(plan);
  const Plan again = read(once);
  EXPECT_EQ(write(again), once);
  EXPECT_EQ(again.name, plan.name);
  EXPECT_EQ(again.source, plan.source);
  EXPECT_EQ(again.extension.post, plan.extension.post);
  EXPECT_EQ(again.extension.verified, R"({"lanes":[1.5e3,-2,null,true]})");
  EXPECT_EQ(again.line_of(again.gpus[0].threadblocks[0].ops[0]).line, 2u);
  EXPECT_EQ(again.gpus[0].threadblocks[0].ops[5].body, 2u);
}

TEST(Json, OneOperationPerLine) {
  const std::string whole = write(rich());
  EXPECT_NE(
      whole.find("\n            {\"name\":\"copy\",\"src_buff\":[{\"type\":\"i\",\"index\":0,\"size\":1}],"
                 "\"dst_buff\":[{\"type\":\"o\",\"index\":0,\"size\":1}],\"at\":1},\n"),
      std::string::npos);
  EXPECT_NE(
      whole.find("\n            "
                 "{\"name\":\"pipeline\",\"iter_context\":{\"unit_size\":1024,\"num_chunks\":2},\"ops\":[\n"
                 "              {\"name\":\"pws\","),
      std::string::npos);
  EXPECT_NE(whole.find("\n            ],\"at\":0},\n"), std::string::npos);
}

TEST(Json, AnOperationAlone) {
  const Plan plan = rich();
  EXPECT_EQ(text(plan, 0), R"({"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],)"
                           R"("dst_buff":[{"type":"o","index":0,"size":1}]})");
  EXPECT_EQ(text(plan, 2),
            R"({"name":"re","src_buff":[{"type":"i","index":0,"size":1},{"type":"i","index":1,"size":1}],)"
            R"("dst_buff":[{"type":"i","index":0,"size":1}],"tbg_info":{"tb_id":1,"tbg_size":4},)"
            R"("reduce_op":"max"})");
  // The local source of a switch operation names its rank; a switch reduction is written with operand lists.
  EXPECT_EQ(text(plan, 3),
            R"({"name":"gstore","src_buff":[{"rank":0,"type":"i","index":0,"size":1}],)"
            R"("dst_buff":[{"switch_channel_id":0,"index":3,"size":1}],"channel_type":"switch"})");
  EXPECT_EQ(text(plan, 4),
            R"({"name":"glre","src_buff":[{"switch_channel_id":0,"index":3,"size":1}],)"
            R"("dst_buff":[{"type":"i","index":0,"size":1}],"channel_type":"switch","reduce_op":"sum"})");
  EXPECT_EQ(text(plan, 8), R"({"name":"barrier","barrier_id":7,"num_threadblocks":2})");
}

TEST(Json, UnknownKeysAreKept) {
  const std::string plan =
      R"({"top":{"a":[1,2.50]},"name":"n","collective":"test","protocol":"LL","inplace":false,"gpus":[
    {"id":0,"input_chunks":1,"output_chunks":1,"scratch_chunks":1,"g":"x","threadblocks":[
      {"id":0,"t":null,"ops":[{"o":-1,"name":"copy","src_buff":[{"type":"i","index":0,"size":1,"e":"s"}],
        "dst_buff":[{"type":"o","index":0,"size":1}],"at":99}],"channels":[]}],
      "channels":[{"c":1,"channel_type":"memory","connected_to":[]}],"remote_buffers":[]}],
    "chorale":{"version":"1.0","later":{}}})";
  const std::string written = write(read(plan));
  EXPECT_EQ(write(read(written)), written);
  for (const char* kept : {R"("top":{"a":[1,2.50]})", R"("g":"x")", R"("t":null)", R"("o":-1,"at":99})",
                           R"("size":1,"e":"s"})", R"("connected_to":[],"c":1})", R"("later":{})"}) {
    EXPECT_NE(written.find(kept), std::string::npos) << kept << "\n" << written;
  }
}

TEST(Json, Codecs) {
  Plan plan = two_ranks();
  plan.extension.codecs = {{CodecFormat::fp8_e5m2, 32}, {CodecFormat::int8, 1024}};
  add(block(plan), Opcode::copy, {coded(scratch(3), 1)}, {scratch(4)});
  const std::string written = write(plan);
  EXPECT_NE(written.find(R"("codecs": [{"format":"fp8_e5m2","block":32,"scale":"f32"},)"
                         R"({"format":"int8","block":1024,"scale":"f32"}])"),
            std::string::npos);
  const Plan again = read(written);
  EXPECT_EQ(again.extension.codecs, plan.extension.codecs);
  EXPECT_EQ(text(again, 0), R"({"name":"copy","src_buff":[{"type":"s","index":3,"size":1,"codec":1}],)"
                            R"("dst_buff":[{"type":"s","index":4,"size":1}]})");
  EXPECT_EQ(write(again), written);
  // In a plan without codecs it is a key that nobody knows.
  const Plan other = read(with_ops(R"({"name":"copy","src_buff":[{"type":"i","index":0,"size":1,"codec":7}],)"
                                   R"("dst_buff":[{"type":"o","index":0,"size":1}]})"));
  EXPECT_EQ(other.gpus[0].threadblocks[0].operands[0].codec, 0u);
  EXPECT_NE(text(other, 0).find(R"("codec":7)"), std::string::npos);
}

TEST(Json, OlderFiles) {
  const Plan plan = read(R"({"name":"n","collective":"allreduce","protocol":"Simple","inplace":true,"gpus":[
    {"id":0,"input_chunks":1,"output_chunks":0,"scratch_chunks":1,"threadblocks":[],
     "channels":[{"buff":"s","channel_type":"switch","rank_groups":[{"size":1,"ranks":[0]}]}],"remote_buffers":[]}]})");
  EXPECT_EQ(plan.gpus[0].channels[0].buffer, BufferKind::scratch);
  EXPECT_EQ(plan.threads_per_block, 1024u);
  EXPECT_EQ(plan.buffer_alignment, 16u);
  EXPECT_EQ(plan.max_message_size, UINT64_MAX);
}

TEST(Json, SwitchReductionAsMscclppWritesIt) {
  const Plan plan =
      read(with_ops(R"({"name":"glre","buffer_type":"o","buffer_offset":3,"size":2,"channel_ids":[0],)"
                    R"("dst_chunk":{"rank":0,"type":"i","index":1,"size":2},"channel_type":"switch"})"));
  EXPECT_EQ(text(plan, 0),
            R"({"name":"glre","src_buff":[{"switch_channel_id":0,"index":3,"size":2}],)"
            R"("dst_buff":[{"type":"i","index":1,"size":2}],"channel_type":"switch","reduce_op":"sum"})");
}

// These tests check the path in refusals. tests/broken shows all refusals and their messages.
TEST(Json, RefusalsKnowTheirPath) {
  EXPECT_EQ(path_of_error("[]"), "/");
  EXPECT_EQ(path_of_error("{"), "/");
  EXPECT_EQ(path_of_error(with_ops(R"({"name":"cpy"})")), "/gpus/0/threadblocks/0/ops/0/name");
  EXPECT_EQ(path_of_error(with_ops(R"({"name":"nop"},{"name":"nop","ops":[[1,2,x]]})")),
            "/gpus/0/threadblocks/0/ops/1/ops/0/2");
  EXPECT_EQ(path_of_error(with_ops(R"({"name":"nop","a":1,"b":{},"a":2})")), "/gpus/0/threadblocks/0/ops/0");
}

TEST(Json, LoadNamesTheFile) {
  try {
    load("/nowhere/plan.json");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot read /nowhere/plan.json: No such file or directory");
  }
  try {
    load("/");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot read /: it is a folder");
  }
  try {
    load("/dev/null");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot read /dev/null: it is a device, expected a file or a pipe");
  }
  try {
    load("/proc/self/mem");  // a file that opens, but whose first byte cannot be read
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot read /proc/self/mem: Input/output error");
  }
  const std::string empty = testing::TempDir() + "chorale_empty.json";
  std::ofstream(empty).close();
  try {
    load(empty);
    FAIL();
  } catch (const PlanError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(empty + ": /: line 1", 0), 0u) << error.what();
    EXPECT_EQ(error.json_path, "/");
  }
  std::filesystem::remove(empty);
}

}  // namespace
}  // namespace chorale
