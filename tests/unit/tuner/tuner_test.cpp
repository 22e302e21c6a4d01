#include "chorale/tuner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/tiles/support.hpp"

namespace chorale {
namespace {

using namespace test;
using Found = TuneTable::Found;

constexpr std::chrono::minutes watchdog{5};  ///< ends only a trial that hangs

TuneKey key_of(uint64_t bytes) {
  TuneKey key;
  key.kind = "sendrecv";
  key.world = 2;
  key.bytes = bytes;
  return key;
}

TEST(Tuner, TablesReadAsTheyWereWritten) {
  TuneTable table;
  TuneKey other = key_of(1024);
  other.dtype = DType::bf16;
  other.rows = 7;
  other.device = "NVIDIA \"H200\"";
  other.backend = "cuda";
  other.variant = "fp8";
  table.set(other, {.blocks = 8, .threads = 512, .slots = 4, .mover = "plan", .plan = "allreduce_ring"},
            1234.5);
  table.set(key_of(4096), {.blocks = 2}, 10);
  table.set(key_of(64), {}, 5);
  table.set_failure(key_of(64), {.blocks = 99}, "it \"hung\"\n");
  const std::string text = table.text();
  EXPECT_EQ(TuneTable::parse(text).text(), text);

  const std::string path = testing::TempDir() + "chorale_tuner_" + std::to_string(getpid()) + ".json";
  table.save(path);
  EXPECT_EQ(TuneTable::load(path).text(), text);
  std::remove(path.c_str());
  try {
    TuneTable::load(path);
    ADD_FAILURE() << "there is no such file";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "cannot read " + path + ": No such file or directory");
  }
}

TEST(Tuner, TablesThatAreNoneSayWhere) {
  const auto said = [](const std::string& text) {
    return message_of_error<UsageError>([&] { TuneTable::parse(text); });
  };
  const std::string key =
      R"("key":{"kind":"k","world":2,"dtype":"f32","bytes":1,"transport":"direct","backend":"cpu")";
  EXPECT_EQ(said("{"), "this is not JSON, as a table of the tuner must be");
  EXPECT_EQ(said("[]"), "the table: an object is expected");
  EXPECT_EQ(said(R"({"version":2,"entries":[],"failures":[]})"),
            "the table: 'version' is 2, but only 1 is supported");
  EXPECT_EQ(said(R"({"version":1,"entries":[]})"), "the table: 'failures' is missing");
  EXPECT_EQ(said(R"({"version":1,"entries":[{"ns":1}],"failures":[]})"), "/entries/0: 'key' is missing");
  EXPECT_EQ(
      said(R"({"version":1,"entries":[{"ns":1,)" + key + R"(},"config":{"blocks":-1}}],"failures":[]})"),
      "/entries/0/config: 'blocks' is -1");
  EXPECT_EQ(said(R"({"version":1,"entries":[{"ns":1,)" + key + R"(},"config":{"block":1}}],"failures":[]})"),
            "/entries/0/config: 'block' is unknown");
  EXPECT_EQ(said(R"({"version":1,"entries":7,"failures":[]})"),
            "the table: 'entries' is 7: an array is expected");
  EXPECT_EQ(said(R"({"version":1,"entries":[],"failures":{"a":1}})"),
            "the table: 'failures' is {\"a\":1}: an array is expected");
  EXPECT_EQ(said(R"({"version":1,"entries":[7],"failures":[]})"), "/entries/0: an object is expected");
  // These numbers wrap round into others.
  EXPECT_EQ(said(R"({"version":1,"entries":[{"ns":1,)" + key +
                 R"(},"config":{"blocks":4294967297}}],"failures":[]})"),
            "/entries/0/config: 'blocks' is 4294967297: it is at most 4294967295");
  const auto of_world = [&](const std::string& ranks) {
    return said(R"({"version":1,"entries":[],"failures":[{"why":"","key":{"kind":"k","world":)" + ranks +
                R"(,"dtype":"f32","bytes":1,"transport":"direct","backend":"cpu"},"config":{}}]})");
  };
  EXPECT_EQ(of_world("4294967298"), "/failures/0/key: 'world' is 4294967298: it is at most 2147483647");
  EXPECT_EQ(of_world("0"), "/failures/0/key: 'world' is 0: it is at least 1");
  // A key to which a later version has added a member is not read as an older key.
  EXPECT_EQ(said(R"({"version":1,"entries":[{"ns":1,)" + key + R"(,"nodes":2},"config":{}}],"failures":[]})"),
            "/entries/0/key: 'nodes' is unknown");
}

TEST(Tuner, ATableIsReplacedWholeOrNotAtAll) {
  const std::filesystem::path folder =
      testing::TempDir() + "chorale_tuner_" + std::to_string(getpid()) + "_folder";
  std::filesystem::create_directory(folder);
  const std::string path = folder / "table.json", link = folder / "link.json";
  TuneTable old, fresh;
  old.set(key_of(1), {.blocks = 1}, 1);
  for (uint64_t bytes = 1; bytes < 1000; ++bytes) fresh.set(key_of(bytes), {.blocks = 2}, 2);
  old.save(path);
  std::filesystem::create_symlink(path, link);
  {
    // No file can grow beyond the old one, as on a full disk.
    rlimit unlimited{};
    getrlimit(RLIMIT_FSIZE, &unlimited);
    rlimit full = unlimited;
    full.rlim_cur = 1024;
    setrlimit(RLIMIT_FSIZE, &full);
    const std::string said = thrown([&] { fresh.save(path); });
    setrlimit(RLIMIT_FSIZE, &unlimited);
    EXPECT_TRUE(
        has(said, "RLIMIT_FSIZE lets this process write files of at most 1024 bytes; raise it (ulimit -f"))
        << said;
  }
  EXPECT_EQ(TuneTable::load(path).text(), old.text());
  fresh.save(link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(TuneTable::load(path).text(), fresh.text());
  const auto entries = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2) << "nothing else is left";
  EXPECT_THROW(fresh.save(folder / "none" / "table.json"), RunError);
  std::filesystem::remove_all(folder);
}

TEST(Tuner, WhatIsNoFileIsWrittenToAndStays) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("chorale-tuner-pipe-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int pipe = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  TuneTable table;
  table.set({.kind = "sendrecv"}, {.blocks = 8}, 900);
  table.save(path);
  EXPECT_TRUE(std::filesystem::is_fifo(path)) << "no file has taken its place";
  std::string text(table.text().size(), 0);
  if (std::filesystem::is_fifo(path)) {
    EXPECT_EQ(read(pipe, text.data(), text.size()), ssize_t(text.size()));
  }
  EXPECT_EQ(text, table.text());
  close(pipe);
  std::filesystem::remove_all(folder);
}

TEST(Tuner, TimesThatAreNoNumbersAreRefused) {
  TuneTable table;
  for (const double ns : {std::nan(""), double(INFINITY), -double(INFINITY), -1.0}) {
    EXPECT_THROW(table.set(key_of(1), {}, ns), UsageError);
    const auto all = tune(
        table, key_of(1), {{.blocks = 1}},
        [ns](const TuneConfig&) {
          return Measurement{true, ns, ""};
        },
        watchdog);
    EXPECT_FALSE(all.at(0).correct);
    EXPECT_EQ(all.at(0).why, "it says that a call takes " +
                                 std::string(std::isnan(ns) ? "nan"
                                             : ns > 0       ? "inf"
                                             : ns == -1     ? "-1"
                                                            : "-inf") +
                                 " ns");
  }
  EXPECT_EQ(table.size(), 0u);
}

/// Otherwise a trial that takes no time would win.
TEST(Tuner, ACandidateThatIsNotTimedIsNotChosen) {
  TuneTable table;
  const auto all = tune(
      table, key_of(1), {{.blocks = 1}, {.blocks = 2}},
      [](const TuneConfig& config) {
        return config.blocks == 1 ? Measurement{.correct = true} : Measurement{true, 5, ""};
      },
      watchdog);
  EXPECT_FALSE(all.at(0).correct);
  EXPECT_EQ(all.at(0).why, "it says that a call takes 0 ns");
  EXPECT_EQ(table.lookup(key_of(1)).config.blocks, 2u);
}

TEST(Tuner, ATrialThatThrowsAnythingEndsInItsChild) {
  TuneTable table;
  const pid_t self = getpid();
  const auto all = tune(
      table, key_of(1), {{.blocks = 1}}, [](const TuneConfig&) -> Measurement { throw 1; }, watchdog);
  if (getpid() != self) std::_Exit(1);  // the child has got this far
  EXPECT_EQ(all.at(0).why, "an exception that is no std::exception");
}

TEST(Tuner, WhatACandidateSaysMayBeAnyBytes) {
  TuneTable table;
  const std::string said = std::string("no \xff\xfe UTF-8\n\"\0 {}", 17);
  tune(
      table, key_of(1), {{.blocks = 1}},
      [&said](const TuneConfig&) -> Measurement { throw std::runtime_error(said); }, watchdog);
  const std::string text = table.text();
  EXPECT_EQ(TuneTable::parse(text).text(), text);
  EXPECT_NE(text.find(R"("why":"no )"), std::string::npos) << text;
}

TEST(Tuner, LooksUpTheKeyThenTheNextSmallerSizeThenTheDefault) {
  TuneTable table;
  table.set(key_of(1024), {.blocks = 1}, 1);
  table.set(key_of(65536), {.blocks = 8}, 1);
  const auto choice = [&](const TuneKey& key) { return table.lookup(key); };
  EXPECT_EQ(choice(key_of(1023)).found, Found::none);
  EXPECT_EQ(choice(key_of(1023)).config, TuneConfig{});
  EXPECT_EQ(choice(key_of(1024)).found, Found::exact);
  EXPECT_EQ(choice(key_of(1025)).found, Found::smaller);
  EXPECT_EQ(choice(key_of(65535)).config.blocks, 1u);
  EXPECT_EQ(choice(key_of(65536)).config.blocks, 8u);
  EXPECT_EQ(choice(key_of(1 << 30)).config.blocks, 8u);
  EXPECT_EQ(choice(key_of(1 << 30)).bytes, 65536u);
  // Any other difference makes another key.
  const std::vector<std::function<void(TuneKey&)>> drifts = {
      [](TuneKey& key) { key.kind = "all_reduce"; }, [](TuneKey& key) { key.world = 4; },
      [](TuneKey& key) { key.dtype = DType::f16; },  [](TuneKey& key) { key.rows = 1; },
      [](TuneKey& key) { key.transport = "mesh"; },  [](TuneKey& key) { key.device = "H200"; },
      [](TuneKey& key) { key.backend = "cuda"; },    [](TuneKey& key) { key.variant = "mine"; }};
  for (const auto& drift : drifts) {
    TuneKey key = key_of(1024);
    drift(key);
    EXPECT_EQ(choice(key).found, Found::none);
  }
}

TEST(Tuner, PlansAreChosenBySize) {
  TuneTable table;
  const auto key = [](uint64_t bytes) {
    TuneKey of = key_of(bytes);
    of.kind = "all_reduce";
    return of;
  };
  table.set(key(0), {.plan = "allreduce_one_shot"}, 1);
  table.set(key(1 << 16), {.plan = "allreduce_two_shot"}, 1);
  table.set(key(1 << 22), {.plan = "allreduce_ring"}, 1);
  EXPECT_EQ(table.lookup(key(100)).config.plan, "allreduce_one_shot");
  EXPECT_EQ(table.lookup(key(1 << 17)).config.plan, "allreduce_two_shot");
  EXPECT_EQ(table.lookup(key(1 << 30)).config.plan, "allreduce_ring");
}

TEST(Tuner, HooksOfOnesOwnNeedAVariant) {
  TuneTable table;
  TuneKey key = key_of(1);
  key.default_hooks = false;
  EXPECT_THROW(table.lookup(key), UsageError);
  EXPECT_THROW(table.set(key, {}, 1), UsageError);
  EXPECT_THROW(tune(table, key, {}, {}, std::chrono::milliseconds(1)), UsageError);
  key.variant = "transpose";
  EXPECT_NO_THROW(table.set(key, {.blocks = 3}, 1));
  EXPECT_EQ(table.lookup(key).config.blocks, 3u);
}

TEST(Tuner, ATransportKeepsItsGeometry) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(4, 2, 64));
    EXPECT_NO_THROW(check_geometry(*transport, {}));
    EXPECT_NO_THROW(check_geometry(*transport, {.blocks = 4, .slots = 2}));
    EXPECT_THROW(check_geometry(*transport, {.blocks = 5}), UsageError);
    EXPECT_THROW(check_geometry(*transport, {.slots = 3}), UsageError);
  });
}

TEST(Tuner, WhatNoTableChoosesIsTheDefault) {
  run_local(1, [](World& world) {
    const TuneTable empty;
    for (const TuneConfig& config :
         {empty.lookup(key_of(64)).config, TuneConfig{.blocks = 9, .slots = 4}, TuneConfig{.threads = 3}}) {
      const auto transport = direct_rendezvous(world, tuned_rings(config, rings(8, 2, 256)));
      EXPECT_NO_THROW(check_geometry(*transport, config));
      EXPECT_EQ(transport->depth(), config.slots != 0 ? 4u : 2u);
      EXPECT_EQ(transport->max_channels(), config.blocks != 0 ? 9u : 8u);
      EXPECT_EQ(tuned_launch(config).blocks, config.blocks != 0 ? 9u : LaunchConfig{}.blocks);
      EXPECT_EQ(tuned_launch(config).threads, config.threads);
      const auto sent = message_of<float>(1, 300);
      std::vector<float> got(300);
      sendrecv(*transport, sent.data(), got.data(), 300, 0, -1, {}, {}, tuned_launch(config));
      EXPECT_MESSAGE(got, sent);
    }
  });
}

TEST(Tuner, TheFastestThatIsCorrectWins) {
  TuneTable table;
  const std::vector<TuneConfig> candidates = {{.blocks = 1}, {.blocks = 2}, {.blocks = 3}, {.blocks = 4},
                                              {.blocks = 5}, {.blocks = 6}, {.blocks = 7}};
  const auto all = tune(
      table, key_of(100), candidates,
      [](const TuneConfig& config) -> Measurement {
        switch (config.blocks) {
          case 1:
            return {true, 300, ""};
          case 2:
            return {false, 1, ""};
          case 3:
            return {true, 200, ""};
          case 4:
            return {true, 200, ""};  // as fast, but later
          case 5:
            for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
          case 6:
            std::abort();
          default:
            throw std::runtime_error("no such thing");
        }
      },
      std::chrono::seconds(5));
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(table.lookup(key_of(100)).config.blocks, 3u);
  EXPECT_EQ(all[1].why, "the result is wrong");
  EXPECT_EQ(all[4].why, "it had not ended after 5000 ms");
  EXPECT_EQ(all[5].why, "it died of signal 6");
  EXPECT_EQ(all[6].why, "no such thing");
  EXPECT_NE(table.text().find("it had not ended"), std::string::npos);
}

/// Returns true when the process is gone, which may take the kernel a moment.
bool is_gone(pid_t process) {
  const auto end = std::chrono::steady_clock::now() + watchdog;
  while (std::chrono::steady_clock::now() < end) {
    std::ifstream status("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    // The process that inherits a zombie must reap it.
    if (!std::getline(status, text) || text.find(") Z ") != text.npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(Tuner, WhatACandidateLeavesBehindIsEnded) {
  TuneTable table;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto all = tune(
      table, key_of(100), {{.blocks = 1}, {.blocks = 2}},
      [&](const TuneConfig& config) -> Measurement {
        const pid_t left = fork();  // keeps the output's pipe open
        while (left == 0) pause();
        if (write(ends[1], &left, sizeof left) != sizeof left) return {};
        if (config.blocks == 2) std::abort();
        return {true, 5, ""};
      },
      watchdog);
  EXPECT_TRUE(all[0].correct) << all[0].why;
  EXPECT_EQ(all[1].why, "it died of signal 6");
  for (int candidate = 0; candidate < 2; ++candidate) {
    pid_t left = 0;
    ASSERT_EQ(read(ends[0], &left, sizeof left), ssize_t(sizeof left));
    EXPECT_TRUE(is_gone(left)) << left;
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(Tuner, WhoClosesItsPipeHasNotEnded) {
  TuneTable table;
  const auto all = tune(
      table, key_of(100), {{.blocks = 1}},
      [](const TuneConfig&) -> Measurement {
        for (int file = 3; file < 1024; ++file) close(file);
        for (;;) pause();
      },
      std::chrono::milliseconds(100));
  EXPECT_EQ(all[0].why, "it had not ended after 100 ms");
}

TEST(Tuner, WithoutOneThatIsCorrectNothingIsChosen) {
  TuneTable table;
  tune(
      table, key_of(100), {{.blocks = 1}}, [](const TuneConfig&) { return Measurement{}; }, watchdog);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.lookup(key_of(100)).found, Found::none);

  // The earlier choice is gone as well; choices for other sizes stay.
  table.set(key_of(100), {.blocks = 1}, 5);
  table.set(key_of(50), {.blocks = 2}, 3);
  tune(
      table, key_of(100), {{.blocks = 1}}, [](const TuneConfig&) { return Measurement{}; }, watchdog);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.lookup(key_of(100)).found, Found::smaller);
  EXPECT_EQ(table.lookup(key_of(100)).config.blocks, 2u);
}

TEST(Tuner, TablesOfSeveralRunsBecomeOne) {
  TuneTable here, other;
  here.set(key_of(100), {.blocks = 1}, 5);
  here.set_failure(key_of(100), {.blocks = 9}, "wrong");
  here.set(key_of(50), {.blocks = 2}, 3);
  other.set(key_of(100), {.blocks = 4}, 7);
  other.set_failure(key_of(100), {.blocks = 8}, "hung");
  other.set(key_of(50), {.blocks = 6}, 1);
  here.take(key_of(100), other);
  TuneTable expected;
  expected.set(key_of(100), {.blocks = 4}, 7);
  expected.set_failure(key_of(100), {.blocks = 8}, "hung");
  expected.set(key_of(50), {.blocks = 2}, 3);
  EXPECT_EQ(here.text(), expected.text());

  // Nothing is left of a key that the other table does not have.
  here.take(key_of(100), TuneTable());
  TuneTable rest;
  rest.set(key_of(50), {.blocks = 2}, 3);
  EXPECT_EQ(here.text(), rest.text());
  here.take(key_of(50), here);
  EXPECT_EQ(here.text(), rest.text());
}

TEST(Tuner, TunesSends) {
  // The trials are real: each candidate runs in a separate world, and every byte must be right.
  TuneTable table;
  const uint64_t n = 20000;
  const Trial trial = [n](const TuneConfig& config) -> Measurement {
    Measurement measured{true, 0, ""};
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(config.blocks, config.slots, 512));
      check_geometry(*transport, config);
      const auto sent = message_of<char>(uint64_t(world.rank()), n),
                 expected = message_of<char>(1 - uint64_t(world.rank()), n);
      std::vector<char> got(n);
      const auto begin = std::chrono::steady_clock::now();
      sendrecv(*transport, sent.data(), got.data(), n, 1 - world.rank(), -1, {}, {}, {config.blocks});
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      if (world.rank() == 0) measured.ns = took.count();
      if (got != expected) measured.correct = false;
    });
    return measured;
  };
  const auto all = tune(table, key_of(n),
                        {{.blocks = 1, .slots = 2}, {.blocks = 4, .slots = 4}, {.blocks = 1, .slots = 1}},
                        trial, watchdog);
  EXPECT_TRUE(all[0].correct) << all[0].why;
  EXPECT_TRUE(all[1].correct) << all[1].why;
  EXPECT_FALSE(all[2].correct);
  EXPECT_NE(all[2].why.find("needs 2 slots"), std::string::npos) << all[2].why;
  EXPECT_EQ(table.lookup(key_of(n)).found, Found::exact);
}

}  // namespace
}  // namespace chorale
