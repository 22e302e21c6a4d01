// Tests World::from_environment(), which reads the variables of launchers.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../bootstrap/rendezvous.hpp"
#include "chorale/world.hpp"
#include "processes.hpp"

namespace chorale::test {
namespace {

class FromEnvironment : public Rendezvous {
 protected:
  /// Returns the result of from_environment() with these variables, and no others of launchers.
  std::string said(const std::vector<std::pair<std::string, std::string>>& variables,
                   JoinOptions options = {}) {
    Processes process(1, [&](int) -> std::string { return with(variables, options); });
    return process.said(0);
  }

  static std::string with(const std::vector<std::pair<std::string, std::string>>& variables,
                          JoinOptions options = {}) {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    World world = World::from_environment(options);
    world.barrier();
    return "rank " + std::to_string(world.rank()) + " of " + std::to_string(world.ranks());
  }
};

TEST_F(FromEnvironment, AsTorchrunSetsIt) {
  Processes ranks(2, [&](int rank) {
    return with({{"RANK", std::to_string(rank)},
                 {"WORLD_SIZE", "2"},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(port)}});
  });
  EXPECT_EQ(ranks.said(0), "rank 0 of 2");
  EXPECT_EQ(ranks.said(1), "rank 1 of 2");
}

TEST_F(FromEnvironment, AsOtherLaunchersSetIt) {
  using Pair = std::pair<const char*, const char*>;
  for (const Pair& names :
       {Pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Pair{"PMI_RANK", "PMI_SIZE"},
        Pair{"PMIX_RANK", "WORLD_SIZE"}, Pair{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    Processes ranks(2, [&](int rank) {
      return with({{names.first, std::to_string(rank)},
                   {names.second, "2"},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", std::to_string(port)}});
    });
    EXPECT_EQ(ranks.said(0), "rank 0 of 2") << names.first;
    EXPECT_EQ(ranks.said(1), "rank 1 of 2") << names.first;
  }
}

TEST_F(FromEnvironment, LaunchersThatDisagreeAreBothNamed) {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const auto beside = [&](Variables others, const char* rank = "0", const char* ranks = "1") {
    others.insert(others.end(), {{"RANK", rank},
                                 {"WORLD_SIZE", ranks},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)}});
    return said(others);
  };
  EXPECT_TRUE(has(beside({{"OMPI_COMM_WORLD_RANK", "7"}}),
                  "RANK=0 and OMPI_COMM_WORLD_RANK=7 in the environment "
                  "disagree"));
  EXPECT_TRUE(has(beside({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
                  "WORLD_SIZE=1 and OMPI_COMM_WORLD_SIZE=2 in the environment disagree"));
  EXPECT_TRUE(has(beside({{"PMI_RANK", "1"}}), "RANK=0 and PMI_RANK=1"));
  EXPECT_TRUE(has(beside({{"PMIX_RANK", "1"}}), "RANK=0 and PMIX_RANK=1"));
  EXPECT_EQ(beside({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}),
            "rank 0 of 1");
  // srun starts the daemons of other launchers, and mpirun or srun may start torchrun once per host.
  EXPECT_EQ(beside({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}}), "rank 0 of 1");
  EXPECT_EQ(beside({{"OMPI_COMM_WORLD_RANK", "7"}, {"TORCHELASTIC_RUN_ID", "job"}}), "rank 0 of 1");
}

TEST_F(FromEnvironment, ThePortOfTheLauncherItselfIsLeftToIt) {
  const int file = bound_socket(port);
  ASSERT_EQ(listen(file, 8), 0);
  std::vector<std::pair<std::string, std::string>> variables = {{"RANK", "0"},
                                                                {"WORLD_SIZE", "1"},
                                                                {"MASTER_ADDR", "127.0.0.1"},
                                                                {"MASTER_PORT", std::to_string(port)}};
  EXPECT_TRUE(has(said(variables), "the port is in use"));
  EXPECT_EQ(said(variables, {.port = free_port()}), "rank 0 of 1");
  variables.push_back({"TORCHELASTIC_USE_AGENT_STORE", "True"});
  EXPECT_EQ(said(variables), "rank 0 of 1");
  close(file);
}

TEST_F(FromEnvironment, WhatIsMissingOrMalformedIsNamed) {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const Variables good = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  for (size_t at = 0; at < good.size(); ++at) {
    Variables some = good;
    some.erase(some.begin() + int(at));
    EXPECT_TRUE(has(said(some), "exception: " + good[at].first + " is not set in the environment"))
        << good[at].first;
    Variables bad = good;
    bad[at].second = "";
    EXPECT_TRUE(has(said(bad), "exception: " + good[at].first + " is not set in the environment"))
        << good[at].first;
  }
  const auto wrong = [&](const std::string& name, const std::string& value) {
    Variables changed = good;
    for (auto& [known, text] : changed) {
      if (known == name) text = value;
    }
    return said(changed);
  };
  EXPECT_TRUE(has(wrong("RANK", "one"), "RANK=one in the environment is not a number"));
  EXPECT_TRUE(has(wrong("RANK", "-1"), "RANK=-1 in the environment is not a number"));
  EXPECT_TRUE(has(wrong("RANK", "1"), "RANK=1 and WORLD_SIZE=1 in the environment"));
  EXPECT_TRUE(has(wrong("WORLD_SIZE", "1 "), "WORLD_SIZE=1  in the environment is not a number"));
  EXPECT_TRUE(has(wrong("MASTER_PORT", "http"), "MASTER_PORT in the environment: 'http' is no port"));
  EXPECT_TRUE(has(said({{"OMPI_COMM_WORLD_RANK", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
                  "OMPI_COMM_WORLD_SIZE is not set"));
  EXPECT_TRUE(has(said({{"PMIX_RANK", "0"}}), "WORLD_SIZE is not set"));
  // A batch script that srun did not start has no number of tasks of a step.
  EXPECT_TRUE(has(said({{"SLURM_PROCID", "0"}}), "SLURM_STEP_NUM_TASKS is not set"));
  EXPECT_TRUE(has(said({}), "RANK is not set"));
}

}  // namespace
}  // namespace chorale::test
