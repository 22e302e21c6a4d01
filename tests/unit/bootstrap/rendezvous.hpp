/// \file
/// Lets ranks connect over TCP, under a separate address.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../world/processes.hpp"
#include "executor/bootstrap/rendezvous.hpp"
#include "tests/free_port.hpp"
#include "tests/has.hpp"

namespace chorale::test {

class Rendezvous : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  std::string join(const bootstrap::Hello& mine, std::chrono::nanoseconds timeout = std::chrono::seconds(60),
                   const std::string& secret = {}) const {
    return bootstrap::rendezvous(bootstrap::parse_address(address), mine, timeout,
                                 bootstrap::Secret::read(secret))
        .membership.name;
  }

  const uint16_t port = free_port();
  const std::string address = "tcp://127.0.0.1:" + std::to_string(port);
};

}  // namespace chorale::test
