#include "chorale/config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "chorale/did_you_mean.hpp"
#include "chorale/packet_form.hpp"
#include "executor/run/switch_channels.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

/// Holds a file that is removed when the test ends.
struct IniFile {
  explicit IniFile(const std::string& text)
      : path(testing::TempDir() + "chorale-" + std::to_string(getpid()) + ".ini") {
    std::ofstream(path) << text;
  }
  ~IniFile() { std::remove(path.c_str()); }
  const std::string path;
};

Config read(const std::string& ini, std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return Config::read(ini, environment.data());
}

std::string failure(const std::string& ini, std::vector<const char*> environment) {
  try {
    read(ini, environment);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Config, Defaults) {
  EXPECT_EQ(read("", {"HOME=/", "PATH=/bin"}).describe(),
            "timeout = 30s  (default)\n"
            "workers = 0  (default)\n"
            "port = 0  (default)\n"
            "host = auto  (default)\n"
            "secret = none  (default)\n"
            "seed = off  (default)\n"
            "backend = cpu  (default)\n"
            "packet = auto  (default)\n"
            "switch_channels = peer  (default)\n"
            "log_level = warning  (default)\n"
            "trace = 0  (default)\n"
            "bindings = 256  (default)\n"
            "round_scratch = 32M  (default)\n"
            "scratch = 1G  (default)\n"
            "max_blocks = 0  (default)\n"
            "require_proof = false  (default)\n");
}

TEST(Config, EnvironmentWinsOverTheFileAndCodeOverBoth) {
  const IniFile file("# a comment\ntimeout = 500ms\nworkers = 3\nseed = 17\nrequire_proof = yes\n");
  Config config =
      read(file.path, {"CHORALE_WORKERS=5", "CHORALE_PACKET=ll16", "CHORALE_SEED=off", "CHORALE_CONFIG=x"});
  config.packet = "ll8";
  EXPECT_EQ(config.describe(), "timeout = 500ms  (" + file.path +
                                   ")\n"
                                   "workers = 5  (CHORALE_WORKERS)\n"
                                   "port = 0  (default)\n"
                                   "host = auto  (default)\n"
                                   "secret = none  (default)\n"
                                   "seed = off  (CHORALE_SEED)\n"
                                   "backend = cpu  (default)\n"
                                   "packet = ll8  (code)\n"
                                   "switch_channels = peer  (default)\n"
                                   "log_level = warning  (default)\n"
                                   "trace = 0  (default)\n"
                                   "bindings = 256  (default)\n"
                                   "round_scratch = 32M  (default)\n"
                                   "scratch = 1G  (default)\n"
                                   "max_blocks = 0  (default)\n"
                                   "require_proof = true  (" +
                                   file.path + ")\n");
  EXPECT_EQ(config.local().timeout, 500ms);
  EXPECT_EQ(config.join().workers, 5u);
}

TEST(Config, VariablesOfOtherPartsAreNoSettings) {
  EXPECT_EQ(read("", {"CHORALE_NCCL_FALLBACK=/usr/lib/libnccl.so.2", "CHORALE_NCCL_COPIES=always",
                      "CHORALE_NCCL_PLANS=plans.json"})
                .describe(),
            read("", {}).describe());
}

TEST(Config, UnknownNamesAreRefusedWithASuggestion) {
  EXPECT_EQ(failure("", {"CHORALE_TIMOUT=3s"}),
            "unknown environment variable CHORALE_TIMOUT, did you mean 'CHORALE_TIMEOUT'?");
  EXPECT_EQ(failure("", {"CHORALE_SOMETHING_QUITE_DIFFERENT=1"}),
            "unknown environment variable CHORALE_SOMETHING_QUITE_DIFFERENT");
  const IniFile file("[executor]\nworker = 3\n");
  EXPECT_EQ(failure(file.path, {}), file.path +
                                        ": unknown setting 'executor.worker', did you mean 'workers'? "
                                        "Settings are not in a [section]");
  const IniFile flat("worker = 3\n");
  EXPECT_EQ(failure(flat.path, {}), flat.path + ": unknown setting 'worker', did you mean 'workers'?");
}

TEST(Config, AByteOrderMarkIsNoPartOfTheFile) {
  const IniFile file(
      "\xef\xbb\xbf"
      "timeout = 7s\n");
  EXPECT_EQ(read(file.path, {}).timeout.value, std::chrono::seconds(7));
}

TEST(Config, BadValuesAreRefusedByName) {
  EXPECT_EQ(failure("", {"CHORALE_TIMEOUT=30"}),
            "CHORALE_TIMEOUT = 30: '30' is no duration: it should be like 30s, 500ms, 20us, 7ns or 2min, "
            "above 0, or 'off'");
  EXPECT_EQ(failure("", {"CHORALE_PACKET=l16"}),
            "CHORALE_PACKET = l16: 'l16' is none of auto, ll8, ll16, ll128, did you mean 'll16'?");
  EXPECT_EQ(failure("", {"CHORALE_SWITCH_CHANNELS=nvls"}),
            "CHORALE_SWITCH_CHANNELS = nvls: 'nvls' is none of peer, multicast");
  EXPECT_EQ(failure("", {"CHORALE_WORKERS=-1"}), "CHORALE_WORKERS = -1: '-1' is no number from 0 to 4096");
  EXPECT_EQ(failure("", {"CHORALE_SEED=abc"}),
            "CHORALE_SEED = abc: 'abc' is neither a 64-bit number nor 'off'");
  EXPECT_EQ(failure("", {"CHORALE_REQUIRE_PROOF="}),
            "CHORALE_REQUIRE_PROOF = : '' is neither true nor false");
  const IniFile twice("timeout = 10s\nseed = 3\ntimeout = 20s\n");
  EXPECT_EQ(failure(twice.path, {}),
            twice.path + ": timeout is set twice, to '10s' and to '20s': keep one of the lines");
  const IniFile zero(std::string("timeout = 10s\0\n", 15));
  EXPECT_EQ(failure(zero.path, {}), zero.path + ": it contains a zero byte: save it as UTF-8, not as UTF-16");
  const IniFile file("seed = x\n");
  EXPECT_EQ(failure(file.path, {}), file.path + ": seed = x: 'x' is neither a 64-bit number nor 'off'");
}

/// Neither describe() nor an error shows the secret.
TEST(Config, ASecretIsNeverShown) {
  const Config config = read("", {"CHORALE_SECRET=hunter2"});
  EXPECT_EQ(config.join().secret, "hunter2");
  EXPECT_NE(config.describe().find("secret = set  (CHORALE_SECRET)\n"), std::string::npos);
  EXPECT_EQ(config.describe().find("hunter2"), std::string::npos);
  EXPECT_NE(read("", {"CHORALE_SECRET=file:/etc/s"}).describe().find("secret = set, by file:/etc/s  ("),
            std::string::npos);
  EXPECT_EQ(read("", {"CHORALE_SECRET=none"}).join().secret, "");

  const IniFile twice("secret = hunter2\nsecret = hunter3\n");
  EXPECT_EQ(failure(twice.path, {}), twice.path + ": secret is set twice: keep one of the lines");
  const IniFile line("secret hunter2\n");
  EXPECT_EQ(failure(line.path, {}), line.path + ": a line with 'secret' is not 'secret = value'");
  EXPECT_TRUE(
      failure("", {"CHORALE_SECRET="}).starts_with("CHORALE_SECRET: the secret is empty; make a secret"));
  const std::string long_one = "CHORALE_SECRET=" + std::string(5000, 'x');
  EXPECT_EQ(failure("", {long_one.c_str()}).find("xx"), std::string::npos);
}

TEST(Config, AFileWithASecretIsItsOwnersAlone) {
  const IniFile file("secret = hunter2\n");
  chmod(file.path.c_str(), 0644);
  const std::string said = failure(file.path, {});
  EXPECT_NE(said.find("chmod 600 " + file.path), std::string::npos) << said;
  EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  chmod(file.path.c_str(), 0600);
  EXPECT_EQ(failure(file.path, {}), "none");
  const IniFile named("secret = file:/etc/chorale-secret\n");
  EXPECT_EQ(failure(named.path, {}), "none");  // nothing in it is secret
}

TEST(Config, MulticastIsAskedForByNameAlone) {
  EXPECT_FALSE(wants_multicast(Config(), nullptr));
  EXPECT_FALSE(wants_multicast(Config(), "1"));
  EXPECT_FALSE(wants_multicast(Config(), "0"));
  const Config asked = read("", {"CHORALE_SWITCH_CHANNELS=multicast"});
  EXPECT_TRUE(wants_multicast(asked, nullptr));
  for (const char* const on : {"", "1", "2", "0x1"}) EXPECT_TRUE(wants_multicast(asked, on)) << on;
}

TEST(Config, MulticastIsRefusedWhereItIsTurnedOff) {
  const auto said = [](const Config& config, const char* nvls) {
    return message_of_error<UsageError>([&] { wants_multicast(config, nvls); });
  };
  const Config asked = read("", {"CHORALE_SWITCH_CHANNELS=multicast"});
  EXPECT_EQ(
      said(asked, "0"),
      "switch_channels = multicast (CHORALE_SWITCH_CHANNELS), but NCCL_NVLS_ENABLE=0 turns NVLink multicast "
      "off: take switch_channels = peer, or unset NCCL_NVLS_ENABLE if this machine may use multicast");
  for (const char* const off : {"00", "0x0", " 0", "off", "no", "false"})
    EXPECT_NE(said(asked, off), "") << off;
  Config wrong;
  wrong.switch_channels = "nvls";
  EXPECT_EQ(said(wrong, nullptr), "switch_channels 'nvls': neither 'peer' nor 'multicast'");
}

TEST(Config, KnowsEveryFormOfPackets) {
  for (const std::string_view form : packet_form_names) {
    const std::string variable = "CHORALE_PACKET=" + std::string(form);
    EXPECT_EQ(failure("", {variable.c_str()}), "none");
    ASSERT_TRUE(packet_form_of(form)) << form;
    EXPECT_EQ(packet_form_names[size_t(*packet_form_of(form))], form);
  }
  for (const std::string_view none : {"", "ll", "LL8", "ll12", "ll1280"})
    EXPECT_FALSE(packet_form_of(none)) << none;
}

TEST(Config, IniFilesThatAreNone) {
  EXPECT_EQ(failure("/no/such/file", {}),
            "CHORALE_CONFIG: cannot read /no/such/file: No such file or directory");
  EXPECT_EQ(failure("/", {}), "CHORALE_CONFIG: cannot read /: it is a folder");
  // Has no end.
  EXPECT_EQ(failure("/dev/zero", {}),
            "CHORALE_CONFIG: cannot read /dev/zero: it is a device, expected a plain file");
  const IniFile file("");
  EXPECT_EQ(failure(file.path, {}), "none");
  std::filesystem::resize_file(file.path, uint64_t{10} << 30);
  EXPECT_EQ(failure(file.path, {}), "CHORALE_CONFIG: cannot read " + file.path +
                                        ": it has 10737418240 bytes, expected at most 1048576");
  std::filesystem::remove(file.path);
  ASSERT_EQ(mkfifo(file.path.c_str(), 0600), 0);  // waits for a writer
  EXPECT_EQ(failure(file.path, {}),
            "CHORALE_CONFIG: cannot read " + file.path + ": it is a pipe or a socket, expected a plain file");
}

TEST(Config, Durations) {
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("20us"), 20us);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("2min"), 2min);
  EXPECT_EQ(parse_duration("off"), 0ns);
  for (const char* bad :
       {"", "s", "0s", "-1s", "3", "3 s", "3h", "99999999999999s", "99999999999999999999s"}) {
    EXPECT_THROW(parse_duration(bad), UsageError) << bad;
  }
}

TEST(DidYouMean, NearestKnownWord) {
  const std::string_view known[] = {"timeout", "workers", "seed", "backend"};
  EXPECT_EQ(did_you_mean("timeuot", known), ", did you mean 'timeout'?");  // swapped
  EXPECT_EQ(did_you_mean("worker", known), ", did you mean 'workers'?");   // dropped
  EXPECT_EQ(did_you_mean("seeed", known), ", did you mean 'seed'?");       // inserted
  EXPECT_EQ(did_you_mean("BACKEND", known), ", did you mean 'backend'?");  // case
  EXPECT_EQ(did_you_mean("nothing", known), "");
  EXPECT_EQ(did_you_mean("", known), "");
  EXPECT_EQ(did_you_mean("x", std::span<const std::string_view>()), "");
}

}  // namespace
}  // namespace chorale::test
